//! Lines of a watch.

use std::io;

use futures_util::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest line that is believed. An object has 1.5 MiB at most in etcd, some more as JSON.
const MOST: usize = 32 << 20;

/// Lines from a body. What was read of a line survives when [`Lines::next`] is dropped, so it may lose a `select!`.
#[derive(Debug)]
pub(super) struct Lines<R> {
    from: R,
    line: Vec<u8>,
    complete: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, line: Vec::new(), complete: false }
    }

    /// The next line, `None` at the end. Half a line at the end is none.
    pub(super) async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.complete {
            self.complete = false;
            self.line.clear();
        }
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let (taken, complete) = match chunk.iter().position(|b| *b == b'\n') {
                Some(at) => (at + 1, true),
                None => (chunk.len(), false),
            };
            self.line.extend_from_slice(chunk.get(..taken).unwrap_or(chunk));
            self.from.consume_unpin(taken);
            if self.line.len() > MOST {
                return Err(io::Error::other(format!("a line of more than {MOST} bytes")));
            }
            if complete {
                self.complete = true;
                return Ok(Some(&self.line));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::io::{BufReader, Cursor};

    #[tokio::test]
    async fn lines_come_whole_whatever_the_chunks_and_half_a_line_is_none() {
        let text = "one\n\nthree is longer\nhalf";
        for size in 1..12 {
            let mut lines = Lines::new(BufReader::with_capacity(size, Cursor::new(text)));
            let mut seen = Vec::new();
            while let Some(line) = lines.next().await.unwrap() {
                seen.push(String::from_utf8(line.to_vec()).unwrap());
            }
            assert_eq!(seen, ["one\n", "\n", "three is longer\n"]);
        }
    }
}
