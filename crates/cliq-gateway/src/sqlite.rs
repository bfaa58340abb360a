//! The store in a SQLite database, in WAL mode.
//!
//! One connection writes. A read that is followed by a write is one statement, or an immediate transaction: two processes never
//! stand in each other's way longer than a commit takes. Each commit is on the disk before it is reported.

mod plans;
mod reaper;
mod rows;
mod statement;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection, Executor, Row};
use tokio::sync::Mutex;

use crate::error::{At, GatewayError};
use crate::signal::{Claim, NewSignal, Signal, SignalStatus};
use crate::store::{Filter, Finish, Outcome, PlanEvent, PlanRow, Step, Store};
use rows::signal;
use statement::run;

/// The format of the database, in its `user_version`.
const FORMAT: i64 = 1;
/// How long to wait for others to end their transactions.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the identity of a bridged file is remembered: far longer than the file can outlive its row.
const REMEMBERED: Duration = Duration::from_secs(30 * 24 * 3600);

/// The table and the index of seed 002, exactly, and what joins them.
const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS signals (
id INTEGER PRIMARY KEY,
project TEXT NOT NULL DEFAULT '',
plan_file TEXT NOT NULL DEFAULT '',
signal_type TEXT NOT NULL DEFAULT '',
payload TEXT NOT NULL DEFAULT '',
status TEXT NOT NULL DEFAULT 'pending',
created_at TEXT NOT NULL DEFAULT '',
claimed_by TEXT NOT NULL DEFAULT '',
claimed_at TEXT NOT NULL DEFAULT '',
processed_at TEXT NOT NULL DEFAULT '',
result TEXT NOT NULL DEFAULT ''
);
CREATE INDEX IF NOT EXISTS idx_signals_claim ON signals (project, status, created_at, id);
CREATE TABLE IF NOT EXISTS bridged_files (
identity TEXT PRIMARY KEY,
signal_id INTEGER NOT NULL,
bridged_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS plans (
project TEXT NOT NULL,
name TEXT NOT NULL,
state TEXT NOT NULL,
document TEXT NOT NULL,
version INTEGER NOT NULL,
created_at TEXT NOT NULL,
updated_at TEXT NOT NULL,
PRIMARY KEY (project, name)
);
CREATE TABLE IF NOT EXISTS plan_events (
id INTEGER PRIMARY KEY,
project TEXT NOT NULL,
plan TEXT NOT NULL,
at TEXT NOT NULL,
kind TEXT NOT NULL,
from_state TEXT NOT NULL,
to_state TEXT NOT NULL,
signal_id INTEGER,
detail TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS idx_plan_events ON plan_events (project, plan, id);
";

/// Signals and plans in a SQLite database.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    path: Utf8PathBuf,
    patience: Duration,
    /// One, and no pool of them: SQLite takes one writer at a time, and handing a connection around costs as much as a
    /// statement.
    connection: Arc<Mutex<SqliteConnection>>,
}

impl SqliteStore {
    /// Opens the database, or makes it, with its directory.
    ///
    /// # Errors
    /// It cannot be opened, is damaged, or was made by a newer cliq. Nothing is changed then.
    pub async fn open(path: &Utf8Path) -> Result<Self, GatewayError> {
        Self::open_with(path, PATIENCE).await
    }

    /// As [`Self::open`]; `patience` is how long to wait where others hold the database.
    ///
    /// # Errors
    /// As for [`Self::open`].
    pub async fn open_with(path: &Utf8Path, patience: Duration) -> Result<Self, GatewayError> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).at("create", dir)?;
        }
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(patience)
            .disable_statement_logging();
        let connection = SqliteConnection::connect_with(&options).await;
        let connection = connection.map_err(|error| explain(path, patience, error))?;
        let store = Self { path: path.to_owned(), patience, connection: Arc::new(Mutex::new(connection)) };
        store.prepare().await.map_err(|error| store.explain(error))?;
        store.check_format().await?;
        Ok(store)
    }

    async fn check_format(&self) -> Result<(), GatewayError> {
        let found = self.format().await.map_err(|error| self.explain(error))?;
        if found > FORMAT {
            return Err(GatewayError::Newer { path: self.path.clone(), found, known: FORMAT });
        }
        Ok(())
    }

    async fn format(&self) -> Result<i64, sqlx::Error> {
        sqlx::query("PRAGMA user_version").fetch_one(&mut *self.connection.lock().await).await?.try_get(0)
    }

    /// Makes the tables where there are none.
    async fn prepare(&self) -> Result<(), sqlx::Error> {
        if self.format().await? != 0 {
            return Ok(());
        }
        let mut connection = self.connection.lock().await;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        transaction.execute(SCHEMA).await?;
        transaction.execute("PRAGMA user_version = 1").await?;
        transaction.commit().await
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }

    fn explain(&self, error: sqlx::Error) -> GatewayError {
        explain(&self.path, self.patience, error)
    }

    async fn insert_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, sqlx::Error> {
        let mut connection = self.connection.lock().await;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        let known = sqlx::query("SELECT signal_id FROM bridged_files WHERE identity = ?")
            .bind(identity)
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(row) = known {
            return row.try_get(0);
        }
        let id = insert(&mut transaction, project, signal).await?;
        sqlx::query("INSERT INTO bridged_files (identity, signal_id, bridged_at) VALUES (?, ?, ?)")
            .bind(identity)
            .bind(id)
            .bind(now())
            .execute(&mut *transaction)
            .await?;
        sqlx::query("DELETE FROM bridged_files WHERE bridged_at < ?")
            .bind(ago(REMEMBERED))
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await?;
        Ok(id)
    }
}

