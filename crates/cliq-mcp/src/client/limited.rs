//! Reader that refuses lines that are too long: each message of a server is a line.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

/// Reader that fails once a line exceeds a limit.
#[derive(Debug)]
pub(super) struct LimitedLines<R> {
    reader: R,
    limit: usize,
    /// Bytes of the line so far.
    length: usize,
}

impl<R> LimitedLines<R> {
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, length: 0 }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for LimitedLines<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        let new = &buffer.filled()[before..];
        self.length = match new.iter().rposition(|&byte| byte == b'\n') {
            Some(at) => new.len() - at - 1,
            None => self.length + new.len(),
        };
        if self.length > self.limit {
            return Poll::Ready(Err(io::Error::other("a message is too long")));
        }
        Poll::Ready(Ok(()))
    }
}
