//! Which launcher a run uses (SPEC section 8).

use std::io::IsTerminal;
use std::sync::Arc;

use cliq_fs::CliqDir;
use cliq_orchestrator::{Launcher, ProcessLauncher, TmuxLauncher, TmuxServer};
use cliq_settings::Settings;

use crate::args::LauncherName;
use crate::failure::Failure;

/// What was asked for on the command line, else the setting, else tmux where it is installed and a person looks on.
pub(crate) fn choose(
    asked: Option<LauncherName>,
    plain: bool,
    settings: &Settings,
) -> Result<LauncherName, Failure> {
    let set = match settings.text("launcher").as_deref() {
        Some("process") => Some(LauncherName::Process),
        Some("tmux") => Some(LauncherName::Tmux),
        _ => None,
    };
    let headless = plain.then_some(LauncherName::Process);
    match asked.or(headless).or(set) {
        Some(LauncherName::Tmux) => {
            need_tmux()?;
            Ok(LauncherName::Tmux)
        }
        Some(LauncherName::Process) => Ok(LauncherName::Process),
        None if std::io::stdout().is_terminal() && TmuxServer::installed().is_some() => {
            Ok(LauncherName::Tmux)
        }
        None => Ok(LauncherName::Process),
    }
}

pub(crate) fn need_tmux() -> Result<(), Failure> {
    if TmuxServer::installed().is_some() {
        return Ok(());
    }
    Err(Failure::usage("there is no tmux, or one older than 3.2")
        .hint("install tmux, or use `--launcher process`"))
}

/// Makes it.
pub(crate) fn make(
    name: LauncherName,
    dir: &CliqDir,
    settings: &Settings,
) -> Result<Arc<dyn Launcher>, Failure> {
    Ok(match name {
        LauncherName::Process => Arc::new(ProcessLauncher),
        LauncherName::Tmux => {
            let shim = vec![crate::project::own_program()?.into_string(), "pane".to_owned()];
            Arc::new(TmuxLauncher::new(dir, shim, settings.flag("tmux.keep_session"), own_pane(dir)))
        }
    })
}

/// The pane of the project's session that this process works in: that of a detached run.
pub(crate) fn own_pane(dir: &CliqDir) -> Option<String> {
    let variable = |name: &str| std::env::var(name).ok();
    TmuxServer::of(dir).own_pane(&variable("TMUX")?, &variable("TMUX_PANE")?)
}
