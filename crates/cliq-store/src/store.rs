//! The store: connections, and what happens when one breaks.

use std::sync::Arc;
use std::time::Duration;

use cliq_model::StoreError;
use tokio::sync::{Mutex, MutexGuard};

use crate::connection::Connection;
use crate::error::{DatabaseError, explain, is_broken};
use crate::location::Location;
use crate::migrations;

/// Default time to wait for other transactions, and for a server.
const PATIENCE: Duration = Duration::from_secs(10);

/// Options of a store.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Time to wait for other transactions, and for a server.
    pub patience: Duration,
    /// Whether lists and single rows are read on a connection of their own, so that they do not wait for writers. For servers.
    pub separate_reader: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { patience: PATIENCE, separate_reader: false }
    }
}

/// Signals, plans, runs and tokens in a database. Clones share its connections.
///
/// ```
/// use cliq_store::{Location, SqlStore};
///
/// # let dir = tempfile::tempdir()?;
/// # let home = camino::Utf8Path::from_path(dir.path()).ok_or("not UTF-8")?;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let store = SqlStore::open(&Location::choose(None, home)?).await?;
/// assert_eq!(store.location().to_string(), format!("{home}/cliq.db"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct SqlStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    location: Location,
    options: Options,
    /// One, and no pool of them: SQLite takes one writer at a time, and handing a connection around costs as much as a
    /// statement. `None` once it broke.
    writer: Mutex<Option<Connection>>,
    reader: Mutex<Option<Connection>>,
}

/// A connection that is in use.
pub(crate) struct HeldConnection<'a> {
    store: &'a SqlStore,
    connection: MutexGuard<'a, Option<Connection>>,
    /// Object that is written, for errors. `None` for a read.
    object: Option<&'static str>,
}

impl SqlStore {
    /// Opens the database, makes it if there is none, and brings it to the format of this version.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened or reached, is damaged, belongs to another program, or was made by a newer cliq.
    /// Nothing is changed then.
    pub async fn open(location: &Location) -> Result<Self, StoreError> {
        Self::open_with(location, Options::default()).await
    }

    /// As [`Self::open`], with options.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub async fn open_with(location: &Location, options: Options) -> Result<Self, StoreError> {
        if let Location::Sqlite(path) = location
            && let Some(dir) = path.parent()
        {
            std::fs::create_dir_all(dir).map_err(|source| StoreError::File {
                action: "create",
                path: dir.to_owned(),
                source,
            })?;
        }
        let inner =
            Inner { location: location.clone(), options, writer: Mutex::new(None), reader: Mutex::new(None) };
        let store = Self { inner: Arc::new(inner) };
        let mut held = store.writer("the format of the database").await?;
        let migrated = migrations::migrate(held.connection()).await;
        held.done(migrated).await?;
        Ok(store)
    }

    /// Reads the format of a database, older or newer than [`FORMAT`](crate::FORMAT), and changes nothing. `None` if there is no database, or
    /// it has no format yet.
    ///
    /// # Errors
    /// Returns an error if the database cannot be opened or reached, is damaged, or belongs to another program.
    pub async fn format_of(location: &Location) -> Result<Option<i64>, StoreError> {
        let found = Connection::format_of(location, PATIENCE).await;
        found.map_err(|error| explain(location, PATIENCE, None, error))
    }

    /// Location of the database.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.inner.location
    }

    /// Returns the connection for writing `object`, which errors name: "the run".
    pub(crate) async fn writer(&self, object: &'static str) -> Result<HeldConnection<'_>, StoreError> {
        self.hold(&self.inner.writer, Some(object)).await
    }

    pub(crate) async fn reader(&self) -> Result<HeldConnection<'_>, StoreError> {
        let separate = self.inner.options.separate_reader;
        self.hold(if separate { &self.inner.reader } else { &self.inner.writer }, None).await
    }

    async fn hold<'a>(
        &'a self,
        slot: &'a Mutex<Option<Connection>>,
        object: Option<&'static str>,
    ) -> Result<HeldConnection<'a>, StoreError> {
        let mut connection = slot.lock().await;
        if connection.is_none() {
            let opened = Connection::open(&self.inner.location, self.inner.options.patience).await;
            *connection = Some(opened.map_err(|error| self.explain(error, object))?);
        }
        Ok(HeldConnection { store: self, connection, object })
    }

    fn explain(&self, error: DatabaseError, object: Option<&'static str>) -> StoreError {
        explain(&self.inner.location, self.inner.options.patience, object, error)
    }
}

impl HeldConnection<'_> {
    #[expect(
        clippy::expect_used,
        reason = "`hold` fills the slot, and only `done` empties it, which consumes this"
    )]
    pub(crate) fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a held connection is open")
    }

    /// Gives the connection back. One that broke is replaced at the next call.
    pub(crate) async fn done<T>(mut self, result: Result<T, DatabaseError>) -> Result<T, StoreError> {
        let is_ended = self.connection().end_left().await;
        if is_ended.is_err() {
            *self.connection = None;
        }
        result.map_err(|error| {
            if is_broken(&error) {
                *self.connection = None;
            }
            self.store.explain(error, self.object)
        })
    }
}

/// Runs `$work` on a connection that is held: `on!(self.writer("the run"), connection => work(connection).await)`.
macro_rules! on {
    ($held:expr, $connection:ident => $work:expr) => {{
        let mut held = $held.await?;
        let $connection = held.connection();
        let result = $work;
        held.done(result).await
    }};
}
pub(crate) use on;
