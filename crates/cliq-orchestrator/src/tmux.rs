//! The `tmux` launcher: a session per run, a pane per phase.
//!
//! Each project has a tmux server of its own, on a socket that is named after the project's path, with none of the
//! user's configuration: nothing of theirs can change how a run goes, no run can touch their sessions, and two projects
//! never meet. The server inherits the orchestrator's environment, so agents find what they would find as its children.
//!
//! Inside a pane, a shim runs the job ([`run_pane`]): what is printed goes through it to the pane and to the log, so that
//! logs are the same whatever launched the job, and no program takes itself for one that talks to a person.

mod layout;
mod pane;
mod server;
mod shim;
mod titles;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, write_atomic};
use tokio::sync::Mutex;

use crate::launcher::{Job, LaunchError, Launcher, Running};
use crate::view::PhaseStatus;
use layout::{Place, place};
use pane::Pane;
use server::{PaneRow, Script};
pub use server::{TmuxError, TmuxServer};
pub use shim::run_pane;
use titles::Titles;

/// Runs jobs in panes of tmux.
#[derive(Debug)]
pub struct TmuxLauncher {
    server: Arc<TmuxServer>,
    /// The program that runs jobs within panes, and its first arguments: what it gets after them is for [`run_pane`].
    shim: Vec<String>,
    specs: Utf8PathBuf,
    keep: bool,
    /// The pane that this process itself works in, where it is one of the session's.
    own_pane: Option<String>,
    state: Mutex<State>,
    titles: Titles,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the session is there.
    open: bool,
    /// The pane of each job title.
    panes: HashMap<String, String>,
    /// The panes as tmux told of them last; `None` where it must be asked.
    rows: Option<Vec<PaneRow>>,
    /// Of each pane that a job was started in, whether the job is over: known here before tmux tells.
    over: HashMap<String, Arc<AtomicBool>>,
    jobs: u64,
}

impl TmuxLauncher {
    /// A launcher for a project. `shim` is a program, with its first arguments, that calls [`run_pane`] with the path
    /// that it gets as the last one; `cliq` does so as `cliq pane`. With `keep`, the session stays after the run, for
    /// people to read. `own_pane` is the pane of the session that this process itself works in, if any
    /// ([`TmuxServer::own_pane`]).
    #[must_use]
    pub fn new(dir: &CliqDir, shim: Vec<String>, keep: bool, own_pane: Option<String>) -> Self {
        let server = TmuxServer::of(dir);
        Self {
            server: Arc::new(server),
            shim,
            specs: dir.messages(),
            keep,
            own_pane,
            state: Mutex::new(State::default()),
            titles: Titles::new(),
        }
    }

    /// The server that the panes are in.
    #[must_use]
    pub fn server(&self) -> &TmuxServer {
        &self.server
    }

    /// Puts a job's command into a pane, and says which one it is.
    async fn open_pane(&self, state: &mut State, job: &Job, spec: &str) -> Result<(String, u32), TmuxError> {
        if !std::mem::replace(&mut state.open, true) {
            self.titles.begin(Arc::clone(&self.server));
            if self.own_pane.is_none() {
                // What a run whose orchestrator died left, or one that was kept.
                let _ = self.server.kill().await;
            }
        }
        let command: Vec<&str> = self.shim.iter().map(String::as_str).chain([spec]).collect();
        // What is known of the panes may be old, as people open and close them too.
        if let Some(mut rows) = state.rows.take() {
            for row in &mut rows {
                row.dead |= state.over.get(&row.id).is_some_and(|over| over.load(Ordering::Acquire));
            }
            match self.start_in_pane(state, &rows, &job.title, &command).await {
                Err(TmuxError::Refused(_)) => {}
                other => return other,
            }
        }
        let rows = self.server.panes().await?;
        self.start_in_pane(state, &rows, &job.title, &command).await
    }

    async fn start_in_pane(
        &self,
        state: &mut State,
        rows: &[PaneRow],
        title: &str,
        command: &[&str],
    ) -> Result<(String, u32), TmuxError> {
        let known = state.panes.get(title).filter(|id| rows.iter().any(|row| row.id == **id));
        let mut script = Script::new();
        match place(rows, known.map(String::as_str), self.own_pane.as_deref()) {
            Place::NewSession => script.new_session(&self.server.session, command),
            Place::Respawn(id) => script.respawn(&id, command),
            Place::Split { window, beside } => script.split(&window, &beside, command),
            Place::NewWindow => script.new_window(&self.server.session, command),
        }
        script.list();
        let started = self.server.start_job(script).await?;
        state.panes.retain(|_, pane| *pane != started.pane);
        state.panes.insert(title.to_owned(), started.pane.clone());
        state.rows = (!started.rows.is_empty()).then_some(started.rows);
        self.titles.new_pane(title, &started.pane);
        Ok((started.pane, started.pid))
    }

    fn write_spec(&self, job: &Job, number: u64) -> io::Result<Utf8PathBuf> {
        let path = self.specs.join(format!(".pane-{}-{number}.json", std::process::id()));
        let spec = serde_json::to_vec(job)?;
        write_atomic(&path, &spec).map_err(io::Error::other)?;
        Ok(path)
    }
}

#[async_trait]
impl Launcher for TmuxLauncher {
    async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        let failed = |source: io::Error| LaunchError { program: job.program.clone(), source };
        shim::check(job).map_err(failed)?;
        let mut state = self.state.lock().await;
        state.jobs += 1;
        let spec = self.write_spec(job, state.jobs).map_err(failed)?;
        let log_start = job.log.metadata().map_or(0, |meta| meta.len());
        match self.open_pane(&mut state, job, spec.as_str()).await {
            Ok((id, pid)) => {
                let (server, exit_file) = (Arc::clone(&self.server), shim::exit_file(&spec));
                let pane = Pane::new(server, id.clone(), pid, job, exit_file, log_start).map_err(failed)?;
                state.over.insert(id, pane.over());
                Ok(Box::new(pane))
            }
            Err(error) => {
                let _ = fs::remove_file(&spec);
                Err(failed(io::Error::other(error)))
            }
        }
    }

    fn phase_changed(&self, title: &str, status: PhaseStatus) {
        self.titles.set(title, status);
    }

    async fn close(&self) {
        if !self.state.lock().await.open {
            return;
        }
        if self.keep {
            self.titles.flush().await;
            return;
        }
        match &self.own_pane {
            None => drop(self.server.kill().await),
            // The pane that this runs in is closed by leaving.
            Some(own) => drop(self.server.kill_others(own).await),
        }
    }
}
