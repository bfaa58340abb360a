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

use std::collections::HashMap;
use std::fs;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use cliq_fs::{CliqDir, write_atomic};
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::launcher::{Job, LaunchError, Launcher, Running};
use crate::view::PhaseStatus;
use layout::{Place, place};
use pane::Pane;
use server::Script;
pub use server::{TmuxError, TmuxServer};
pub use shim::run_pane;

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
    titles: mpsc::UnboundedSender<Title>,
    pending_titles: std::sync::Mutex<Option<mpsc::UnboundedReceiver<Title>>>,
}

/// What is asked of the task that sets titles.
#[derive(Debug)]
enum Title {
    Set(String, PhaseStatus),
    /// Tell when all that was asked before is done.
    Flush(oneshot::Sender<()>),
}

#[derive(Debug, Default)]
struct State {
    /// Whether the session is there.
    open: bool,
    /// The pane of each job title.
    panes: HashMap<String, String>,
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
        let (titles, pending) = mpsc::unbounded_channel();
        Self {
            server: Arc::new(server),
            shim,
            specs: dir.messages(),
            keep,
            own_pane,
            state: Mutex::new(State::default()),
            titles,
            pending_titles: std::sync::Mutex::new(Some(pending)),
        }
    }

    /// The server that the panes are in.
    #[must_use]
    pub fn server(&self) -> &TmuxServer {
        &self.server
    }

    /// The script that puts a job's command into a pane, and says which one it is.
    async fn open_pane(&self, job: &Job, spec: &str) -> Result<(String, u32), TmuxError> {
        let mut state = self.state.lock().await;
        if !std::mem::replace(&mut state.open, true) {
            self.begin_titles();
            if self.own_pane.is_none() {
                // What a run whose orchestrator died left, or one that was kept.
                let _ = self.server.kill().await;
            }
        }
        let command: Vec<&str> = self.shim.iter().map(String::as_str).chain([spec]).collect();
        let rows = self.server.panes().await?;
        let known = state.panes.get(&job.title).filter(|id| rows.iter().any(|row| row.id == **id));
        let mut script = Script::new();
        match place(&rows, known.map(String::as_str), self.own_pane.as_deref()) {
            Place::NewSession => script.new_session(&self.server.session, &command),
            Place::Respawn(id) => {
                state.panes.retain(|_, pane| *pane != id);
                script.respawn(&id, &command);
            }
            Place::Split { window, beside } => script.split(&window, &beside, &command),
            Place::NewWindow => script.new_window(&self.server.session, &command),
        }
        let output = self.server.run(script).await?;
        let (id, pid) = output
            .lines()
            .rev()
            .find_map(|line| line.split_once(' '))
            .and_then(|(id, pid)| Some((id.to_owned(), pid.trim().parse().ok()?)))
            .ok_or_else(|| TmuxError::Answer(output.clone()))?;
        state.panes.insert(job.title.clone(), id.clone());
        let mut script = Script::new();
        script.title(&id, &job.title, PhaseStatus::Running);
        // A pane without its title is a pane all the same.
        let _ = self.server.run(script).await;
        Ok((id, pid))
    }

    /// Titles are set one after the other, and nobody waits for them.
    fn begin_titles(&self) {
        let pending = self.pending_titles.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(mut pending) = pending else { return };
        let server = Arc::clone(&self.server);
        tokio::spawn(async move {
            while let Some(request) = pending.recv().await {
                let (title, status) = match request {
                    Title::Set(title, status) => (title, status),
                    Title::Flush(done) => {
                        let _ = done.send(());
                        continue;
                    }
                };
                let Ok(panes) = server.panes().await else { continue };
                if let Some(pane) = panes.iter().find(|pane| pane.title == title) {
                    let mut script = Script::new();
                    script.title(&pane.id, &title, status);
                    let _ = server.run(script).await;
                }
            }
        });
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
        let number = {
            let mut state = self.state.lock().await;
            state.jobs += 1;
            state.jobs
        };
        let spec = self.write_spec(job, number).map_err(failed)?;
        let log_start = job.log.metadata().map_or(0, |meta| meta.len());
        match self.open_pane(job, spec.as_str()).await {
            Ok((id, pid)) => {
                let exit_file = shim::exit_file(&spec);
                Ok(Box::new(
                    Pane::new(Arc::clone(&self.server), id, pid, job, exit_file, log_start)
                        .map_err(failed)?,
                ))
            }
            Err(error) => {
                let _ = fs::remove_file(&spec);
                Err(failed(io::Error::other(error)))
            }
        }
    }

    fn phase_changed(&self, title: &str, status: PhaseStatus) {
        let _ = self.titles.send(Title::Set(title.to_owned(), status));
    }

    async fn close(&self) {
        if !self.state.lock().await.open {
            return;
        }
        if self.keep {
            let (done, flushed) = oneshot::channel();
            if self.titles.send(Title::Flush(done)).is_ok() {
                let _ = flushed.await;
            }
            return;
        }
        match &self.own_pane {
            None => drop(self.server.kill().await),
            // The pane that this runs in is closed by leaving.
            Some(own) => drop(self.server.kill_others(own).await),
        }
    }
}