async fn insert(
    connection: &mut SqliteConnection,
    project: &str,
    signal: &NewSignal,
) -> Result<i64, sqlx::Error> {
    let query = sqlx::query(
        "INSERT INTO signals (project, plan_file, signal_type, payload, status, created_at) VALUES (?, ?, ?, ?, 'pending', ?)",
    )
    .bind(project)
    .bind(signal.plan().as_str())
    .bind(signal.kind().as_str())
    .bind(signal.payload_text())
    .bind(now());
    Ok(run(connection, query).await?.1.last_insert_rowid())
}

async fn finish(
    connection: &mut SqliteConnection,
    claim: &Claim,
    finish: &Finish,
) -> Result<Outcome, sqlx::Error> {
    let (status, result) = match finish {
        Finish::Done(result) => (SignalStatus::Done, result),
        Finish::Failed(why) => (SignalStatus::Failed, why),
    };
    let query = sqlx::query(
        "UPDATE signals SET status = ?, processed_at = ?, result = ? WHERE id = ? AND status = 'processing' AND claimed_by = ?",
    )
    .bind(status.as_str())
    .bind(now())
    .bind(result)
    .bind(claim.id)
    .bind(&claim.holder);
    Ok(if run(connection, query).await?.1.rows_affected() == 1 { Outcome::Applied } else { Outcome::Stale })
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, project: &str, signal: &NewSignal) -> Result<i64, GatewayError> {
        let create = async { insert(&mut *self.connection.lock().await, project, signal).await };
        create.await.map_err(|error| self.explain(error))
    }

    async fn create_from_file(
        &self,
        project: &str,
        signal: &NewSignal,
        identity: &str,
    ) -> Result<i64, GatewayError> {
        self.insert_from_file(project, signal, identity).await.map_err(|error| self.explain(error))
    }

    async fn forget_file(&self, identity: &str) -> Result<(), GatewayError> {
        let deleted = sqlx::query("DELETE FROM bridged_files WHERE identity = ?")
            .bind(identity)
            .execute(&mut *self.connection.lock().await)
            .await;
        deleted.map(drop).map_err(|error| self.explain(error))
    }

    async fn claim(&self, project: &str, worker: &str) -> Result<Option<(Claim, Signal)>, GatewayError> {
        // Unlike any other claim, of this worker too.
        let holder = format!("{worker}#{}", uuid::Uuid::now_v7().simple());
        let query = sqlx::query(
            "UPDATE signals SET status = 'processing', claimed_by = ?, claimed_at = ? WHERE id = (SELECT id FROM signals WHERE project = ? AND status = 'pending' ORDER BY created_at, id LIMIT 1) RETURNING *",
        )
        .bind(&holder)
        .bind(now())
        .bind(project);
        let claimed = run(&mut *self.connection.lock().await, query).await;
        let (rows, _) = claimed.map_err(|error| self.explain(error))?;
        let claimed = rows.first().map(signal).transpose().map_err(|error| self.explain(error))?;
        Ok(claimed.map(|signal| (Claim { id: signal.id, holder }, signal)))
    }

    async fn finish(&self, claim: &Claim, how: &Finish) -> Result<Outcome, GatewayError> {
        let finish = async { finish(&mut *self.connection.lock().await, claim, how).await };
        finish.await.map_err(|error| self.explain(error))
    }

    async fn reset_stuck(&self, age: Duration) -> Result<Vec<i64>, GatewayError> {
        reaper::expired(&mut *self.connection.lock().await, age).await.map_err(|error| self.explain(error))
    }

    async fn reset_claims(&self, worker: &str) -> Result<Vec<i64>, GatewayError> {
        reaper::of_worker(&mut *self.connection.lock().await, worker)
            .await
            .map_err(|error| self.explain(error))
    }

    async fn retry(&self, id: i64) -> Result<bool, GatewayError> {
        let updated = sqlx::query(
            "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '', processed_at = '', result = '' WHERE id = ? AND status = 'failed'",
        )
        .bind(id)
        .execute(&mut *self.connection.lock().await)
        .await;
        updated.map(|done| done.rows_affected() == 1).map_err(|error| self.explain(error))
    }

    async fn signals(&self, filter: &Filter) -> Result<Vec<Signal>, GatewayError> {
        let rows = sqlx::query(
            "SELECT * FROM (SELECT * FROM signals WHERE (?1 IS NULL OR project = ?1) AND (?2 IS NULL OR plan_file = ?2) AND (?3 IS NULL OR status = ?3) ORDER BY id DESC LIMIT ?4) ORDER BY id",
        )
        .bind(filter.project.as_deref())
        .bind(filter.plan.as_deref())
        .bind(filter.status.map(SignalStatus::as_str))
        .bind(filter.limit.map_or(-1, i64::from))
        .fetch_all(&mut *self.connection.lock().await)
        .await;
        let signals = rows.and_then(|rows| rows.iter().map(signal).collect());
        signals.map_err(|error| self.explain(error))
    }

    async fn signal(&self, id: i64) -> Result<Option<Signal>, GatewayError> {
        let row = sqlx::query("SELECT * FROM signals WHERE id = ?")
            .bind(id)
            .fetch_optional(&mut *self.connection.lock().await)
            .await;
        row.and_then(|row| row.as_ref().map(signal).transpose()).map_err(|error| self.explain(error))
    }

    async fn projects(&self) -> Result<Vec<String>, GatewayError> {
        let rows = sqlx::query(
            "SELECT project FROM plans UNION SELECT project FROM signals WHERE status = 'pending' ORDER BY 1",
        )
        .fetch_all(&mut *self.connection.lock().await)
        .await;
        let names = rows.and_then(|rows| rows.iter().map(|row| row.try_get(0)).collect());
        names.map_err(|error| self.explain(error))
    }

    async fn plans(&self, project: Option<&str>) -> Result<Vec<PlanRow>, GatewayError> {
        plans::list(&mut *self.connection.lock().await, project).await.map_err(|error| self.explain(error))
    }

    async fn plan(&self, project: &str, name: &str) -> Result<Option<PlanRow>, GatewayError> {
        plans::find(&mut *self.connection.lock().await, project, name)
            .await
            .map_err(|error| self.explain(error))
    }

    async fn apply(&self, step: &Step) -> Result<Outcome, GatewayError> {
        plans::apply(&mut *self.connection.lock().await, step).await.map_err(|error| self.explain(error))
    }

    async fn events(&self, project: &str, plan: &str, after: i64) -> Result<Vec<PlanEvent>, GatewayError> {
        plans::events(&mut *self.connection.lock().await, project, plan, after)
            .await
            .map_err(|error| self.explain(error))
    }
}

