//! The abstraction: start, find, follow, cancel.

use std::any::Any;

use async_trait::async_trait;
use cliq_fs::clear_status;

use crate::cancellation::Cancellation;
use crate::error::BackendError;
use crate::monitor::{PriorState, RunEnd, RunMonitor, RunObserver};
use crate::run_job::RunJob;
use cliq_orchestrator::internals::blocking;

/// Place where a run works.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Returns whether the run is active in this backend. Another process may follow it.
    ///
    /// # Errors
    /// Returns an error if the backend cannot be asked.
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError>;

    /// Starts the run. Waits for a slot if the backend has a limit. Returns `None` if `cancel` was triggered before the start.
    ///
    /// # Errors
    /// Returns an error if the run cannot be started. Nothing is left behind then.
    async fn start(
        &self,
        job: &RunJob,
        observer: &mut dyn RunObserver,
        cancel: &Cancellation,
    ) -> Result<Option<RunHandle>, BackendError>;

    /// Follows an active run to its end and passes its events to the monitor. `cancel` cancels the run. Returns `None` if the run was
    /// cancelled before its first event.
    ///
    /// # Errors
    /// Returns the reason if the run ended without its own doing, or cannot be followed any longer.
    async fn follow(
        &self,
        job: &RunJob,
        handle: RunHandle,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<RunEnd>, BackendError>;

    /// Cancels the run. Returns after the request; [`Backend::follow`] reports the end.
    ///
    /// # Errors
    /// Returns an error if the request cannot be delivered.
    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError>;
}

/// Active run with the resources that its follower holds: locks and slots, released when the handle is dropped.
#[derive(Default)]
pub struct RunHandle {
    /// Whether the run was active before this process followed it.
    pub is_adopted: bool,
    /// Locks, slots and processes that must live as long as the run is followed.
    pub(crate) guards: Vec<Box<dyn Any + Send>>,
}

impl std::fmt::Debug for RunHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunHandle").field("is_adopted", &self.is_adopted).finish_non_exhaustive()
    }
}

impl RunHandle {
    pub(crate) fn adopted() -> Self {
        Self { is_adopted: true, guards: Vec::new() }
    }

    pub(crate) fn with(mut self, guard: impl Any + Send) -> Self {
        self.guards.push(Box::new(guard));
        self
    }
}

/// Runs a job to its end: adopts the run if it is active, starts it otherwise. Returns `None` if the run was cancelled before it
/// started. The observer may be a closure that receives the events.
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use cliq_backends::{Cancellation, InProcess, RunJob, run};
/// use cliq_orchestrator::{Record, RunView};
/// use cliq_project::{Environment, Host, Project};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let project = Project::open("/home/ada/shop".into(), host)?;
/// let job = RunJob::builder(&project).build()?;
/// let mut print = |record: &Record, _: &RunView| println!("{}", record.event.describe());
/// let end = run(&InProcess, &job, &mut print, &Cancellation::new()).await?;
/// assert!(end.is_some_and(|end| end.exit_code == 0));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Returns the reason if the run cannot be started or ended without its own doing.
pub async fn run(
    backend: &dyn Backend,
    job: &RunJob,
    observer: &mut dyn RunObserver,
    cancel: &Cancellation,
) -> Result<Option<RunEnd>, BackendError> {
    let read = job.clone();
    let prior = blocking(move || PriorState::read(&read)).await?;
    let handle =
        if job.is_active { Some(RunHandle::adopted()) } else { backend.start(job, observer, cancel).await? };
    let end = match handle {
        Some(handle) => {
            let mut monitor = RunMonitor::new(prior, handle.is_adopted, observer);
            backend.follow(job, handle, &mut monitor, cancel).await?
        }
        None => None,
    };
    if end.is_none() {
        // The request to cancel was for this run, and has been fulfilled.
        let dir = job.dir().clone();
        blocking(move || clear_status(&dir)).await?;
    }
    Ok(end)
}
