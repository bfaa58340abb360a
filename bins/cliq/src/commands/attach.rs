//! `cliq attach`

use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cliq_fs::ProjectLock;
use cliq_orchestrator::TmuxServer;
use cliq_project::LauncherKind;

use crate::failure::Failure;
use crate::{project, ui};

/// Deadline for the appearance of a pane.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) fn run(phase: Option<&str>) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let dir = project.dir();
    LauncherKind::require_tmux()?;
    let server = TmuxServer::of(dir);
    if !server.is_running() {
        let running = ProjectLock::holder(dir)?.is_some();
        let plans = dir.root().join("plans");
        return Err(if !running && plans.is_dir() {
            Failure::failed("no run is under way in this project").hint(
                "`cliq plan attach PLAN` shows the agents of a plan, `cliq status` how the last run ended",
            )
        } else if running {
            Failure::failed("the run of this project has no panes: it works in a container or without tmux, or has just started")
                .hint("`cliq status --watch` follows it, `cliq logs PHASE -f` shows what a phase prints")
        } else {
            Failure::failed("nothing is running in this project")
                .hint("`cliq status` shows how the last run ended; `cliq settings set tmux.keep_session true` keeps panes after a run")
        });
    }
    if let Some(phase) = phase {
        let workflow = project.workflow()?;
        if workflow.find(phase).is_none() {
            let near = cliq_workflow::nearest(phase, workflow.phases().map(|(_, p)| p.name.as_str()));
            let failure = Failure::usage(format!("the team has no phase `{phase}`"));
            return Err(match near {
                Some(near) => failure.hint(format!("did you mean `{near}`?")),
                None => failure,
            });
        }
        // A phase that began just now gets its pane in a moment.
        let patience = if ProjectLock::holder(dir)?.is_some() { PATIENCE } else { Duration::ZERO };
        let deadline = Instant::now() + patience;
        let mut shown = server.show(phase)?;
        while !shown && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(50));
            shown = server.show(phase)?;
        }
        if !shown {
            return Err(Failure::failed(format!(
                "`{phase}` has no pane: it has not started, or its pane was needed for another"
            ))
            .hint(format!("`cliq status` shows where it stands, `cliq logs {phase}` what it printed")));
        }
    }
    enter(&server, "`cliq logs PHASE -f` shows what a phase prints")
}

/// Gives this terminal to a session. `else_hint` says what can be done if there is none.
pub(super) fn enter(server: &TmuxServer, else_hint: &str) -> Result<ExitCode, Failure> {
    if !std::io::stdout().is_terminal() {
        return Err(Failure::usage("there is no terminal to show the panes on").hint(else_hint));
    }
    if std::env::var_os("TMUX").is_some() {
        ui::hint(
            "this is tmux within tmux: press its prefix twice to reach the inner one, C-b C-b d to leave",
        );
    }
    let session = server.shown_session()?;
    let error = server.command().args(["attach-session", "-t", &session]).exec();
    Err(Failure::failed(format!("cannot run tmux: {error}")))
}
