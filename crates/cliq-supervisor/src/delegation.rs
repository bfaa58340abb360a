//! Delegated runs: runs that another agent asked for, over a protocol that the supervisor does not know.

use camino::Utf8PathBuf;
use cliq_model::{NewRunEvent, Run, RunOrigin, ServerEvent};
use cliq_orchestrator::RunView;
use serde_json::Value;

use crate::change::event;
use crate::options::SupervisorOptions;

/// Options of delegated runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DelegationOptions {
    /// Name of this cliq in results and updates.
    pub instance_id: String,
    /// Directory of the workspaces of delegated runs.
    pub workspace_root: Utf8PathBuf,
    /// Hosts from which repositories may be cloned. Empty allows every public host.
    pub repo_hosts: Vec<String>,
}

impl DelegationOptions {
    /// Returns options that allow every public host.
    #[must_use]
    pub fn new(instance_id: impl Into<String>, workspace_root: Utf8PathBuf) -> Self {
        Self { instance_id: instance_id.into(), workspace_root, repo_hosts: Vec::new() }
    }

    /// Sets the hosts from which repositories may be cloned.
    #[must_use]
    pub fn with_repo_hosts(mut self, hosts: Vec<String>) -> Self {
        self.repo_hosts = hosts;
        self
    }
}

/// Source of the events that only those who delegated a run get. The supervisor stores them and knows no protocol.
pub trait DelegationLog: Send + Sync + std::fmt::Debug {
    /// Returns the event of a run whose workspace is ready.
    fn prepared(&self, run: &Run) -> ServerEvent;

    /// Returns the event that follows the end of a run. `verdicts` are the stored verdicts of its gates. The workspace is removed
    /// after this call.
    fn finished(&self, run: &Run, view: &RunView, verdicts: &[Value]) -> ServerEvent;
}

impl SupervisorOptions {
    fn log_of(&self, run: &Run) -> Option<&dyn DelegationLog> {
        self.delegation_log.as_deref().filter(|_| run.origin == RunOrigin::Delegated)
    }

    /// Returns the event of a run whose workspace is ready, if the run is delegated.
    pub(crate) fn delegated_prepared(&self, run: &Run) -> Option<NewRunEvent> {
        Some(event(&self.log_of(run)?.prepared(run)))
    }

    /// Returns the event that follows the end of a run, if the run is delegated.
    pub(crate) fn delegated_finished(
        &self,
        run: &Run,
        view: &RunView,
        verdicts: &[Value],
    ) -> Option<NewRunEvent> {
        Some(event(&self.log_of(run)?.finished(run, view, verdicts)))
    }

    /// Returns the name of this cliq if the run is delegated.
    pub(crate) fn delegated_instance(&self, run: &Run) -> Option<&str> {
        let name = self.delegation.as_ref().map_or("cliq", |delegation| &delegation.instance_id);
        (run.origin == RunOrigin::Delegated).then_some(name)
    }
}
