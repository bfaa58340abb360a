//! Record of the spans and log lines that a receiver has taken: a run that was killed and is resumed exports the others only.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::{RunId, SpanId};

/// Record of one run, `.cliq/telemetry/<run>.sent`: an id per line. One process at a time holds it.
#[derive(Debug)]
pub struct Sent {
    path: Utf8PathBuf,
    file: File,
    known: HashSet<SpanId>,
}

/// Reason why the record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SentError {
    /// Another process exports the run.
    #[error("another process is exporting the run: it ends within seconds")]
    Busy,
    /// The file cannot be read or written.
    #[error("cannot use {path}: {source}")]
    File {
        /// File.
        path: Utf8PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}

impl Sent {
    /// Opens the record of a run in a `.cliq` directory.
    ///
    /// # Errors
    /// Another process holds it, or it cannot be read.
    pub fn open(cliq_dir: &Utf8Path, run: &RunId) -> Result<Self, SentError> {
        let dir = cliq_dir.join("telemetry");
        let path = dir.join(format!("{run}.sent"));
        let failed = |source| SentError::File { path: path.clone(), source };
        fs::create_dir_all(&dir).map_err(failed)?;
        let mut file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SentError::Busy),
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        // A line that was cut off by a kill is none: what follows begins on a line of its own.
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let lines =
            text[..whole].split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
        let known = lines.filter_map(|line| line.parse().ok()).collect();
        Ok(Self { path, file, known })
    }

    /// Whether a span or line was taken.
    #[must_use]
    pub fn contains(&self, id: SpanId) -> bool {
        self.known.contains(&id)
    }

    /// Number of spans and lines that were taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Whether none was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// Records spans or lines that a receiver has taken.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn add(&mut self, ids: impl IntoIterator<Item = SpanId>) -> Result<(), SentError> {
        let new: Vec<SpanId> = ids.into_iter().filter(|id| self.known.insert(*id)).collect();
        let lines: String = new.iter().map(|id| format!("{id}\n")).collect();
        let path = self.path.clone();
        self.file.write_all(lines.as_bytes()).map_err(|source| SentError::File { path, source })
    }
}
