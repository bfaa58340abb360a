//! Places for a test: a directory with an empty database, or memory.

use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_gateway::{NewSignal, Store};
use cliq_model::{AuditStore, EvaluationStore, MemoryStore, RunStore, SignInStore, TaskStore, TriggerStore};
use cliq_protocol::Timestamp;
use cliq_review::ReviewStore;
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

    /// Runs a statement beside the store, as another program would.
    pub(crate) async fn execute(&self, statement: &str) -> Result<(), String> {
        match self.url() {
            None => {
                let connection = rusqlite::Connection::open(self.database()).expect("a database");
                connection.execute(statement, []).map(drop).map_err(|error| error.to_string())
            }
            Some(url) => {
                use sqlx::{AssertSqlSafe, Connection, Executor};
                let mut connection = sqlx::PgConnection::connect(url).await.expect("a database");
                let result = connection.execute(AssertSqlSafe(statement.to_owned())).await;
                result.map(drop).map_err(|error| error.to_string())
            }
        }
    }

    pub(crate) async fn store(&self) -> SqlStore {
        SqlStore::open(&self.location()).await.expect("a database")
    }
}

/// Every storage trait.
pub(crate) trait Stores:
    RunStore
    + TaskStore
    + TriggerStore
    + EvaluationStore
    + AuditStore
    + SignInStore
    + Store
    + ReviewStore
    + Clone
    + 'static
{
}

impl<S> Stores for S where
    S: RunStore
        + TaskStore
        + TriggerStore
        + EvaluationStore
        + AuditStore
        + SignInStore
        + Store
        + ReviewStore
        + Clone
        + 'static
{
}

/// Place of a suite: an empty store that can be opened several times, and a directory.
pub(crate) trait Place {
    type Store: Stores;

    async fn store(&self) -> Self::Store;

    fn path(&self, name: &str) -> Utf8PathBuf;
}

impl Place for TestDatabase {
    type Store = SqlStore;

    async fn store(&self) -> SqlStore {
        self.store().await
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        self.path(name)
    }
}

/// Store in memory, which unit tests use in place of a database.
pub(crate) struct Memory {
    store: MemoryStore,
    dir: tempfile::TempDir,
}

impl Memory {
    pub(crate) fn new() -> Self {
        Self { store: MemoryStore::default(), dir: tempfile::tempdir().expect("a directory") }
    }
}

impl Place for Memory {
    type Store = MemoryStore;

    async fn store(&self) -> MemoryStore {
        self.store.clone()
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::from_path_buf(self.dir.path().join(name)).expect("UTF-8")
    }
}

/// Parses a time, or the beginning of a day.
pub(crate) fn at(text: &str) -> Timestamp {
    let day = format!("{text}T00:00:00.000Z");
    Timestamp::parse(if text.len() > 10 { text } else { &day }).expect("a time")
}

pub(crate) fn patience(patience: Duration) -> Options {
    let mut options = Options::default();
    options.patience = patience;
    options
}

pub(crate) fn signal(kind: &str, payload: &str) -> NewSignal {
    NewSignal::parse(kind, "plan", payload).expect("a signal")
}
