//! Places for a test: a directory with an empty database, or memory.

use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_gateway::NewSignal;
use cliq_model::{AuditStore, EvaluationStore, MemoryStore, RunStore, SignInStore, TaskStore, TriggerStore};
use cliq_store::{Location, Options, SqlStore};
use cliq_testkit::PostgresServer;

pub(crate) struct TestDatabase {
    dir: tempfile::TempDir,
    url: Option<String>,
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        Self { dir: tempfile::tempdir().expect("a directory"), url: None }
    }

    pub(crate) fn postgres(server: &PostgresServer) -> Self {
        Self { url: Some(server.database()), ..Self::sqlite() }
    }

    pub(crate) fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.dir.path().join(name)).expect("UTF-8")
    }

    /// The file of a SQLite database.
    pub(crate) fn database(&self) -> Utf8PathBuf {
        self.path("home/cliq.db")
    }

    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    pub(crate) fn location(&self) -> Location {
        Location::choose(self.url(), &self.path("home")).expect("a location")
    }

    pub(crate) async fn store(&self) -> SqlStore {
        SqlStore::open(&self.location()).await.expect("a database")
    }
}

/// Place of a suite: an empty store that can be opened several times.
pub(crate) trait Place {
    type Store: RunStore
        + TaskStore
        + TriggerStore
        + EvaluationStore
        + AuditStore
        + SignInStore
        + Clone
        + 'static;

    async fn store(&self) -> Self::Store;
}

impl Place for TestDatabase {
    type Store = SqlStore;

    async fn store(&self) -> SqlStore {
        self.store().await
    }
}

impl Place for MemoryStore {
    type Store = Self;

    async fn store(&self) -> Self {
        self.clone()
    }
}

pub(crate) fn patience(patience: Duration) -> Options {
    let mut options = Options::default();
    options.patience = patience;
    options
}

pub(crate) fn signal(kind: &str, payload: &str) -> NewSignal {
    NewSignal::parse(kind, "plan", payload).expect("a signal")
}
