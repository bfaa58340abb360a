//! Events for the callers of tasks.

use cliq_model::{NewRunEvent, Run, RunOrigin, ServerEvent};
use cliq_orchestrator::RunView;
use serde_json::Value;

use crate::change::event;
use crate::options::SupervisorOptions;

/// Source of the events that only the callers of tasks get. The supervisor stores them and knows no protocol.
pub trait TaskLog: Send + Sync + std::fmt::Debug {
    /// Returns the event of a task whose workspace is ready.
    fn prepared(&self, run: &Run) -> ServerEvent;

    /// Returns the event that follows the end of a task. `verdicts` are the stored verdicts of its gates. The workspace is removed
    /// after this call.
    fn finished(&self, run: &Run, view: &RunView, verdicts: &[Value]) -> ServerEvent;
}

impl SupervisorOptions {
    fn task_log(&self, run: &Run) -> Option<&dyn TaskLog> {
        self.task_log.as_deref().filter(|_| run.origin == RunOrigin::A2a)
    }

    /// Returns the event of a run whose workspace is ready, if the run is a task.
    pub(crate) fn task_prepared(&self, run: &Run) -> Option<NewRunEvent> {
        Some(event(&self.task_log(run)?.prepared(run)))
    }

    /// Returns the event that follows the end of a run, if the run is a task.
    pub(crate) fn task_finished(&self, run: &Run, view: &RunView, verdicts: &[Value]) -> Option<NewRunEvent> {
        Some(event(&self.task_log(run)?.finished(run, view, verdicts)))
    }
}
