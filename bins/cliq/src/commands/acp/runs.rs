//! Runs of prompts: started as `cliq run` in a process of its own.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use cliq_backends::BackendKind;
use cliq_fs::{CliqDir, FollowerLock, ProjectLock};
use cliq_model::RunSpec;
use cliq_orchestrator::{Journal, RunView, StartError, SteeringReceipt, steer};
use cliq_project::internals::title_of;
use cliq_project::{Project, ProjectError, RunOptions, RunState};
use cliq_protocol::{NewSteering, RunId};
use uuid::Uuid;

use super::sessions::OpenSession;
use crate::failure::Failure;
use crate::{project, reviews};

/// Maximum size of the part of the output of a run that is read, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;
/// Number of last lines of the output that are quoted.
const QUOTED_LINES: usize = 12;

/// State of the run of a project.
pub(super) struct LastRun {
    pub(super) id: RunId,
    pub(super) state: RunState,
    /// Number of records in its journal.
    pub(super) records: usize,
}

/// Whether a process works on a run of the project, or follows one elsewhere.
pub(super) fn is_active(dir: &CliqDir) -> Result<bool, Failure> {
    Ok(ProjectLock::holder(dir)?.is_some() || FollowerLock::holder(dir)?.is_some())
}

/// Returns the last run of a project, or `None` if nothing has run.
pub(super) fn last_run(project: &Project) -> Result<Option<LastRun>, Failure> {
    let running = is_active(project.dir())?;
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
    if requirement.trim().is_empty() {
        return Err(ProjectError::EmptyRequirement.into());
    }
    let project = session.project.clone();
    ProjectLock::check(project.dir())?;
    if let Some(team) = &session.record.team {
        project.assemble(team)?;
    }
    let spec = RunSpec {
        agent: session.record.agent.clone(),
        sandbox: session.record.sandbox,
        ..RunSpec::default()
    };
    check(&project, &spec)?;
    project.set_requirement(requirement)?;
    // The last run is put aside, and what it waited for with it.
    if let Some(home) = &project.host().home {
        reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    let id = Uuid::now_v7().to_string();
    let run = RunId::parse_uuid(&id).ok_or_else(|| Failure::failed("cannot make the id of a run"))?;
    session.change(|record| {
        record.add_run(run.clone());
        record.title = title_of(requirement);
    })?;
    cliq_fs::write_atomic(&project.dir().detached_spec(), &spec.encode())?;
    let child =
        spawn(&project, &["--run-id", run.as_str(), "--spec", project.dir().detached_spec().as_str()])?;
    Ok(FollowedRun { id: run, child: Some(child), before: 0 })
}

/// Continues the last run of a project.
pub(super) fn resume(session: &mut OpenSession, last: &LastRun) -> Result<FollowedRun, Failure> {
    session.change(|record| record.add_run(last.id.clone()))?;
    let child = spawn(&session.project, &["--resume"])?;
    Ok(FollowedRun { id: last.id.clone(), child: Some(child), before: last.records })
}

/// Checks a run before its requirement replaces the last one: the team, its agents and their variables.
fn check(project: &Project, spec: &RunSpec) -> Result<(), Failure> {
    let (workflow, settings) = (project.workflow()?, project.settings()?);
    let mut options = RunOptions::new().with_spec(spec.clone());
    if BackendKind::of_settings(&settings).is_some() {
        options = options.elsewhere();
    }
    let is_elsewhere = options.is_elsewhere;
    let plan = project.run_plan_of(workflow, &settings, &options)?;
    if !is_elsewhere {
        plan.check(&|name| project.host().has_variable(name)).map_err(StartError::from)?;
    }
    Ok(())
}

/// Starts `cliq run` in a process group of its own: it goes on when the editor and this process end. What it prints is in a file.
fn spawn(project: &Project, arguments: &[&str]) -> Result<Child, Failure> {
    let dir = project.dir();
    let output = File::create(dir.detached_output())?;
    let child = Command::new(project::own_program()?)
        .args(["-C", dir.workspace().as_str(), "run", "--headless", "--yes"])
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(output.try_clone()?)
        .stderr(output)
        .process_group(0)
        .spawn()
        .map_err(|error| Failure::failed(format!("cannot start the run: {error}")))?;
    Ok(child)
}

/// Returns the last lines that the process of a run printed.
pub(super) fn last_words(dir: &CliqDir) -> String {
    let text = cliq_fs::read_limited(&dir.detached_output(), MAX_OUTPUT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.trim().lines().collect();
    let from = lines.len().saturating_sub(QUOTED_LINES);
    lines.get(from..).unwrap_or_default().join("\n")
}

/// Sends guidance to a run. Blocks until it is recorded.
pub(super) fn send_guidance(dir: &CliqDir, run: &RunId, text: &str) -> Result<SteeringReceipt, Failure> {
    let new = NewSteering::new(Uuid::now_v7().to_string(), &reviews::user(), text, None)
        .map_err(|error| Failure::usage(error.to_string()))?;
    Ok(steer(dir, run, new)?)
}

/// Cancels the run of a project, as `cliq cancel` does, and waits until it has stopped.
pub(super) fn cancel(dir: &CliqDir) -> Result<(), Failure> {
    let output = Command::new(project::own_program()?)
        .args(["-C", dir.workspace().as_str(), "cancel"])
        .stdin(Stdio::null())
        .output()?;
    if output.status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(&output.stderr);
    Err(Failure::failed(format!("cannot cancel the run: {}", words.trim())))
}
