//! Keeping what a process prints: in a log file, bounded, and its last 4 KiB at hand.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use camino::Utf8PathBuf;
use cliq_fs::open_append;
use rustix::buffer::spare_capacity;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Number of trailing bytes of an output that results quote.
pub(crate) const TAIL_BYTES: usize = 4 * 1024;
/// Number of leading bytes kept from an output in a log file.
const HEAD_LIMIT: u64 = 16 * 1024 * 1024;
/// Read buffer. The allocator trims on each free of more than 64 KiB, which would happen for each command.
const BUFFER: usize = 16 * 1024;
/// Number of trailing bytes kept from an output that exceeds the limit.
const END_KEPT: usize = 256 * 1024;

/// The output of one process.
#[derive(Debug)]
pub(crate) struct Capture {
    path: Utf8PathBuf,
    file: Option<File>,
    total: u64,
    /// The end of the output, twice as much as is kept at most.
    recent: Vec<u8>,
    finished: bool,
}

impl Capture {
    pub(crate) fn new(path: Utf8PathBuf) -> Self {
        Self { path, file: None, total: 0, recent: Vec::new(), finished: false }
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        if self.finished {
            return;
        }
        let room = usize::try_from(HEAD_LIMIT.saturating_sub(self.total)).unwrap_or(usize::MAX);
        self.write(&bytes[..bytes.len().min(room)]);
        self.total += bytes.len() as u64;
        self.recent.extend_from_slice(bytes);
        let keep = if self.total > HEAD_LIMIT { END_KEPT } else { TAIL_BYTES };
        if self.recent.len() > 2 * keep {
            self.recent.drain(..self.recent.len() - keep);
        }
    }

    /// A log that cannot be written must not end the work that is logged.
    fn write(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        if self.file.is_none() {
            self.file = open_append(&self.path).ok();
        }
        if let Some(file) = &mut self.file {
            let _ = file.write_all(bytes);
        }
    }

    /// Nothing more is taken; the end of an output over the limit is written.
    pub(crate) fn finish(&mut self) {
        if std::mem::replace(&mut self.finished, true) || self.total <= HEAD_LIMIT {
            return;
        }
        let beyond = self.total - HEAD_LIMIT;
        let kept = usize::try_from(beyond).unwrap_or(usize::MAX).min(self.recent.len()).min(END_KEPT);
        let end = self.recent.split_off(self.recent.len() - kept);
        let left_out = beyond - kept as u64;
        if left_out > 0 {
            self.write(format!("\n[cliq: {left_out} bytes of output left out here]\n").as_bytes());
        }
        self.write(&end);
        self.recent = end;
    }

    /// The last of the output, from a line's beginning if there is one.
    pub(crate) fn tail(&self) -> String {
        let tail = &self.recent[self.recent.len().saturating_sub(TAIL_BYTES)..];
        last_lines(tail, self.total > tail.len() as u64)
    }

    pub(crate) fn has_output(&self) -> bool {
        self.total > 0
    }
}

/// The end of an output as text. Where it was `cut`, from the beginning of a line, if there is one.
pub(crate) fn last_lines(mut tail: &[u8], cut: bool) -> String {
    if cut && let Some(line) = tail.iter().position(|&b| b == b'\n').filter(|&at| at + 1 < tail.len()) {
        tail = &tail[line + 1..];
    }
    String::from_utf8_lossy(tail).into_owned()
}

/// The end of a pipe that output comes out of.
pub(super) type Reader = AsyncFd<OwnedFd>;

/// Reads until every holder of the writing end is gone. Gives the reading end back.
pub(super) async fn pump(reader: OwnedFd, capture: Arc<Mutex<Capture>>) -> Option<Reader> {
    rustix::io::ioctl_fionbio(&reader, true).ok()?;
    #[expect(
        deprecated,
        reason = "its replacement is unsafe for the sake of types that lie about their descriptor; an OwnedFd does not"
    )]
    let reader = AsyncFd::with_interest(reader, Interest::READABLE).ok()?;
    let mut buffer = Vec::with_capacity(BUFFER);
    while let Ok(mut ready) = reader.readable().await {
        // A process that prints without end leaves others their turn.
        tokio::task::consume_budget().await;
        buffer.clear();
        let read = |fd: &Reader| Ok(rustix::io::read(fd.get_ref(), spare_capacity(&mut buffer))?);
        match ready.try_io(read) {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(_)) => capture.lock().unwrap_or_else(PoisonError::into_inner).feed(&buffer),
            // Nothing more for now.
            Err(_) => {}
        }
    }
    capture.lock().unwrap_or_else(PoisonError::into_inner).finish();
    Some(reader)
}
