//! The description of a job on its way into a pane, and the right to start it.
//!
//! Between the moment in which a pane is asked for and the moment in which the job runs in it, nothing of the job can be
//! found among the processes. To end a job, or one that a killed orchestrator requested, therefore
//! revokes its description first: it has then either been started, and bears its marks, or never will be.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, open_regular, read_limited, write_atomic};

use crate::launcher::Job;

/// Prefix of the file names in the directory of messages.
const PREFIX: &str = ".pane-";
/// Time limit for starting a program. Only a process that was stopped in the middle takes longer.
const STARTING: Duration = Duration::from_secs(5);

/// Writes down a job for a shim. `number` is unique within this process.
pub(super) fn write(dir: &Utf8Path, number: u64, job: &Job) -> io::Result<Utf8PathBuf> {
    let path = dir.join(format!("{PREFIX}{}-{number}.json", std::process::id()));
    write_atomic(&path, &serde_json::to_vec(job)?).map_err(io::Error::other)?;
    Ok(path)
}

/// In the shim: the right to start the job. It ends, and the description goes, when this is dropped.
/// The most bytes of a job's description.
const SPEC_LIMIT: u64 = 64 << 20;

pub(super) struct Claim {
    path: Utf8PathBuf,
    /// Locked, also by the child that is about to become the job.
    _file: File,
}

impl Claim {
    /// The job and the right to start it; `None` if it was revoked.
    pub(super) fn on(path: &Utf8Path) -> io::Result<Option<(Self, Job)>> {
        let file = match open_regular(path) {
            Ok((file, _)) => file,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.source),
        };
        file.lock()?;
        // The former holder of the lock may have removed the file.
        let is_there =
            fs::metadata(path).is_ok_and(|now| file.metadata().is_ok_and(|own| own.ino() == now.ino()));
        if !is_there {
            return Ok(None);
        }
        let job = read_limited(path, SPEC_LIMIT).map_err(|error| error.source)?;
        let job = serde_json::from_slice(&job)?;
        Ok(Some((Self { path: path.to_owned(), _file: file }, job)))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Takes back the right to start a job. A start that is under way is waited for.
pub(super) fn revoke(path: &Utf8Path) {
    let Ok((file, _)) = open_regular(path) else { return };
    let last = Instant::now() + STARTING;
    while matches!(file.try_lock(), Err(TryLockError::WouldBlock)) && Instant::now() < last {
        std::thread::sleep(Duration::from_millis(1));
    }
    let _ = fs::remove_file(path);
}

/// Revokes the jobs that a dead orchestrator requested in its own directory. `pid` is its process id.
pub(crate) fn revoke_all_of(dir: &CliqDir, pid: u32) {
    let prefix = format!("{PREFIX}{pid}-");
    for entry in entries(&dir.messages()) {
        if entry.file_name().starts_with(&prefix) {
            revoke(entry.path());
        }
    }
}

/// Revokes all jobs that a dead orchestrator requested, in a project and in the teams within it.
pub(crate) fn revoke_all(dir: &CliqDir) {
    let mut pending = vec![dir.root().to_owned()];
    while let Some(root) = pending.pop() {
        for entry in entries(&root.join("messages")) {
            if entry.file_name().starts_with(PREFIX) {
                revoke(entry.path());
            }
        }
        pending.extend(entries(&root.join("teams")).map(camino::Utf8DirEntry::into_path));
    }
}

fn entries(dir: &Utf8Path) -> impl Iterator<Item = camino::Utf8DirEntry> + use<> {
    dir.read_dir_utf8().into_iter().flatten().filter_map(Result::ok)
}
