//! `cliq daemon`

use std::fs::{self, OpenOptions};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cliq_fs::{CliqDir, ProjectLock};
use cliq_lifecycle::{Daemon, Plans, RunCompanion};
use cliq_orchestrator::RunPlan;
use cliq_project::Host;
use cliq_project::internals::SettingsPlanAgents;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::background::{held, log_since, stop_holder};
use super::signals::stop_by_signals;
use crate::args::DaemonCommand;
use crate::failure::Failure;
use crate::gateway::{self, block_on, home};
use crate::project;
use crate::run_export::RunExport;
use crate::ui::{self, paint};

/// Deadline for the start of a daemon, and for the end of all agents.
const BEGINS: Duration = Duration::from_secs(10);
const ENDS: Duration = Duration::from_secs(60);

pub(super) fn run(command: &DaemonCommand) -> Result<ExitCode, Failure> {
    match command {
        DaemonCommand::Run { detached } => work(*detached),
        DaemonCommand::Start => start(),
        DaemonCommand::Stop => stop(),
        DaemonCommand::Status { json } => status(*json),
    }
}

/// `CLIQ_HOME/daemon`: its lock and its log.
pub(super) fn place() -> Result<CliqDir, Failure> {
    let home = home()?;
    let dir = home.join("daemon");
    fs::create_dir_all(&dir).map_err(|error| Failure::failed(format!("cannot create {dir}: {error}")))?;
    Ok(CliqDir::at(&dir, &home)?)
}

fn work(detached: bool) -> Result<ExitCode, Failure> {
    if detached {
        // The terminal that started it may be closed.
        let _ = rustix::process::setsid();
    }
    let dir = place()?;
    let _lock = ProjectLock::acquire(&dir).map_err(|error| held(error, "daemon"))?;
    block_on(async {
        let store = gateway::open().await?;
        let place = store.location().to_string();
        let stop = CancellationToken::new();
        stop_by_signals(&stop, detached)?;
        print(&format!("serving {place}, process {}", std::process::id()));
        let host = project::host();
        let agents =
            SettingsPlanAgents::new(host.clone()).with_companions(move |plan| companion(&host, plan));
        let daemon = Daemon::new(Plans::new(store), Arc::new(agents), |event| print(&event.to_string()));
        daemon.run(&home()?, stop).await?;
        print("stopped");
        Ok(ExitCode::SUCCESS)
    })
}

/// Returns the export of an agent's run.
fn companion(host: &Host, plan: &RunPlan) -> Option<Box<dyn RunCompanion>> {
    RunExport::of(host, plan).map(|export| Box::new(export) as Box<dyn RunCompanion>)
}

impl RunCompanion for RunExport {
    fn begin(&mut self) {
        self.run_begun();
    }

    fn end(self: Box<Self>) {
        self.finish();
    }
}

/// Writes a line of the log. A log without a reader is no reason to stop.
fn print(text: &str) {
    let _ = ui::line(format!("{} {}", paint(ui::DIM, cliq_fs::now()), ui::plain(text)));
}

fn start() -> Result<ExitCode, Failure> {
    let dir = place()?;
    ProjectLock::check(&dir).map_err(|error| held(error, "daemon"))?;
    let log = dir.root().join("daemon.log");
    let file = OpenOptions::new().create(true).append(true).open(&log)?;
    let begins_at = file.metadata()?.len();
    let mut child = Command::new(std::env::current_exe()?)
        .args(["daemon", "run", "--detached"])
        .current_dir(home()?)
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()?;
    let deadline = Instant::now() + BEGINS;
    loop {
        if ProjectLock::holder(&dir)?.flatten() == Some(child.id())
            && log_since(&log, begins_at).contains("serving")
        {
            ui::line(format!("the daemon is running, process {}; its log is {log}", child.id()))?;
            return Ok(ExitCode::SUCCESS);
        }
        if child.try_wait()?.is_some() || Instant::now() > deadline {
            let text = log_since(&log, begins_at);
            return Err(Failure::failed(format!("the daemon did not start:\n{}", ui::plain(text.trim()))));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn stop() -> Result<ExitCode, Failure> {
    if !stop_holder(&place()?, "daemon", ENDS)? {
        ui::line("no daemon is running")?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line("the daemon has stopped; the next daemon restarts unfinished agents")?;
    Ok(ExitCode::SUCCESS)
}

fn status(as_json: bool) -> Result<ExitCode, Failure> {
    let dir = place()?;
    let holder = ProjectLock::holder(&dir)?;
    let log = dir.root().join("daemon.log");
    if as_json {
        ui::json(
            &json!({"running": holder.is_some(), "pid": holder.flatten(), "home": dir.workspace(), "log": log}),
        )?;
    } else {
        match holder {
            None => ui::line("no daemon is running: `cliq daemon start` starts one")?,
            Some(pid) => {
                let pid = pid.map_or(String::new(), |pid| format!(", process {pid}"));
                ui::line(format!(
                    "the daemon is {}{pid}; it serves {}",
                    paint(ui::GREEN, "running"),
                    dir.workspace()
                ))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
