//! Events of a followed run, each passed on once.

use cliq_orchestrator::{PipelineStatus, Record, RunView};
use cliq_project::ProjectError;
use cliq_protocol::Timestamp;

use crate::run_job::RunJob;

/// Receiver of a run's events, output and notices. A closure that takes `&Record` and `&RunView` receives the events only.
pub trait RunObserver: Send {
    /// Receives an event. `view` is the state after the event.
    fn record(&mut self, record: &Record, view: &RunView);

    /// Receives a line that the run's `cliq` printed besides its events, such as a warning. Ignored by default.
    fn output(&mut self, _line: &str) {}

    /// Receives a notice of the backend, such as the reason why a run is waiting. Ignored by default.
    fn notice(&mut self, _text: &str) {}

    /// Receives a warning of the backend. Ignored by default.
    fn warning(&mut self, _text: &str) {}
}

impl<F: FnMut(&Record, &RunView) + Send> RunObserver for F {
    fn record(&mut self, record: &Record, view: &RunView) {
        self(record, view);
    }
}

/// End of a run.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunEnd {
    /// Exit code of the run's `cliq` (docs/exit-codes.md), [`PARKED`] for a parked run.
    pub exit_code: u8,
    /// Recorded end, or `None` if the run is parked, or ended before it recorded anything.
    pub status: Option<PipelineStatus>,
    /// State of the phases at the end.
    pub view: RunView,
}

/// State of a followed run. Passes each event to the observer once, also if a backend delivers it again.
pub struct RunMonitor<'a> {
    observer: &'a mut dyn RunObserver,
    view: RunView,
    /// Timestamp of the newest event that `view` contained before.
    seen: Option<Timestamp>,
    /// Whether `view` describes the followed run and not what the run did before.
    has_started: bool,
}

impl std::fmt::Debug for RunMonitor<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunMonitor").field("has_started", &self.has_started).finish_non_exhaustive()
    }
}

/// State that the journal had before a run was started or adopted. Read it before the start: events that the run records from then on
/// are new, however soon it records them.
#[derive(Debug)]
pub(crate) struct PriorState {
    view: RunView,
    seen: Option<Timestamp>,
    is_same_run: bool,
}

impl PriorState {
    /// Reads the journal of the project.
    ///
    /// # Errors
    /// Returns an error if the journal of the last run cannot be read.
    pub(crate) fn read(job: &RunJob) -> Result<Self, ProjectError> {
        let last = job.project.last_run(&job.workflow)?;
        let last = last.filter(|(journal, _)| journal.run_id() == Some(&job.run_id));
        let seen = last.as_ref().and_then(|(journal, _)| journal.records.last()?.ts.time());
        let is_same_run = last.is_some();
        let view = last.map_or_else(|| RunView::new(&job.workflow), |(_, view)| view);
        Ok(Self { view, seen, is_same_run })
    }
}

impl<'a> RunMonitor<'a> {
    /// Creates the monitor of a run. `is_adopted` tells that the run was active before.
    pub(crate) fn new(prior: PriorState, is_adopted: bool, observer: &'a mut dyn RunObserver) -> Self {
        let has_started = is_adopted && prior.is_same_run;
        Self { observer, view: prior.view, seen: prior.seen, has_started }
    }

    /// Whether the run has started or resumed since it is followed.
    #[must_use]
    pub fn has_started(&self) -> bool {
        self.has_started
    }

    /// Recorded end of the run, or `None` while it is active.
    #[must_use]
    pub fn status(&self) -> Option<PipelineStatus> {
        self.view.pipeline_status().filter(|_| self.has_started)
    }

    /// Whether the run has ended, or is parked.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.status().is_some() || (self.has_started && self.view.waiting.is_some())
    }

    /// Receiver of notices.
    pub fn observer(&mut self) -> &mut dyn RunObserver {
        self.observer
    }

    /// Passes an event on, unless it was contained before.
    pub fn record(&mut self, record: &Record) {
        if self.seen.is_some_and(|seen| record.ts.time().is_some_and(|at| at <= seen)) {
            return;
        }
        self.has_started = true;
        self.view.apply(record);
        self.observer.record(record, &self.view);
    }

    /// Passes a line on that the run's `cliq` printed: an event on stdout, anything else as output.
    pub fn line(&mut self, is_stdout: bool, line: &str) {
        match Record::decode(line.as_bytes()) {
            Ok(record) if is_stdout => self.record(&record),
            _ => self.observer.output(line),
        }
    }

    /// Warns that a process of the run exceeded the memory limit, while the run itself went on.
    #[cfg(any(feature = "docker", feature = "kubernetes"))]
    pub(crate) fn warn_out_of_memory(&mut self, limit: &str, setting: &str) {
        self.observer
            .warning(&format!("a process of the run was killed: out of memory, limit {limit} (`{setting}`)"));
    }

    /// Returns the end of the run that the journal records.
    pub(crate) fn recorded_end(&self) -> RunEnd {
        let is_parked = self.status().is_none() && self.is_over();
        self.end(if is_parked { PARKED } else { exit_code(self.status()) })
    }

    /// Returns the end of the run.
    pub(crate) fn end(&self, exit_code: u8) -> RunEnd {
        RunEnd { exit_code, status: self.status(), view: self.view.clone() }
    }
}

/// Exit code of `cliq run` for a parked run (docs/exit-codes.md).
pub const PARKED: u8 = 6;

/// Returns the exit code of `cliq run` for a recorded end (docs/exit-codes.md).
pub(crate) fn exit_code(status: Option<PipelineStatus>) -> u8 {
    match status {
        Some(PipelineStatus::Completed) => 0,
        Some(PipelineStatus::Failed) | None => 1,
        Some(PipelineStatus::Escalated) => 3,
        Some(PipelineStatus::Cancelled) => 130,
    }
}
