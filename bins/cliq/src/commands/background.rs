//! Common parts of the background processes: daemon and server.

use std::time::{Duration, Instant};

use camino::Utf8Path;
use cliq_fs::{CliqDir, LockError, ProjectLock};
use rustix::process::{Pid, Signal};

use crate::failure::Failure;

/// Returns the failure of a `daemon` or `server` that cannot take the lock of its home.
pub(super) fn held(error: LockError, what: &str) -> Failure {
    match error {
        LockError::Held { holder, project } => {
            let who = holder.map_or(String::new(), |pid| format!(" (process {pid})"));
            Failure::refused(format!("another {what}{who} serves {project}"))
                .hint(format!("`cliq {what} status` says more, `cliq {what} stop` stops it"))
        }
        other => other.into(),
    }
}

/// Returns the part of a log after its first `from` bytes.
pub(super) fn log_since(log: &Utf8Path, from: u64) -> String {
    let bytes = cliq_fs::read_limited(log, cliq_fs::DEFAULT_FILE_LIMIT).unwrap_or_default();
    let from = usize::try_from(from).unwrap_or(0).min(bytes.len());
    String::from_utf8_lossy(&bytes[from..]).into_owned()
}

/// Asks the process that holds the lock of a directory to stop, and waits for its end. `false` where none holds it.
pub(super) fn stop_holder(dir: &CliqDir, what: &str, patience: Duration) -> Result<bool, Failure> {
    let pid = match ProjectLock::holder(dir)? {
        None => return Ok(false),
        Some(None) => {
            let message = format!("a {what} is running and has not said which process it is; try again");
            return Err(Failure::failed(message));
        }
        Some(Some(pid)) => pid,
    };
    let process = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let process = process.ok_or_else(|| Failure::failed(format!("{pid} is not a process")))?;
    rustix::process::kill_process(process, Signal::TERM)
        .map_err(|error| Failure::failed(format!("cannot stop process {pid}: {error}")))?;
    let deadline = Instant::now() + patience;
    while ProjectLock::holder(dir)?.flatten() == Some(pid) {
        if Instant::now() > deadline {
            return Err(Failure::failed(format!(
                "process {pid} has not ended within {} s",
                patience.as_secs()
            )));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(true)
}
