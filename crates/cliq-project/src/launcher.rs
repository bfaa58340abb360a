//! Choice of the launcher for the processes of a run (docs/decisions/0008-tmux.md).

use std::sync::Arc;

use cliq_fs::CliqDir;
use cliq_orchestrator::{Launcher, ProcessLauncher, TmuxLauncher, TmuxServer};
use cliq_settings::{DockerSettings, KubernetesSettings, LauncherChoice, RunSettings, Settings};

use crate::host::Host;
use crate::{Project, ProjectError};

/// A kind of launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum LauncherKind {
    /// Plain child processes.
    Process,
    /// A pane of tmux for each phase.
    Tmux,
}

impl LauncherKind {
    /// The launcher of a run: the requested one, else the one in the settings, else tmux where it is installed and a person
    /// watches (`interactive`), else plain child processes.
    ///
    /// # Errors
    /// tmux is requested or set, and is not installed.
    pub fn choose(
        requested: Option<Self>,
        interactive: bool,
        settings: &Settings,
    ) -> Result<Self, ProjectError> {
        let set = match RunSettings::read(settings).launcher {
            LauncherChoice::Process => Some(Self::Process),
            LauncherChoice::Tmux => Some(Self::Tmux),
            LauncherChoice::Auto => None,
        };
        match requested.or(set) {
            Some(Self::Tmux) => Self::require_tmux().map(|()| Self::Tmux),
            Some(Self::Process) => Ok(Self::Process),
            None if interactive && TmuxServer::installed().is_some() => Ok(Self::Tmux),
            None => Ok(Self::Process),
        }
    }

    /// Checks that tmux is installed.
    ///
    /// # Errors
    /// Returns an error if tmux is missing or older than 3.2.
    pub fn require_tmux() -> Result<(), ProjectError> {
        TmuxServer::installed().map(drop).ok_or(ProjectError::NoTmux)
    }
}

/// Whether runs and agents of plans work in containers or in a cluster.
pub(crate) fn runs_elsewhere(settings: &Settings) -> bool {
    KubernetesSettings::read(settings).enabled || DockerSettings::read(settings).enabled
}

impl Project {
    /// A launcher for runs of this project.
    #[must_use]
    pub fn launcher(&self, kind: LauncherKind, settings: &Settings) -> Arc<dyn Launcher> {
        match kind {
            LauncherKind::Process => Arc::new(ProcessLauncher),
            LauncherKind::Tmux => {
                let shim = vec![self.host().program.to_string(), "pane".to_owned()];
                let keep = RunSettings::read(settings).keep_session;
                Arc::new(TmuxLauncher::new(self.dir(), shim, keep, self.host().own_pane(self.dir())))
            }
        }
    }
}

impl Host {
    /// The pane that this process runs in, if it is one of the project's own tmux session: that of a detached run.
    #[doc(hidden)]
    #[must_use]
    pub fn own_pane(&self, dir: &CliqDir) -> Option<String> {
        TmuxServer::of(dir).own_pane(self.environment.get("TMUX")?, self.environment.get("TMUX_PANE")?)
    }
}
