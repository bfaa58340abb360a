//! Runs that are started as `cliq run` in processes of their own, and go on when the starting process ends.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use cliq_backends::BackendKind;
use cliq_fs::{CliqDir, FollowerLock, ProjectLock};
use cliq_model::RunSpec;
use cliq_orchestrator::StartError;
use cliq_project::{Project, ProjectError, RunOptions};
use cliq_protocol::RunId;

use crate::failure::Failure;
use crate::{project, reviews};

/// Maximum size of the part of the output of a run that is read, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;
/// Number of last lines of the output that are quoted.
const QUOTED_LINES: usize = 12;

/// Whether a process works on a run of the project, or follows one elsewhere.
pub(crate) fn is_active(dir: &CliqDir) -> Result<bool, Failure> {
    Ok(ProjectLock::holder(dir)?.is_some() || FollowerLock::holder(dir)?.is_some())
}

/// Prepares a new run: assembles the team if one is named, checks what the run needs, and sets the requirement, which puts the last run
/// aside. Returns the id of the run, for [`spawn_new`].
pub(crate) fn prepare(
    project: &Project,
    team: Option<&str>,
    spec: &RunSpec,
    requirement: &str,
) -> Result<RunId, Failure> {
    if requirement.trim().is_empty() {
        return Err(ProjectError::EmptyRequirement.into());
    }
    ProjectLock::check(project.dir())?;
    if let Some(team) = team {
        project.assemble(team)?;
    }
    check(project, spec)?;
    project.set_requirement(requirement)?;
    // The last run is put aside, and what it waited for with it.
    if let Some(home) = &project.host().home {
        reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    cliq_fs::write_atomic(&project.dir().detached_spec(), &spec.encode())?;
    Ok(cliq_fs::new_run_id())
}

/// Starts the run that [`prepare`] prepared.
pub(crate) fn spawn_new(project: &Project, id: &RunId) -> Result<Child, Failure> {
    let spec = project.dir().detached_spec();
    spawn(project, &["--run-id", id.as_str(), "--spec", spec.as_str()])
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

/// Starts `cliq run` with arguments in a process group of its own. A file has what it prints.
pub(crate) fn spawn(project: &Project, arguments: &[&str]) -> Result<Child, Failure> {
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
pub(crate) fn last_words(dir: &CliqDir) -> String {
    let text = cliq_fs::read_limited(&dir.detached_output(), MAX_OUTPUT).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.trim().lines().collect();
    let from = lines.len().saturating_sub(QUOTED_LINES);
    lines.get(from..).unwrap_or_default().join("\n")
}

/// Cancels the run of a project, as `cliq cancel` does, and waits until it has stopped.
pub(crate) fn cancel(dir: &CliqDir) -> Result<(), Failure> {
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
