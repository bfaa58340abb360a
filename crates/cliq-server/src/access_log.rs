//! The access log: a line of JSON for each request, written by a thread of its own.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;

use cliq_supervisor::internals::clock;

/// Maximum number of queued lines. More are dropped, so that a slow disk does not slow requests down.
const WAITING: usize = 10_000;
/// A log of this size is put aside, in place of the one before.
const MAX_BYTES: u64 = 64 << 20;

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
        let path = path.to_owned();
        std::thread::Builder::new().name("access-log".into()).spawn(move || write(file, &path, &receiver))?;
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

fn append(path: &Utf8Path) -> std::io::Result<File> {
    fs::OpenOptions::new().create(true).append(true).open(path)
}

fn write(file: File, path: &Utf8Path, lines: &Receiver<Vec<u8>>) {
    let mut size = file.metadata().map_or(0, |meta| meta.len());
    let mut out = BufWriter::new(file);
    loop {
        let Ok(first) = lines.recv() else { return };
        let mut next = Some(first);
        while let Some(line) = next {
            size += line.len() as u64;
            let _ = out.write_all(&line);
            next = lines.recv_timeout(Duration::from_millis(50)).ok();
        }
        let _ = out.flush();
        if size > MAX_BYTES {
            let old = Utf8PathBuf::from(format!("{path}.1"));
            let renamed = fs::rename(path, old).and_then(|()| append(path));
            if let Ok(file) = renamed {
                (out, size) = (BufWriter::new(file), 0);
            }
        }
    }
}
