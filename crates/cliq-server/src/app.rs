//! State of the server.

use std::sync::Arc;
use std::time::Instant;

use cliq_model::{Run, StoreError, TaskStore};
use cliq_web::{Core, Problem};

use crate::a2a::card_document::CardCache;
use crate::a2a::mesh::status::Meshes;
use crate::access::{Gatekeeper, Provider};
use crate::access_log::AccessLog;
use crate::metrics::{Metrics, Present};
use crate::options::ServerOptions;

/// State of the server that all handlers share.
#[derive(Debug)]
pub(crate) struct App {
    /// Part of the state that the dashboard shares.
    pub(crate) core: Arc<Core>,
    pub(crate) options: ServerOptions,
    pub(crate) tasks: Arc<dyn TaskStore>,
    pub(crate) gatekeeper: Gatekeeper,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) access_log: AccessLog,
    pub(crate) started: Instant,
    /// Base URL by which callers reach the server.
    pub(crate) base_url: String,
    /// Most recent agent card.
    pub(crate) card: CardCache,
    pub(crate) meshes: Meshes,
    /// Provider by which people sign in.
    pub(crate) provider: Option<Arc<Provider>>,
    /// Time of the last successful readiness check.
    pub(crate) readiness: tokio::sync::Mutex<Option<Instant>>,
}

impl App {
    /// Finds a run by the id in an address.
    pub(crate) async fn run(&self, id: &str) -> Result<Run, Problem> {
        self.core.run(id).await
    }

    /// Brings the figures up to date.
    pub(crate) async fn update_metrics(&self) -> Result<(), StoreError> {
        let supervisor = &self.core.supervisor;
        let present = Present {
            runs: self.core.runs.counts().await?,
            signals: self.core.signals.signal_counts().await?,
            counters: supervisor.counters(),
            subscribers: supervisor.hub().subscribers(),
            up_seconds: self.started.elapsed().as_secs(),
            now: cliq_fs::now(),
        };
        self.metrics.update(&present);
        Ok(())
    }
}
