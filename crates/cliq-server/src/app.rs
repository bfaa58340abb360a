//! What all handlers share.

use std::sync::Arc;
use std::time::Instant;

use cliq_gateway::Store;
use cliq_lifecycle::Plans;
use cliq_project::Project;
use cliq_review::StoredReviews;
use cliq_runs::{Run, RunId, RunStore, TaskStore};
use tokio_util::sync::CancellationToken;

use crate::a2a::{CardCache, Meshes};
use crate::access::Gatekeeper;
use crate::access_log::AccessLog;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use crate::problem::Problem;
use crate::supervisor::Supervisor;

/// What all handlers share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) options: ServerOptions,
    pub(crate) runs: Arc<dyn RunStore>,
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) signals: Arc<dyn Store>,
    pub(crate) reviews: Arc<StoredReviews>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) supervisor: Supervisor,
    pub(crate) gatekeeper: Gatekeeper,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: AccessLog,
    pub(crate) started: Instant,
    /// The address by which callers reach the server.
    pub(crate) base_url: String,
    /// The agent card that was made last.
    pub(crate) card: CardCache,
    pub(crate) meshes: Meshes,
    /// Cancelled when the server stops: streams end then.
    pub(crate) stopping: CancellationToken,
}

impl App {
    /// A run by the id in an address.
    pub(crate) async fn run(&self, id: &str) -> Result<Run, Problem> {
        let unknown = || Problem::not_found("there is no run of this id");
        let id = RunId::parse(id).ok_or_else(unknown)?;
        self.runs.run(&id).await?.ok_or_else(unknown)
    }

    /// The project that a run works in. A problem where it is gone.
    pub(crate) fn project(&self, run: &Run) -> Result<Project, Problem> {
        Project::open(&run.workspace, self.options.host.clone())
            .map_err(|_| Problem::gone("the workspace of the run is gone; its events and phases are kept"))
    }

    pub(crate) fn plans(&self) -> Plans {
        Plans::new(Arc::clone(&self.signals))
    }
}
