//! One GET request over plain HTTP/1.1: all that `explain --server` needs.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

/// How long a server may take to accept a connection, and to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The longest answer that is read.
const LARGEST: u64 = 16 << 20;

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// The status code.
    pub(super) status: u16,
    /// The body.
    pub(super) body: String,
}

/// Why there is none. `Display` says what to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    /// Not `HOST:PORT`.
    #[error("no such address ({0}); give the server's admin address, such as 127.0.0.1:8053")]
    Address(io::Error),
    /// Nothing answers there.
    #[error("can't connect ({0}); is `namesake dns` running, and is this its --admin address?")]
    Connect(io::Error),
    /// The connection broke.
    #[error("the answer did not arrive ({0}); try again, or see the server's log")]
    Broken(io::Error),
    /// Something else listens there.
    #[error("what answers there is no HTTP server ({0}); give the server's --admin address")]
    NotHttp(&'static str),
}

/// Gets `path` (with its query) from `server`, which is `HOST:PORT`.
pub(super) fn get(server: &str, path: &str) -> Result<Answer, HttpError> {
    let mut stream = connect(server)?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\nUser-Agent: namesake\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).map_err(HttpError::Broken)?;
    let deadline = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut chunk = [0; 16384];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(HttpError::Broken(io::ErrorKind::TimedOut.into()));
        }
        stream.set_read_timeout(Some(left)).map_err(HttpError::Broken)?;
        match stream.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(chunk.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(HttpError::Broken(error)),
        }
        if bytes.len() as u64 > LARGEST {
            return Err(HttpError::NotHttp("too long"));
        }
    }
    parse(&bytes)
}

fn connect(server: &str) -> Result<TcpStream, HttpError> {
    let mut last = io::Error::from(io::ErrorKind::NotFound);
    for address in server.to_socket_addrs().map_err(HttpError::Address)? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_write_timeout(Some(PATIENCE)).map_err(HttpError::Broken)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(HttpError::Connect(last))
}

/// A whole response: status line, header, body (by length, in chunks, or up to the end).
fn parse(bytes: &[u8]) -> Result<Answer, HttpError> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or(HttpError::NotHttp("no header"))?;
    let (head, body) = (bytes.get(..end).unwrap_or_default(), bytes.get(end + 4..).unwrap_or_default());
    let head = std::str::from_utf8(head).map_err(|_| HttpError::NotHttp("header is no text"))?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    let status = status.strip_prefix("HTTP/1.").ok_or(HttpError::NotHttp("no status line"))?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok());
    let status = status.ok_or(HttpError::NotHttp("no status code"))?;
    let header = |name: &str| {
        lines.clone().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.trim().eq_ignore_ascii_case(name).then(|| value.trim())
        })
    };
    let body = if header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        unchunk(body)?
    } else if let Some(length) = header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        body.get(..length).ok_or_else(|| HttpError::Broken(io::ErrorKind::UnexpectedEof.into()))?.to_vec()
    } else {
        body.to_vec()
    };
    Ok(Answer { status, body: String::from_utf8_lossy(&body).into_owned() })
}

/// The bytes of a chunked body (RFC 9112 §7.1).
fn unchunk(mut rest: &[u8]) -> Result<Vec<u8>, HttpError> {
    let cut = || HttpError::Broken(io::ErrorKind::UnexpectedEof.into());
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").ok_or_else(cut)?;
        let size = rest.get(..end).and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
        let size = usize::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)
            .map_err(|_| HttpError::NotHttp("bad chunk"))?;
        rest = rest.get(end + 2..).ok_or_else(cut)?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(rest.get(..size).ok_or_else(cut)?);
        rest = size.checked_add(2).and_then(|next| rest.get(next..)).ok_or_else(cut)?;
    }
}

/// `text` as one value of a query string (RFC 3986 §2).
pub(super) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_read_by_length_in_chunks_or_to_the_end() {
        let by_length = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi there".as_slice();
        let chunked =
            b"HTTP/1.1 404 Not Found\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n6;x=1\r\n there\r\n0\r\n\r\n";
        let to_the_end = b"HTTP/1.0 200 OK\r\n\r\nhi".as_slice();
        assert_eq!(parse(by_length).unwrap(), Answer { status: 200, body: "hi".to_owned() });
        assert_eq!(parse(chunked).unwrap(), Answer { status: 404, body: "hi there".to_owned() });
        assert_eq!(parse(to_the_end).unwrap(), Answer { status: 200, body: "hi".to_owned() });
    }

    #[test]
    fn no_bytes_make_the_reader_panic() {
        let good = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n";
        for end in 0..good.len() {
            let _ = parse(&good[..end]);
        }
        for bytes in [&b"\r\n\r\n"[..], b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 ok\r\n\r\n", b"HTTP/1.1 200\r\nA\r\n\r\n"] {
            let _ = parse(bytes);
        }
        let huge = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        assert!(matches!(parse(huge), Err(HttpError::Broken(_))));
    }

    #[test]
    fn names_are_encoded_for_the_query() {
        assert_eq!(encode("_http._tcp.web"), "_http._tcp.web");
        assert_eq!(encode("a b&c=ü"), "a%20b%26c%3D%C3%BC");
    }
}
