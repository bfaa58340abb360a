//! The project while a run of it is followed: its lock, and requests to cancel.

use std::time::Duration;

use cliq_fs::{CliqDir, FollowerLock, PipelineStatus, ProjectLock, clear_status, read_status};

use crate::cancellation::Cancellation;
use crate::error::BackendError;
use cliq_orchestrator::internals::blocking;

/// Polling interval for requests to cancel while a run is queued.
const POLL: Duration = Duration::from_millis(200);

/// Locks a project for the follower of a new run. No other run can start, and `cliq cancel` reaches the follower.
pub(crate) fn lock(dir: &CliqDir) -> Result<FollowerLock, BackendError> {
    let lock = FollowerLock::acquire(dir)?;
    ProjectLock::check(dir)?;
    // The end of the last run is not a request to cancel this one.
    clear_status(dir)?;
    Ok(lock)
}

/// Locks a project for a further follower of an active run, if no other follower has it.
pub(crate) fn try_lock(dir: &CliqDir) -> Option<FollowerLock> {
    FollowerLock::acquire(dir).ok()
}

/// Waits for a request to cancel: by `cliq cancel`, or by the token.
pub(crate) async fn cancelled(dir: &CliqDir, cancel: &Cancellation) {
    let by_command = async {
        loop {
            let dir = dir.clone();
            if blocking(move || read_status(&dir)).await == Some(PipelineStatus::Cancelled) {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    tokio::select! {
        () = by_command => {}
        () = cancel.cancelled() => {}
    }
}
