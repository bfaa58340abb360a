//! Starting a run and being with it.

use cliq_fs::{FsError, LockError, PipelineStatus, ProjectLock};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::driver::{Driver, put_earlier_run_aside};
use crate::events::Record;
use crate::plan::{PlanError, RunPlan};
use crate::view::RunView;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The plan cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another orchestrator works on the project.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory cannot be made ready.
    #[error(transparent)]
    File(#[from] FsError),
}

/// A run under way. Dropping it does not stop it; [`Run::cancel`] does.
#[derive(Debug)]
pub struct Run {
    id: String,
    events: mpsc::UnboundedReceiver<Record>,
    cancel: CancellationToken,
    task: JoinHandle<RunView>,
}

impl Run {
    /// Starts a run. Needs a tokio runtime with IO and time. What an earlier run left is put aside, to
    /// `.cliq/history/<run id>/`.
    ///
    /// `has_env` says whether an environment variable is set; agents inherit the environment of this process.
    ///
    /// # Errors
    /// The plan cannot be run, another orchestrator holds the project, or a file cannot be made ready. Nothing has
    /// been started then.
    pub fn start(plan: RunPlan, has_env: &dyn Fn(&str) -> bool) -> Result<Self, StartError> {
        plan.check(has_env)?;
        let lock = ProjectLock::acquire(&plan.dir)?;
        put_earlier_run_aside(&plan.dir)?;
        let id = uuid::Uuid::now_v7().to_string();
        let (sender, events) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let driver = Driver::new(plan, id.clone(), lock, sender, cancel.clone())?;
        Ok(Self { id, events, cancel, task: tokio::spawn(driver.run()) })
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The next event; `None` once the run is over.
    pub async fn next(&mut self) -> Option<Record> {
        self.events.recv().await
    }

    /// Asks the run to stop. It ends with `CANCELLED`, and nothing of it is left then.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// What [`Run::cancel`] does, to be kept elsewhere: in a signal handler, say.
    pub fn canceller(&self) -> impl Fn() + Send + Sync + 'static {
        let token = self.cancel.clone();
        move || token.cancel()
    }

    /// Waits for the end and gives the run as it then stands.
    ///
    /// # Panics
    /// The run's task panicked, which is a bug.
    pub async fn finish(self) -> RunView {
        match self.task.await {
            Ok(view) => view,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("nobody aborts the task"),
            },
        }
    }
}

impl RunView {
    /// Whether every phase is done.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.pipeline_status() == Some(PipelineStatus::Completed)
    }
}
