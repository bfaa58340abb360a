//! Backend of runs that work in a process of their own: `cliq run --headless` in the run's project. The process outlives its parent.
//!
//! The standard output of the process is the log of the run, which is locked. The process inherits the lock, and so does a process
//! that is about to become it: a locked file proves that the orchestrator is alive, even if the process that started it is dead.

use std::fs::{File, TryLockError};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, FollowerLock, IoContext, PipelineStatus, ProjectLock, write_status};
use cliq_orchestrator::{JournalFollower, JournalUpdate};
use cliq_project::{Host, RunSpec, RunStart};
use cliq_protocol::{RunId, TRACE_VARIABLE};
use tokio::process::{Child, Command};

use crate::backend::{Backend, RunHandle};
use crate::cancellation::Cancellation;
use crate::error::BackendError;
use crate::monitor::{RunEnd, RunMonitor, RunObserver};
use crate::run_job::RunJob;
use crate::run_mode::RunMode;
use crate::spec_input::spec_input;
use cliq_orchestrator::internals::blocking;

/// Polling interval of the journal.
const POLL: Duration = Duration::from_millis(50);

/// Backend of runs that work in a process of their own, which outlives its parent.
///
/// ```
/// use cliq_backends::ChildProcess;
/// use cliq_project::{Environment, Host};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into());
/// let backend = ChildProcess::new(host, "/var/log/cliq".into());
/// let id = "0197e2c1-0000-7000-8000-000000000000".parse()?;
/// assert_eq!(backend.log_of(&id), "/var/log/cliq/0197e2c1-0000-7000-8000-000000000000.log");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ChildProcess {
    host: Host,
    logs: Utf8PathBuf,
}

impl ChildProcess {
    /// Creates the backend. `host` has the `cliq` program; `logs` is the directory of the logs, one file per run.
    #[must_use]
    pub fn new(host: Host, logs: Utf8PathBuf) -> Self {
        Self { host, logs }
    }

    /// Returns the log of a run.
    #[must_use]
    pub fn log_of(&self, run_id: &RunId) -> Utf8PathBuf {
        self.logs.join(format!("{run_id}.log"))
    }

    /// Starts the process of a run in a workspace. The process is not ended if the caller dies.
    ///
    /// # Errors
    /// Returns an error if the log cannot be opened, the run's process is alive already, or the program cannot be started.
    pub fn spawn(
        &self,
        workspace: &Utf8Path,
        run_id: &RunId,
        start: &RunStart,
        spec: &RunSpec,
        mode: &RunMode,
    ) -> Result<Child, BackendError> {
        let mut arguments = mode.arguments(run_id, start);
        if let RunStart::Resume { from } = start {
            // `--resume` beside `--from`: a run that is still active in a container is followed.
            arguments.extend(from.is_some().then(|| "--resume".to_owned()));
            arguments.extend(["--run-id".to_owned(), run_id.to_string()]);
        }
        self.spawn_with(workspace, run_id, &arguments, spec_input(spec)?)
    }

    /// Starts a process that only follows the Job of a run in a cluster: `cliq run` refuses an id that was started before and has no
    /// Job.
    ///
    /// # Errors
    /// As for [`ChildProcess::spawn`].
    #[doc(hidden)]
    pub fn spawn_follower(&self, workspace: &Utf8Path, run_id: &RunId) -> Result<Child, BackendError> {
        let arguments = ["--force", "--run-id", run_id.as_str()].map(str::to_owned);
        self.spawn_with(workspace, run_id, &arguments, Stdio::null())
    }

    fn spawn_with(
        &self,
        workspace: &Utf8Path,
        run_id: &RunId,
        arguments: &[String],
        input: Stdio,
    ) -> Result<Child, BackendError> {
        let program = &self.host.program;
        let failed = |source| BackendError::Spawn { program: program.to_string(), source };
        let log = open_log(&self.log_of(run_id))?;
        let mut command = Command::new(program);
        command
            .args(["-C", workspace.as_str(), "run", "--headless"])
            .args(arguments)
            .env_remove("CLIQ_ADMIN_TOKEN")
            // The trace of a run is in its description.
            .env_remove(TRACE_VARIABLE)
            .env("NO_COLOR", "1")
            // Inputs come from callers.
            .env(cliq_project::internals::GUARD_INPUTS, "1")
            .stdin(input)
            .stdout(log.try_clone().map_err(failed)?)
            .stderr(log)
            // Signals of a terminal to the parent's group are not for the run.
            .process_group(0);
        command.spawn().map_err(failed)
    }
}

/// Opens and locks the log of a run. Each process that inherits the file holds the lock.
fn open_log(log: &Utf8Path) -> Result<File, BackendError> {
    if let Some(dir) = log.parent() {
        std::fs::create_dir_all(dir).at("create", dir)?;
    }
    let file = File::options().create(true).append(true).open(log).at("open", log)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(BackendError::NotStarted {
            message: "the orchestrator of the run is alive".to_owned(),
            hint: None,
        }),
        Err(TryLockError::Error(error)) => Err(error).at("lock", log).map_err(BackendError::from),
    }
}

