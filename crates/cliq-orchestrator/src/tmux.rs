//! The `tmux` launcher: a session per run, a pane per phase.
//!
//! Each project has a tmux server of its own, on a socket that is named after the project's path, with none of the
//! user's configuration: nothing of theirs can change how a run goes, no run can touch their sessions, and two projects
//! never meet. The server inherits the orchestrator's environment, so agents find what they would find as its children.
//!
//! Inside a pane, a shim runs the job ([`run_pane`]): what is printed goes through it to the pane and to the log, so that
//! logs are the same with each launcher, and no program believes that it talks to a person.

mod layout;
mod pane;
mod pane_pool;
mod server;
mod shim;
mod spare;
mod spec;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;

use crate::launcher::{Job, LaunchError, Launcher, Running};
use crate::phase_status::PhaseStatus;
use crate::process::ProcessLauncher;
use pane::Pane;
use pane_pool::PanePool;
pub use server::{TmuxError, TmuxServer};
pub use shim::run_pane;
pub(crate) use spec::{revoke_all, revoke_all_of};

/// Runs jobs in panes of tmux.
#[derive(Debug)]
pub struct TmuxLauncher {
    pool: Arc<PanePool>,
    specs: Utf8PathBuf,
    keep: bool,
    jobs: AtomicU64,
}

impl TmuxLauncher {
    /// A launcher for a project. `shim` is a program, with its first arguments, that calls [`run_pane`] with what it gets
    /// after them; `cliq` does so as `cliq pane`. With `keep`, the session stays after the run, for people to read.
    /// `own_pane` is the pane of the session that this process itself works in, if any ([`TmuxServer::own_pane`]).
    #[must_use]
    pub fn new(dir: &CliqDir, shim: Vec<String>, keep: bool, own_pane: Option<String>) -> Self {
        let specs = dir.messages();
        let pool = Arc::new(PanePool::new(TmuxServer::of(dir), shim, specs.clone(), own_pane));
        Self { pool, specs, keep, jobs: AtomicU64::new(0) }
    }

    /// The server that the panes are in.
    #[must_use]
    pub fn server(&self) -> &TmuxServer {
        &self.pool.server
    }

    /// Starts the job that `spec` describes, in a pane that waits for it or in a new one.
    async fn start(&self, job: &Job, spec: &Utf8Path, log_start: u64) -> io::Result<Pane> {
        let over: Arc<AtomicBool> = Arc::default();
        let pane = |id: String, pid| {
            Pane::new(Arc::clone(&self.pool), id, pid, job, spec.to_owned(), log_start, Arc::clone(&over))
        };
        if let Some(spare) = self.pool.take_spare() {
            let running = pane(spare.pane.clone(), spare.pid)?;
            spare.give(spec)?;
            self.pool.show(&job.title, &spare.pane, over);
            return Ok(running.keep(spare.feed));
        }
        let opened = self.pool.open_pane(&job.title, spec.as_str(), Arc::clone(&over)).await;
        let (id, pid) = opened.map_err(io::Error::other)?;
        pane(id, pid)
    }
}

#[async_trait]
impl Launcher for TmuxLauncher {
    fn expect(&self, jobs: usize) {
        self.pool.expect(jobs);
    }

    async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        let failed = |source: io::Error| LaunchError { program: job.program.clone(), source };
        shim::check(job).map_err(failed)?;
        let number = self.jobs.fetch_add(1, Ordering::Relaxed);
        let spec = spec::write(&self.specs, number, job).map_err(failed)?;
        let log_start = job.log.metadata().map_or(0, |meta| meta.len());
        match self.start(job, &spec, log_start).await {
            Ok(pane) => Ok(Box::new(pane)),
            Err(error) => {
                spec::revoke(&spec);
                Err(failed(error))
            }
        }
    }

    async fn launch_without_pane(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        ProcessLauncher.launch(job).await
    }

    fn phase_changed(&self, title: &str, status: PhaseStatus) {
        self.pool.set_title(title, status);
    }

    async fn close(&self) {
        self.pool.close(self.keep).await;
    }
}
