//! The process of a run: `cliq run --headless` in the run's project.
//!
//! Its standard output is the run's log file, which is locked. The process inherits the lock, and so does a process that is
//! about to become it: a locked file shows that the orchestrator is alive, even if the server that started it is dead.

use std::fs::{File, TryLockError};
use std::process::Stdio;

use camino::Utf8Path;
use cliq_fs::{CliqDir, FollowerLock, PipelineStatus, ProjectLock, write_status};
use cliq_project::Host;
use cliq_runs::Run;
use tokio::process::{Child, Command};

/// Starts the orchestrator of a run. It does not end with the server.
///
/// `task_instance` is the name of this cliq for a run that is a task of A2A.
pub(super) fn start(
    host: &Host,
    run: &Run,
    log: &Utf8Path,
    task_instance: Option<&str>,
) -> std::io::Result<Child> {
    let file = open_log(log)?;
    let request = &run.request;
    let mut command = Command::new(&host.program);
    command.args(["-C", run.workspace.as_str(), "run", "--headless", "--run-id", run.id.as_str()]);
    if let Some(instance_id) = task_instance {
        command.args(["--a2a-events", instance_id]);
    }
    if run.life.resume {
        command.arg("--resume");
        if let Some(from) = &request.from {
            command.args(["--from", from]);
        }
    } else {
        command.arg("--force");
        for (key, value) in &request.inputs {
            command.args(["--input", &format!("{key}={value}")]);
        }
    }
    if let Some(agent) = &request.agent {
        command.args(["--agent", agent]);
    }
    if let Some(n) = request.max_parallel {
        command.args(["--max-parallel", &n.to_string()]);
    }
    if let Some(tokens) = request.budget.tokens {
        command.args(["--budget-tokens", &tokens.to_string()]);
    }
    if let Some(usd) = request.budget.usd {
        command.args(["--budget-usd", &usd.to_string()]);
    }
    spawn(command, file)
}

/// Starts a process that follows the Job of a run in a cluster. It starts nothing else: `cliq run` refuses an id that has begun and has no Job.
pub(super) fn follow(host: &Host, run: &Run, log: &Utf8Path) -> std::io::Result<Child> {
    let file = open_log(log)?;
    let mut command = Command::new(&host.program);
    command.args(["-C", run.workspace.as_str(), "run", "--headless", "--force", "--run-id", run.id.as_str()]);
    spawn(command, file)
}

/// Opens the log of a run, and locks it. Whoever inherits the file holds the lock.
fn open_log(log: &Utf8Path) -> std::io::Result<File> {
    if let Some(dir) = log.parent() {
        std::fs::create_dir_all(dir)?;
    }
    let file = File::options().create(true).append(true).open(log)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(std::io::Error::other("its orchestrator lives")),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    Ok(file)
}

fn spawn(mut command: Command, file: File) -> std::io::Result<Child> {
    command
        .env_remove("CLIQ_ADMIN_TOKEN")
        .env("NO_COLOR", "1")
        // Inputs come from callers.
        .env(cliq_project::GUARD_INPUTS, "1")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        // What a terminal sends to the server's group is not for the run.
        .process_group(0);
    command.spawn()
}

/// Whether the orchestrator that writes this log lives.
pub(super) fn is_alive(log: &Utf8Path) -> bool {
    let Ok(file) = File::open(log) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Whether any orchestrator works in a project.
pub(super) fn is_project_busy(workspace: &Utf8Path) -> bool {
    CliqDir::open(workspace).is_ok_and(|dir| ProjectLock::holder(&dir).is_ok_and(|holder| holder.is_some()))
}

/// Whether somebody follows a run that works elsewhere, or waits for it to begin.
pub(super) fn is_waiting(workspace: &Utf8Path) -> bool {
    CliqDir::open(workspace).is_ok_and(|dir| FollowerLock::holder(&dir).is_ok_and(|holder| holder.is_some()))
}

/// Asks the orchestrator that works in a project to stop, as `cliq cancel` does.
pub(super) fn send_cancel(workspace: &Utf8Path) {
    let sent = CliqDir::open(workspace).and_then(|dir| {
        if cliq_fs::read_status(&dir).is_none() {
            write_status(&dir, PipelineStatus::Cancelled)
        } else {
            Ok(())
        }
    });
    if let Err(error) = sent {
        tracing::warn!(%error, "the request to cancel cannot be handed over; it is tried again");
    }
}