/// Whether the orchestrator that writes a log is alive.
#[must_use]
pub fn is_alive(log: &Utf8Path) -> bool {
    let Ok(file) = File::open(log) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// Whether an orchestrator is active in a project.
#[must_use]
pub fn is_project_busy(workspace: &Utf8Path) -> bool {
    CliqDir::open(workspace).is_ok_and(|dir| ProjectLock::holder(&dir).is_ok_and(|holder| holder.is_some()))
}

/// Whether a process follows a run of a project that works in a container or cluster, or waits to start it.
#[must_use]
pub fn is_followed(workspace: &Utf8Path) -> bool {
    CliqDir::open(workspace).is_ok_and(|dir| FollowerLock::holder(&dir).is_ok_and(|holder| holder.is_some()))
}

/// Asks the orchestrator of a project to stop, as `cliq cancel` does.
///
/// # Errors
/// Returns an error if the request cannot be written.
pub fn request_cancel(workspace: &Utf8Path) -> Result<(), BackendError> {
    let dir = CliqDir::open(workspace)?;
    if cliq_fs::read_status(&dir).is_none() {
        write_status(&dir, PipelineStatus::Cancelled)?;
    }
    Ok(())
}

#[async_trait]
impl Backend for ChildProcess {
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError> {
        let log = self.log_of(&job.run_id);
        Ok(blocking(move || is_alive(&log)).await)
    }

    async fn start(
        &self,
        job: &RunJob,
        _: &mut dyn RunObserver,
        cancel: &Cancellation,
    ) -> Result<Option<RunHandle>, BackendError> {
        if cancel.is_cancelled() {
            return Ok(None);
        }
        let (this, job) = (self.clone(), job.clone());
        let start = move || this.spawn(job.dir().workspace(), &job.run_id, &job.start, &job.spec, &job.mode);
        let child = blocking(start).await?;
        Ok(Some(RunHandle::default().with(child)))
    }

    async fn follow(
        &self,
        job: &RunJob,
        mut handle: RunHandle,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<RunEnd>, BackendError> {
        let log = self.log_of(&job.run_id);
        let mut journal = JournalTail::new(job.dir(), &job.run_id);
        let mut is_cancelled = false;
        loop {
            // Check this before reading, so that everything written before the end is read.
            let is_over = match handle.guards.first_mut().and_then(|guard| guard.downcast_mut::<Child>()) {
                Some(child) => !matches!(child.try_wait(), Ok(None)),
                None => {
                    let log = log.clone();
                    !blocking(move || is_alive(&log)).await
                }
            };
            journal.read(monitor).await;
            if is_over || monitor.is_over() {
                break;
            }
            let child = handle.guards.first_mut().and_then(|guard| guard.downcast_mut::<Child>());
            tokio::select! {
                () = cancel.cancelled(), if !is_cancelled => {
                    is_cancelled = true;
                    self.cancel(job).await?;
                }
                () = ended(child) => {}
                () = tokio::time::sleep(POLL) => {}
            }
        }
        if !monitor.is_over() {
            return Err(BackendError::Ended(blocking(move || cliq_fs::last_error(&log)).await));
        }
        Ok(Some(monitor.recorded_end()))
    }

    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError> {
        let workspace = job.dir().workspace().to_owned();
        blocking(move || request_cancel(&workspace)).await
    }
}

/// Waits for the end of a child. Never returns without one.
async fn ended(child: Option<&mut Child>) {
    match child {
        Some(child) => drop(child.wait().await),
        None => std::future::pending().await,
    }
}

/// Reader of the journal of a run that another process writes.
pub(crate) struct JournalTail {
    /// `None` while a thread for blocking work reads it.
    journal: Option<JournalFollower>,
    run_id: RunId,
    /// Whether the records that are read belong to the run.
    is_same_run: bool,
}

impl JournalTail {
    pub(crate) fn new(dir: &CliqDir, run_id: &RunId) -> Self {
        let journal = Some(JournalFollower::new(&dir.journal()));
        Self { journal, run_id: run_id.clone(), is_same_run: false }
    }

    /// Passes new records on. A journal that cannot be read at this moment is read again later.
    pub(crate) async fn read(&mut self, monitor: &mut RunMonitor<'_>) {
        let Some(mut journal) = self.journal.take() else { return };
        let (journal, read) = blocking(move || {
            let read = journal.read();
            (journal, read)
        })
        .await;
        self.journal = Some(journal);
        let Ok(JournalUpdate::More(records) | JournalUpdate::Afresh(records)) = read else { return };
        for record in records {
            if let cliq_orchestrator::RunEvent::RunStarted { run_id, .. } = &record.event {
                self.is_same_run = *run_id == self.run_id;
            }
            if self.is_same_run {
                monitor.record(&record);
            }
        }
    }
}
