//! Events of a watch, one by one: lines of JSON, or protobuf with its length before it.
//!
//! ```text
//!  JSON       event "\n"
//!  protobuf   length in 4 octets, big-endian; event
//! ```

use std::io;

use futures_util::io::{AsyncBufRead, AsyncBufReadExt};

use super::media::Media;

/// The longest event that is believed. An object has 1.5 MiB at most in etcd, some more as JSON.
const MOST: usize = 32 << 20;

/// The octets before an event in protobuf.
const LENGTH: usize = 4;

/// Events from a body. What was read of one survives when [`Frames::next`] is dropped, so it may lose a `select!`.
#[derive(Debug)]
pub(super) struct Frames<R> {
    media: Media,
    from: R,
    /// What was read of this event, its length included.
    frame: Vec<u8>,
    complete: bool,
}

impl<R: AsyncBufRead + Unpin> Frames<R> {
    pub(super) fn new(media: Media, from: R) -> Self {
        Self { media, from, frame: Vec::new(), complete: false }
    }

    /// The next event, `None` at the end. Half an event at the end is none, and neither is an empty line.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] where this can be no watch; any other where it broke off.
    pub(super) async fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.complete {
            self.complete = false;
            self.frame.clear();
        }
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                return Ok(None);
            }
            let (taken, complete) = match self.media {
                Media::Json if self.frame.len() > MOST => return Err(too_long()),
                Media::Json => line(chunk),
                Media::Protobuf => measured(&self.frame, chunk)?,
            };
            self.frame.extend_from_slice(chunk.get(..taken).unwrap_or(chunk));
            self.from.consume_unpin(taken);
            if complete && self.media == Media::Json && self.frame.trim_ascii().is_empty() {
                self.frame.clear();
            } else if complete {
                self.complete = true;
                let head = if self.media == Media::Protobuf { LENGTH } else { 0 };
                return Ok(Some(self.frame.get(head..).unwrap_or_default()));
            }
        }
    }
}

/// How much of `chunk` belongs to this line, and whether that ends it.
fn line(chunk: &[u8]) -> (usize, bool) {
    match chunk.iter().position(|b| *b == b'\n') {
        Some(at) => (at + 1, true),
        None => (chunk.len(), false),
    }
}

/// How much of `chunk` belongs to the event of which `frame` was read, and whether that ends it. The length comes
/// first, by itself.
fn measured(frame: &[u8], chunk: &[u8]) -> io::Result<(usize, bool)> {
    let Some(length) = frame.first_chunk::<LENGTH>() else {
        return Ok((chunk.len().min(LENGTH - frame.len()), false));
    };
    let length = u32::from_be_bytes(*length) as usize;
    if length > MOST {
        return Err(too_long());
    }
    let wanted = (LENGTH + length).saturating_sub(frame.len());
    Ok((wanted.min(chunk.len()), wanted <= chunk.len()))
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("an event of more than {MOST} bytes"))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::TryRecvError;
    use std::task::Poll;

    use futures_util::io::{BufReader, Cursor};
    use futures_util::{FutureExt, TryStreamExt};

    use super::*;

    async fn all(media: Media, text: &[u8], size: usize) -> io::Result<Vec<Vec<u8>>> {
        let mut frames = Frames::new(media, BufReader::with_capacity(size, Cursor::new(text)));
        let mut seen = Vec::new();
        while let Some(frame) = frames.next().await? {
            seen.push(frame.to_vec());
        }
        Ok(seen)
    }

    #[tokio::test]
    async fn lines_come_whole_whatever_the_chunks_and_neither_half_a_line_nor_an_empty_one_is_any() {
        for size in 1..12 {
            let seen = all(Media::Json, b"one\n\nthree is longer\n \nhalf", size).await.unwrap();
            assert_eq!(seen, [&b"one\n"[..], b"three is longer\n"]);
        }
    }

    #[tokio::test]
    async fn measured_events_come_whole_whatever_the_chunks_and_half_of_one_is_none() {
        let text = b"\0\0\0\x03one\0\0\0\0\0\0\0\x0ftwo is longer\n\n\0\0\0\x05half";
        for size in 1..24 {
            let seen = all(Media::Protobuf, text, size).await.unwrap();
            assert_eq!(seen, [&b"one"[..], b"", b"two is longer\n\n"]);
        }
    }

    /// A `select!` that another branch wins drops the future that reads.
    #[test]
    fn what_was_read_of_an_event_is_kept_when_its_reader_is_dropped() {
        for (media, text) in [(Media::Json, &b"one\n"[..]), (Media::Protobuf, b"\0\0\0\x03one")] {
            let (sender, receiver) = std::sync::mpsc::channel();
            let parts = futures_util::stream::poll_fn(move |_| match receiver.try_recv() {
                Ok(part) => Poll::Ready(Some(Ok::<_, io::Error>(part))),
                Err(TryRecvError::Empty) => Poll::Pending,
                Err(TryRecvError::Disconnected) => Poll::Ready(None),
            });
            let mut frames = Frames::new(media, parts.into_async_read());
            for octet in text {
                assert!(frames.next().now_or_never().is_none(), "{media:?}");
                sender.send([*octet]).unwrap();
            }
            let frame = frames.next().now_or_never().unwrap().unwrap().unwrap();
            assert!(frame.starts_with(b"one"), "{frame:?}");
        }
    }

    #[tokio::test]
    async fn an_event_that_says_it_is_huge_is_refused_before_it_comes() {
        let error = all(Media::Protobuf, b"\xff\xff\xff\xffx", 64).await.unwrap_err();
        assert!(error.to_string().contains("more than 33554432 bytes"), "{error}");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }
}
