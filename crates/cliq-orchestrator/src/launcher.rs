//! Launchers: what turns a job into a running process. `process` is here; terminals and containers implement the same
//! trait.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::phase_status::PhaseStatus;

/// Something to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Job {
    /// Title for people: a phase, or a phase and a command.
    pub title: String,
    /// The program.
    pub program: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables on top of the orchestrator's own environment.
    pub env: BTreeMap<String, String>,
    /// Working directory of the process.
    pub dir: Utf8PathBuf,
    /// File for standard input, or `None` for empty input.
    pub stdin: Option<Utf8PathBuf>,
    /// File for the output, created with the first byte.
    pub log: Utf8PathBuf,
}

impl Job {
    /// Returns a job without arguments, variables and input.
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        program: impl Into<String>,
        dir: Utf8PathBuf,
        log: Utf8PathBuf,
    ) -> Self {
        Self {
            title: title.into(),
            program: program.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            dir,
            stdin: None,
            log,
        }
    }

    /// Sets the arguments.
    #[must_use]
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// Sets a variable on top of the orchestrator's own environment.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets the file for standard input.
    #[must_use]
    pub fn with_stdin(mut self, file: Utf8PathBuf) -> Self {
        self.stdin = Some(file);
        self
    }
}

/// End of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exit {
    /// The process exited with a status.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl Exit {
    /// Whether it exited with status 0.
    #[must_use]
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit status {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A job that cannot be started.
#[derive(Debug, thiserror::Error)]
#[error("cannot start {program}: {source}")]
#[non_exhaustive]
pub struct LaunchError {
    /// The program.
    pub program: String,
    /// Error of the system.
    pub source: io::Error,
}

impl LaunchError {
    /// Returns the error of a program that the system did not start.
    #[must_use]
    pub fn new(program: impl Into<String>, source: io::Error) -> Self {
        Self { program: program.into(), source }
    }
}

/// Starts jobs. A launcher of another program decides where a job runs.
///
/// ```
/// use async_trait::async_trait;
/// use cliq_orchestrator::{Job, LaunchError, Launcher, ProcessLauncher, Running};
///
/// /// Launcher of plain processes with a lower priority.
/// #[derive(Debug)]
/// struct Nice;
///
/// #[async_trait]
/// impl Launcher for Nice {
///     async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
///         let mut nice = job.clone();
///         nice.args.insert(0, nice.program);
///         nice.program = "nice".to_owned();
///         ProcessLauncher.launch(&nice).await
///     }
/// }
/// ```
#[async_trait]
pub trait Launcher: Send + Sync {
    /// A run begins that has this many jobs, more where gates send work back. For launchers that prepare for them.
    fn expect(&self, _jobs: usize) {}

    /// Starts a job.
    ///
    /// # Errors
    /// Returns an error if the process cannot be started.
    async fn launch(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError>;

    /// Starts a job that nobody watches: one of a pull or push phase. It gets no pane.
    ///
    /// # Errors
    /// Returns an error if the process cannot be started.
    async fn launch_without_pane(&self, job: &Job) -> Result<Box<dyn Running>, LaunchError> {
        self.launch(job).await
    }

    /// The status of a phase, which is the title of its jobs, has changed. For launchers that show it; it must not block.
    fn phase_changed(&self, _title: &str, _status: PhaseStatus) {}

    /// The run is over, nothing of it is left, and no job will follow.
    async fn close(&self) {}
}

/// A job that was started. Dropping it ends it at once, with all that it started.
#[async_trait]
pub trait Running: Send {
    /// Process id, if there is a process.
    fn pid(&self) -> Option<u32>;

    /// Returns the process group that the job leads, for launchers that end jobs by their group.
    fn group(&self) -> Option<u32> {
        None
    }

    /// Waits until it exits. What it started may go on. May be called again, and be dropped while it waits.
    ///
    /// # Errors
    /// The exit status is lost.
    async fn wait(&mut self) -> io::Result<Exit>;

    /// Returns the reason why the program was never started, once the job has exited. The exit status has no meaning then.
    fn start_error(&self) -> Option<&str> {
        None
    }

    /// Ends the job and all processes that it started: TERM, then KILL after `grace`.
    async fn end(&mut self, grace: Duration);

    /// Whether, once it has ended, it is certain that no process of it is left, so that no search is needed.
    fn left_nothing(&self) -> bool {
        false
    }

    /// The last of what it printed, at most 4 KiB, once it has exited or been ended.
    async fn output_tail(&mut self) -> String;

    /// Whether it printed anything.
    fn has_output(&self) -> bool;
}
