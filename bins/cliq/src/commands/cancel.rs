//! `cliq cancel`

use std::process::ExitCode;
use std::time::{Duration, Instant};

use cliq_fs::{
    CliqDir, FollowerLock, FsError, LockError, PipelineStatus, ProjectLock, read_status, write_status,
};
use cliq_orchestrator::internals::end_dead_run;
use cliq_orchestrator::{Journal, RunEvent, Timing};
use cliq_project::internals::timing;
use cliq_project::{Project, RunOptions, RunStart, RunState};

use super::execution::execute_until;
use crate::failure::Failure;
use crate::{project, reviews, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let project = project::open()?;
    loop {
        if let Some(holder) = holder_of(project.dir())? {
            return stop(&project, holder);
        }
        if is_parked(&project) {
            return cancel_parked(&project);
        }
        // No run starts while its leftovers are ended: a resumed one has the same id.
        match ProjectLock::acquire(project.dir()) {
            // A run can begin and park while the lock is waited for.
            Ok(lock) if is_parked(&project) => drop(lock),
            Ok(_lock) => return end_leftovers(&project),
            // A run has begun: it is asked to stop.
            Err(LockError::Held { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Asks the run that `holder` works on to stop, and waits until it has.
fn stop(project: &Project, holder: Option<u32>) -> Result<ExitCode, Failure> {
    let dir = project.dir();
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
    // It may have parked at the moment of the request.
    if is_parked(project) {
        return cancel_parked(project);
    }
    ui::line("it has stopped")?;
    Ok(ExitCode::SUCCESS)
}

/// Ends the processes of a run whose orchestrator died. The caller holds the project's lock.
fn end_leftovers(project: &Project) -> Result<ExitCode, Failure> {
    let dir = project.dir();
    let last = Journal::read(&dir.journal())?;
    let run_id = last.as_ref().filter(|journal| !has_end(journal)).and_then(Journal::run_id);
    let Some(run_id) = run_id else {
        return Err(Failure::failed("nothing is running in this project")
            .hint("`cliq status` shows how the last run ended"));
    };
    let timing = project.settings().map_or_else(|_| Timing::default(), |settings| timing(&settings));
    let left = match end_dead_run(dir, run_id, timing.kill_grace) {
        0 => "no process of it is left".to_owned(),
        1 => "1 process that it left was ended".to_owned(),
        n => format!("{n} processes that it left were ended"),
    };
    ui::line(format!("run {run_id} was interrupted: its orchestrator is gone; {left}"))?;
    ui::hint("`cliq run --resume` goes on with the run");
    Ok(ExitCode::SUCCESS)
}

/// Whether the record of a run has an end.
fn has_end(journal: &Journal) -> bool {
    let mut records = journal.records.iter().rev().map(|record| &record.event);
    let last = records.find(|event| {
        matches!(
            event,
            RunEvent::RunFinished { .. } | RunEvent::RunStarted { .. } | RunEvent::RunResumed { .. }
        )
    });
    matches!(last, Some(RunEvent::RunFinished { .. }))
}

fn is_parked(project: &Project) -> bool {
    let last = project.workflow().ok().and_then(|workflow| project.last_run(&workflow).ok().flatten());
    last.is_some_and(|(_, view)| RunState::of(Some(&view), false) == RunState::Waiting)
}

/// Cancels a parked run, with its reviews: wakes it with the request to cancel.
fn cancel_parked(project: &Project) -> Result<ExitCode, Failure> {
    let settings = project.settings()?;
    let plan = project.run_plan_of(project.workflow()?, &settings, &RunOptions::default())?;
    let start = RunStart::Resume { from: None };
    execute_until(project.host(), plan, &start, std::future::ready(()), |_, _| Ok(()))?;
    // An agent that was ended as it started has not come to it.
    if let Some(home) = &project.host().home {
        reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    ui::line("the parked run is cancelled")?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the process that works in the project, or that follows or queues a run in a container or cluster.
fn holder_of(dir: &CliqDir) -> Result<Option<Option<u32>>, FsError> {
    Ok(match FollowerLock::holder(dir)? {
        Some(follower) => Some(follower),
        None => ProjectLock::holder(dir)?,
    })
}
