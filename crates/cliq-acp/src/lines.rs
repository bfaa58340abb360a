//! Lines of a peer: the framing of JSON-RPC over standard input and output.
//!
//! A line is kept as its bytes, so that records and transcripts have what the peer wrote and not what a parser made of it. Memory is
//! bounded: a line that exceeds [`MAX_LINE`] is counted and discarded.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a line, in bytes: 16 MiB. The longest line seen from a real agent has 569 kB.
pub const MAX_LINE: usize = 16 << 20;
/// Size of a single read, in bytes.
const CHUNK: usize = 64 * 1024;
/// Capacity of the line buffer that is kept between lines, in bytes.
const KEPT: usize = 256 * 1024;

/// Line of a peer, without its line end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A complete line.
    Whole(Vec<u8>),
    /// Last line of a stream that ended without a line end. The peer may have died while it wrote.
    Half(Vec<u8>),
    /// Line that exceeds the limit. Its content is discarded.
    TooLong {
        /// Length in bytes.
        bytes: u64,
    },
}

impl Line {
    /// Returns the length in bytes, with the line end.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Whole(bytes) | Self::Half(bytes) => bytes.len() + 1,
            Self::TooLong { bytes } => usize::try_from(*bytes).unwrap_or(usize::MAX),
        }
    }
}

/// Splitter of a byte stream into lines. Pure.
#[derive(Debug)]
pub struct LineSplitter {
    limit: usize,
    partial: Vec<u8>,
    /// Length so far of the line that exceeds the limit, or 0.
    skipped: u64,
}

impl Default for LineSplitter {
    /// Returns a splitter with the limit [`MAX_LINE`].
    fn default() -> Self {
        Self::new(MAX_LINE)
    }
}

impl LineSplitter {
    /// Returns a splitter for lines of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), skipped: 0 }
    }

    /// Takes bytes up to and including the next line end. Returns the line, if one is complete, and the number of bytes taken.
    pub fn push(&mut self, bytes: &[u8]) -> (Option<Line>, usize) {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => {
                self.extend(&bytes[..end]);
                (Some(self.take(Line::Whole)), end + 1)
            }
            None => {
                self.extend(bytes);
                (None, bytes.len())
            }
        }
    }

    /// Returns the last line of the stream if it has no line end.
    pub fn finish(&mut self) -> Option<Line> {
        let is_empty = self.partial.is_empty() && self.skipped == 0;
        (!is_empty).then(|| self.take(Line::Half))
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.skipped > 0 {
            self.skipped += bytes.len() as u64;
        } else if self.partial.len() + bytes.len() > self.limit {
            self.skipped = (self.partial.len() + bytes.len()) as u64;
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn take(&mut self, whole: fn(Vec<u8>) -> Line) -> Line {
        match std::mem::take(&mut self.skipped) {
            0 => {
                let line = self.partial.strip_suffix(b"\r").unwrap_or(&self.partial).to_vec();
                self.partial.clear();
                self.partial.shrink_to(KEPT);
                whole(line)
            }
            bytes => Line::TooLong { bytes },
        }
    }
}

/// Reader of lines from a stream of bytes.
#[derive(Debug)]
pub struct LineReader<R> {
    inner: R,
    splitter: LineSplitter,
    buffer: Vec<u8>,
    /// Bytes of the buffer that are not split yet.
    pending: std::ops::Range<usize>,
    is_at_end: bool,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    /// Returns a reader with the limit [`MAX_LINE`].
    pub fn new(inner: R) -> Self {
        Self::with_limit(inner, MAX_LINE)
    }

    /// Returns a reader for lines of at most `limit` bytes.
    pub fn with_limit(inner: R, limit: usize) -> Self {
        Self {
            inner,
            splitter: LineSplitter::new(limit),
            buffer: vec![0; CHUNK],
            pending: 0..0,
            is_at_end: false,
        }
    }

    /// Returns the next line, or `None` at the end of the stream. Cancel safe: no byte is lost if the future is dropped.
    ///
    /// # Errors
    /// Returns an error if the stream cannot be read.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            while !self.pending.is_empty() {
                let (line, taken) = self.splitter.push(&self.buffer[self.pending.clone()]);
                self.pending.start += taken;
                if line.is_some() {
                    return Ok(line);
                }
            }
            if self.is_at_end {
                return Ok(self.splitter.finish());
            }
            match self.inner.read(&mut self.buffer).await {
                Ok(0) => self.is_at_end = true,
                Ok(n) => self.pending = 0..n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for chunk in chunks {
            let mut rest = *chunk;
            while !rest.is_empty() {
                let (line, taken) = splitter.push(rest);
                lines.extend(line);
                rest = &rest[taken..];
            }
        }
        lines.extend(splitter.finish());
        lines
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.into())
    }

    #[test]
    fn lines_are_bounded_and_the_last_may_be_half() {
        let lines = split(5, &[b"a\r\n", b"", b"\n12", b"345\n123456", b"7\n12345", b"\nha"]);
        let half = Line::Half(b"ha".to_vec());
        let long = Line::TooLong { bytes: 7 };
        assert_eq!(lines, [whole("a"), whole(""), whole("12345"), long, whole("12345"), half]);
        assert_eq!(split(5, &[b"123456"]), [Line::TooLong { bytes: 6 }]);
    }

    proptest! {
        #[test]
        fn cuts_of_the_stream_do_not_matter(text in "[ab\n\r]{0,60}", cut in 1_usize..9, limit in 1_usize..12) {
            let chunks: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            prop_assert_eq!(split(limit, &chunks), split(limit, &[text.as_bytes()]));
        }
    }
}
