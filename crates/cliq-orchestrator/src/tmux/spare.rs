//! Panes that are opened before there is a job for them.
//!
//! tmux takes several milliseconds to open a pane, so some are kept open, in a hidden session of their own that no client
//! looks at. In each, a shim waits on a pipe for its job. Once it has one, the pane is moved to where people see it while
//! the job runs.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use rustix::process::{Pid, test_kill_process};

/// Maximum number of spare panes: several phases may start at once, and replacing a spare pane takes as long as a short phase.
pub(super) const MOST_SPARES: usize = 8;
/// The argument that makes the shim wait for its job.
pub(super) const WAIT: &str = "+";

/// The pipe through which a waiting shim gets its job. The shim leaves when the last handle is dropped.
#[derive(Debug)]
pub(super) struct Feed {
    path: Utf8PathBuf,
    pipe: File,
}

impl Feed {
    pub(super) fn new(dir: &Utf8Path) -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!(".tmp-feed-{}-{number}", std::process::id()));
        let _ = fs::remove_file(&path);
        mkfifo(path.as_std_path(), Mode::S_IRUSR | Mode::S_IWUSR)?;
        // For reading too, so that neither this waits for the shim nor the shim for this.
        let pipe = OpenOptions::new().read(true).write(true).open(&path)?;
        Ok(Self { path, pipe })
    }

    pub(super) fn path(&self) -> &Utf8Path {
        &self.path
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Where the shim came so far, it has removed it.
        let _ = fs::remove_file(&self.path);
    }
}

/// A pane in which a shim waits.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) pane: String,
    pub(super) pid: u32,
    pub(super) feed: Feed,
}

impl Spare {
    /// Whether its shim is still there.
    pub(super) fn is_waiting(&self) -> bool {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        pid.is_some_and(|pid| test_kill_process(pid).is_ok())
    }

    /// Starts the job that `spec` describes.
    pub(super) fn give(&self, spec: &Utf8Path) -> io::Result<()> {
        (&self.feed.pipe).write_all(spec.as_str().as_bytes())?;
        (&self.feed.pipe).write_all(b"\n")
    }
}

/// In the shim: waits for the job. `None` if there will be none.
pub(super) fn wait(feed: &Utf8Path) -> io::Result<Option<Utf8PathBuf>> {
    let mut pipe = File::open(feed)?;
    let _ = fs::remove_file(feed);
    let (mut spec, mut byte) = (Vec::new(), [0]);
    // A byte at a time: the other end stays open after the line.
    while pipe.read(&mut byte)? == 1 {
        if byte[0] == b'\n' {
            return Ok(String::from_utf8(spec).ok().map(Utf8PathBuf::from));
        }
        spec.push(byte[0]);
    }
    Ok(None)
}
