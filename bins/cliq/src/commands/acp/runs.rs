//! Runs of prompts: started as `cliq run` in a process of its own.

use std::process::Child;

use cliq_fs::CliqDir;
use cliq_model::RunSpec;
use cliq_orchestrator::{Journal, RunView, SteeringReceipt, steer};
use cliq_project::internals::title_of;
use cliq_project::{Project, RunState};
use cliq_protocol::{NewSteering, RunId};
use uuid::Uuid;

use super::sessions::OpenSession;
use crate::failure::Failure;
use crate::{reviews, run_process};

/// State of the run of a project.
pub(super) struct LastRun {
    pub(super) id: RunId,
    pub(super) state: RunState,
    /// Number of records in its journal.
    pub(super) records: usize,
}

/// Returns the last run of a project, or `None` if nothing has run.
pub(super) fn last_run(project: &Project) -> Result<Option<LastRun>, Failure> {
    let running = run_process::is_active(project.dir())?;
    let Some(journal) = Journal::read(&project.dir().journal())? else { return Ok(None) };
    let Some(id) = journal.run_id().cloned() else { return Ok(None) };
    let state = RunState::of(Some(&RunView::of(&journal)), running);
    Ok(Some(LastRun { id, state, records: journal.records.len() }))
}

/// Run that a turn follows.
#[derive(Debug)]
pub(super) struct FollowedRun {
    pub(super) id: RunId,
    /// Process of the run, if this one started it.
    pub(super) child: Option<Child>,
    /// Number of records that the journal had before.
    pub(super) before: usize,
}

impl Drop for FollowedRun {
    /// Lets a thread wait for the process, which goes on.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            std::thread::spawn(move || child.wait());
        }
    }
}

/// Starts a new run with a requirement.
pub(super) fn start(session: &mut OpenSession, requirement: &str) -> Result<FollowedRun, Failure> {
    let project = session.project.clone();
    let spec = RunSpec {
        agent: session.record.agent.clone(),
        sandbox: session.record.sandbox,
        ..RunSpec::default()
    };
    let id = run_process::prepare(&project, session.record.team.as_deref(), &spec, requirement)?;
    session.change(|record| {
        record.add_run(id.clone());
        record.title = title_of(requirement);
    })?;
    let child = run_process::spawn_new(&project, &id)?;
    Ok(FollowedRun { id, child: Some(child), before: 0 })
}

/// Continues the last run of a project.
pub(super) fn resume(session: &mut OpenSession, last: &LastRun) -> Result<FollowedRun, Failure> {
    session.change(|record| record.add_run(last.id.clone()))?;
    let child = run_process::spawn(&session.project, &["--resume"])?;
    Ok(FollowedRun { id: last.id.clone(), child: Some(child), before: last.records })
}

/// Sends guidance to a run. Blocks until it is recorded.
pub(super) fn send_guidance(dir: &CliqDir, run: &RunId, text: &str) -> Result<SteeringReceipt, Failure> {
    let new = NewSteering::new(Uuid::now_v7().to_string(), &reviews::user(), text, None)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(steer(dir, run, new)?)
}
