//! `cliq cancel`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cliq_fs::{CliqDir, FollowerLock, FsError, PipelineStatus, ProjectLock, read_status, write_status};
use cliq_orchestrator::Timing;
use cliq_project::timing;

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let dir = project.dir();
    let Some(holder) = holder_of(dir)? else {
        return Err(Failure::failed("nothing is running in this project")
            .hint("`cliq status` shows how the last run ended"));
    };
    write_status(dir, PipelineStatus::Cancelled)?;
    let process = holder.map(|pid| format!(" (process {pid})")).unwrap_or_default();
    ui::line(format!("asked the run{process} to stop"))?;
    // It sees the request at its next poll at the latest, and then gives its agents a moment to end.
    // Settings that cannot be read must not keep a run from being stopped.
    let timing = project.settings().map_or_else(|_| Timing::default(), |settings| timing(&settings));
    let deadline = Instant::now() + timing.poll_interval + timing.kill_grace * 2 + Duration::from_secs(15);
    while holder_of(dir)?.is_some() {
        // One that began at this moment took the request for how the last run ended.
        if read_status(dir).is_none() {
            write_status(dir, PipelineStatus::Cancelled)?;
        }
        if Instant::now() > deadline {
            return Err(Failure::failed("the run has not stopped yet")
                .hint("`cliq status` shows how it stands; end its process by hand if it hangs"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    ui::line("it has stopped")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the process that works in the project, or that follows or queues a run in a container or cluster.
fn holder_of(dir: &CliqDir) -> Result<Option<Option<u32>>, FsError> {
    Ok(match FollowerLock::holder(dir)? {
        Some(follower) => Some(follower),
        None => ProjectLock::holder(dir)?,
    })
}
