//! Plain HTTP requests to loopback servers: probes, metrics, etcd's gateway.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::error::{Doing, Error, Result};

/// `GET http://<address><path>`: the status code and the body. Gives up after `within`.
pub async fn get(address: SocketAddr, path: &str, within: Duration) -> Result<(u16, String)> {
    request("GET", address, path, "", within).await
}

/// `POST http://<address><path>` with a JSON body: the status code and the body. Gives up after `within`.
pub async fn post(address: SocketAddr, path: &str, json: &str, within: Duration) -> Result<(u16, String)> {
    request("POST", address, path, json, within).await
}

async fn request(method: &str, address: SocketAddr, path: &str, body: &str, within: Duration) -> Result<(u16, String)> {
    let what = format!("{method} http://{address}{path}");
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        // HTTP/1.0: the answer comes in one piece and ends with the connection.
        let head = format!(
            "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(within, exchange)
        .await
        .map_err(|_| Error::new(format!("{what}: no answer within {within:?}")))?
        .doing(&what)?;
    let text = String::from_utf8_lossy(&answer);
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| Error::new(format!("{what}: not an HTTP answer")))?;
    let code = head.split_whitespace().nth(1).and_then(|code| code.parse().ok());
    let code = code.ok_or_else(|| Error::new(format!("{what}: no status code in {head:?}")))?;
    Ok((code, body.to_owned()))
}
