//! Cuts a growing byte stream into channel messages (docs/protocol.md).

use crate::{ChannelMessage, DecodeError};

/// The longest line that is read, in bytes without its line end: 16 MiB.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Turns chunks of a signal file into messages.
///
/// The same bytes give the same lines however they are cut into chunks. A line without its newline waits for it. CRLF
/// is accepted, blank lines are nothing, and a line over the limit is reported once and skipped without being kept.
#[derive(Debug)]
pub struct StreamDecoder {
    limit: usize,
    /// The unterminated line so far. Empty while `skipping`.
    partial: Vec<u8>,
    /// Offset of the unterminated line.
    line_start: u64,
    /// Bytes taken in so far.
    taken: u64,
    skipping: bool,
}

/// One line of a signal file.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Offset in bytes from the start of the stream.
    pub offset: u64,
    /// The message, or why it is none.
    pub message: Result<ChannelMessage, LineFault>,
}

/// Reason why a line is not a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineFault {
    /// The line does not decode.
    #[error("{0}")]
    Invalid(#[from] DecodeError),
    /// The line is over the limit.
    #[error("the line is longer than {limit} bytes")]
    TooLong {
        /// The limit, in bytes.
        limit: usize,
    },
}

impl Default for StreamDecoder {
    fn default() -> Self {
        Self::with_limit(MAX_LINE_BYTES)
    }
}

impl StreamDecoder {
    /// A decoder at the start of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A decoder with a limit of its own, in bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), line_start: 0, taken: 0, skipping: false }
    }

    /// Number of bytes consumed.
    #[must_use]
    pub fn offset(&self) -> u64 {
        self.taken
    }

    /// Takes the next bytes and hands each finished line to `each`.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line)) {
        while let Some(end) = memchr::memchr(b'\n', chunk) {
            let (head, tail) = chunk.split_at(end);
            chunk = &tail[1..];
            self.taken += head.len() as u64 + 1;
            let offset = std::mem::replace(&mut self.line_start, self.taken);
            if std::mem::take(&mut self.skipping) {
                each(self.too_long(offset));
            } else if self.partial.is_empty() {
                self.finish(head, offset, &mut each);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(head);
                self.finish(&line, offset, &mut each);
            }
        }
        self.taken += chunk.len() as u64;
        // One more than the limit: a CR may yet turn out to belong to the line end.
        if !self.skipping && self.partial.len() + chunk.len() > self.limit + 1 {
            self.skipping = true;
            self.partial = Vec::new();
        }
        if !self.skipping {
            self.partial.extend_from_slice(chunk);
        }
    }

    fn finish(&self, line: &[u8], offset: u64, each: &mut impl FnMut(Line)) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > self.limit {
            each(self.too_long(offset));
        } else if !line.iter().all(u8::is_ascii_whitespace) {
            each(Line { offset, message: ChannelMessage::decode(line).map_err(Into::into) });
        }
    }

    fn too_long(&self, offset: u64) -> Line {
        Line { offset, message: Err(LineFault::TooLong { limit: self.limit }) }
    }
}
