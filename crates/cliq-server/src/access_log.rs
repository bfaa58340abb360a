//! The access log: a line of JSON for each request, written by a thread of its own.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::os::unix::fs::MetadataExt;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use cliq_supervisor::internals::clock;

/// Maximum number of queued lines. More are dropped, so that a slow disk does not slow requests down.
const WAITING: usize = 10_000;
/// A log of this size is put aside, in place of the one before.
const MAX_BYTES: u64 = 64 << 20;
/// Time without a line after which those before are written.
const PAUSE: Duration = Duration::from_millis(50);
/// Time after which lines are written where there is no pause.
const BURST: Duration = Duration::from_millis(500);

/// A request and its response. No query, header or body: they may have secrets.
#[derive(Debug, Serialize)]
pub(crate) struct AccessLine<'a> {
    pub(crate) request_id: &'a str,
    pub(crate) peer: IpAddr,
    pub(crate) caller: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) status: u16,
    pub(crate) micros: u64,
}

/// The writing end. Lines are on the disk within a second.
#[derive(Debug)]
pub(crate) struct AccessLog {
    lines: SyncSender<Vec<u8>>,
}

impl AccessLog {
    /// Appends to the file at `path`.
    pub(crate) fn open(path: &Utf8Path) -> std::io::Result<Self> {
        let file = append(path)?;
        let (lines, receiver) = sync_channel(WAITING);
        let log = LogFile::new(path.to_owned(), file);
        std::thread::Builder::new().name("access-log".into()).spawn(move || write(log, &receiver))?;
        Ok(Self { lines })
    }

    pub(crate) fn write(&self, line: &AccessLine<'_>) {
        let mut value = serde_json::to_value(line).unwrap_or_default();
        value["ts"] = clock::now().to_string().into();
        let mut text = value.to_string().into_bytes();
        text.push(b'\n');
        if let Err(TrySendError::Full(_)) = self.lines.try_send(text) {
            tracing::debug!("the disk is slow: a line of the access log is dropped");
        }
    }
}

/// The file of the log.
struct LogFile {
    path: Utf8PathBuf,
    out: BufWriter<File>,
    /// Device and inode, by which a file that another program put in its place is noticed.
    identity: Option<(u64, u64)>,
    size: u64,
    /// Whether the last lines could be written.
    is_fine: bool,
}

impl LogFile {
    fn new(path: Utf8PathBuf, file: File) -> Self {
        let found = file.metadata().ok();
        let size = found.as_ref().map_or(0, std::fs::Metadata::len);
        Self { path, identity: found.as_ref().map(identity), size, out: BufWriter::new(file), is_fine: true }
    }

    fn is_in_place(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| Some(identity(&found)) == self.identity)
    }

    /// Opens the file at the path, which may be a new one. Buffered lines go to the old one.
    fn open_again(&mut self) -> std::io::Result<()> {
        let file = append(&self.path)?;
        let flushed = self.out.flush();
        *self = Self { is_fine: self.is_fine, ..Self::new(self.path.clone(), file) };
        flushed
    }

    /// Logs once that lines are lost, and once that they are written again.
    fn report(&mut self, written: &std::io::Result<()>) {
        match written {
            Err(error) if self.is_fine => {
                tracing::warn!(%error, file = %self.path, "lines of the access log are lost");
            }
            Ok(()) if !self.is_fine => tracing::info!(file = %self.path, "the access log is written again"),
            _ => {}
        }
        self.is_fine = written.is_ok();
    }
}

fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

fn append(path: &Utf8Path) -> std::io::Result<File> {
    fs::OpenOptions::new().create(true).append(true).open(path)
}

fn write(mut log: LogFile, lines: &Receiver<Vec<u8>>) {
    while let Ok(first) = lines.recv() {
        // Rotated by another program: lines go to the new file.
        let mut written = if log.is_in_place() { Ok(()) } else { log.open_again() };
        let until = Instant::now() + BURST;
        let mut next = Some(first);
        while let Some(line) = next {
            log.size += line.len() as u64;
            written = written.and(log.out.write_all(&line));
            let has_time = Instant::now() < until;
            next = has_time.then(|| lines.recv_timeout(PAUSE).ok()).flatten();
        }
        written = written.and(log.out.flush());
        if log.size > MAX_BYTES {
            let old = Utf8PathBuf::from(format!("{}.1", log.path));
            written = written.and(fs::rename(&log.path, old)).and_then(|()| log.open_again());
        }
        log.report(&written);
    }
}