/// UTC, with milliseconds (SPEC section 2).
fn now() -> String {
    stamp(Timestamp::now())
}

fn ago(age: Duration) -> String {
    stamp(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

fn stamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// What a person should know of an error of the database.
fn explain(path: &Utf8Path, patience: Duration, error: sqlx::Error) -> GatewayError {
    let path = path.to_owned();
    let (code, message) = match &error {
        sqlx::Error::Database(said) => {
            (said.code().and_then(|code| code.parse::<u32>().ok()), said.message().to_owned())
        }
        _ => (None, String::new()),
    };
    // The low byte is the kind of error; the others say more about it. 4874: there is no room for the index of the log.
    match code.map(|code| if code == 4874 { 13 } else { code & 0xff }) {
        Some(5 | 6) => GatewayError::Locked { path, seconds: patience.as_secs() },
        Some(8) => GatewayError::ReadOnly { path },
        Some(11 | 26) => GatewayError::Corrupt { path, message },
        Some(13) => GatewayError::Full { path },
        // The database says no more than that; what the system says of the file is more.
        Some(14 | 23) => {
            match std::fs::OpenOptions::new().append(true).open(&path).map_err(|error| error.kind()) {
                Err(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
                    GatewayError::ReadOnly { path }
                }
                _ => GatewayError::Open { path, message },
            }
        }
        _ => GatewayError::Database { path, source: error },
    }
}
