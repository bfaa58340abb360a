//! Reader of messages, one per line, from programs: it bounds lines and repairs text that is not Unicode.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use cliq_protocol::lenient_bytes;
use tokio::io::{AsyncRead, ReadBuf};

/// Size of a single read, in bytes.
const CHUNK: usize = 8192;

/// Reader that returns whole lines with U+FFFD in place of what is not Unicode, and fails once a line exceeds a limit.
#[derive(Debug)]
pub(crate) struct LenientLines<R> {
    reader: R,
    limit: usize,
    /// Line under way.
    partial: Vec<u8>,
    /// Whole lines, and the part of them that was returned.
    whole: Vec<u8>,
    returned: usize,
    is_at_end: bool,
}

impl<R> LenientLines<R> {
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, partial: Vec::new(), whole: Vec::new(), returned: 0, is_at_end: false }
    }

    fn feed(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            self.partial.extend_from_slice(bytes);
            return self.check();
        };
        let (lines, rest) = bytes.split_at(end + 1);
        self.partial.extend_from_slice(lines);
        self.release();
        self.partial.extend_from_slice(rest);
        self.check()
    }

    /// Makes what came so far ready.
    fn release(&mut self) {
        self.whole = lenient_bytes(&self.partial).into_owned();
        self.partial.clear();
        self.returned = 0;
    }

    fn check(&self) -> io::Result<()> {
        if self.partial.len() > self.limit {
            return Err(io::Error::other("a message is too long"));
        }
        Ok(())
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LenientLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let rest = &self.whole[self.returned..];
            if !rest.is_empty() {
                let size = rest.len().min(buffer.remaining());
                buffer.put_slice(&rest[..size]);
                self.returned += size;
                return Poll::Ready(Ok(()));
            }
            if self.is_at_end {
                return Poll::Ready(Ok(()));
            }
            let mut chunk = [0; CHUNK];
            let mut chunk = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut self.reader).poll_read(context, &mut chunk))?;
            if chunk.filled().is_empty() {
                self.is_at_end = true;
                self.release();
            } else {
                self.feed(chunk.filled())?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(bytes: &[u8], limit: usize) -> io::Result<String> {
        let mut text = String::new();
        LenientLines::new(bytes, limit).read_to_string(&mut text).await?;
        Ok(text)
    }

    #[tokio::test]
    async fn lines_are_repaired_and_bounded() {
        for (bytes, expected) in [
            (&b"{\"a\": \"x\"}\n{}\n"[..], "{\"a\": \"x\"}\n{}\n"),
            (b"{\"a\": \"\\ud83d\"}\n", "{\"a\": \"\\ufffd\"}\n"),
            (b"{\"a\": \"caf\xe9\"}\nlast", "{\"a\": \"caf\u{fffd}\"}\nlast"),
            (b"{\"a\": \"\\ud83d\\ude00\"}", "{\"a\": \"\\ud83d\\ude00\"}"),
            (b"", ""),
        ] {
            assert_eq!(read(bytes, 100).await.expect("within the limit"), expected);
        }
        // An emoji that two reads share.
        let long = format!("{}\u{1f600}\n", "x".repeat(CHUNK - 2));
        assert_eq!(read(long.as_bytes(), 2 * CHUNK).await.expect("within the limit"), long);
        let error = read(&vec![b'x'; 3 * CHUNK], CHUNK).await.expect_err("too long");
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
