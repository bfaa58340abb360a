//! A connection to either database, and a transaction on it.

use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnection, PgSslMode};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Connection as _, Postgres, Sqlite, Transaction};

use crate::error::is_locked;
use crate::location::Location;
use crate::statement::{Answer, Argument, run_postgres, run_sqlite};

/// How long to wait before a database that another process opens is opened again.
const LOCKED: Duration = Duration::from_millis(10);

#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(SqliteConnection),
    Postgres { connection: PgConnection, patience: Duration },
}

/// A transaction. Dropped without a commit, it is rolled back.
pub(crate) enum Tx<'c> {
    Sqlite(Transaction<'c, Sqlite>),
    Postgres { transaction: Transaction<'c, Postgres>, patience: Duration },
}

impl Connection {
    pub(crate) async fn open(location: &Location, patience: Duration) -> Result<Self, sqlx::Error> {
        match location {
            Location::Sqlite(path) => {
                let options = SqliteConnectOptions::new()
                    .filename(path)
                    .create_if_missing(true)
                    .journal_mode(SqliteJournalMode::Wal)
                    .synchronous(SqliteSynchronous::Full)
                    .busy_timeout(patience)
                    .disable_statement_logging();
                // A new database first switches to a write-ahead log. SQLite does not apply the busy timeout there: of two processes that open it
                // at the same moment one is refused at once.
                let deadline = Instant::now() + patience;
                loop {
                    match SqliteConnection::connect_with(&options).await {
                        Ok(connection) => return Ok(Self::Sqlite(connection)),
                        Err(error) if is_locked(&error) && Instant::now() < deadline => {
                            tokio::time::sleep(LOCKED).await;
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
            Location::Postgres(options) => {
                let mut options = options.as_ref().clone().disable_statement_logging();
                // A local server without certificates is the usual case; an address can demand more by `sslmode`.
                if options.get_socket().is_some() {
                    options = options.ssl_mode(PgSslMode::Disable);
                }
                let connection = within(patience, PgConnection::connect_with(&options)).await?;
                let mut connection = Self::Postgres { connection, patience };
                // The server gives up before this side does, so that the error names the cause.
                let milliseconds = format!("{}ms", patience.as_millis());
                let sql = "SELECT set_config('lock_timeout', $1, false)";
                connection.run(sql, &[Argument::Text(&milliseconds)]).await?;
                Ok(connection)
            }
        }
    }

    /// Begins a transaction that is going to write.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>, sqlx::Error> {
        match self {
            // Immediate: a transaction that reads first and then writes would fail where another wrote in between.
            Self::Sqlite(connection) => Ok(Tx::Sqlite(connection.begin_with("BEGIN IMMEDIATE").await?)),
            Self::Postgres { connection, patience } => {
                let patience = *patience;
                Ok(Tx::Postgres { transaction: within(patience, connection.begin()).await?, patience })
            }
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }
}

impl Tx<'_> {
    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(transaction) => transaction.commit().await,
            Self::Postgres { transaction, patience } => within(patience, transaction.commit()).await,
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Runs a script of several statements without arguments.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(transaction) => sqlx::raw_sql(sql).execute(&mut **transaction).await.map(drop),
            Self::Postgres { transaction, .. } => {
                sqlx::raw_sql(sql).execute(&mut **transaction).await.map(drop)
            }
        }
    }
}

/// What statements run on: a connection, or a transaction.
pub(crate) trait Target: Send {
    /// Runs a statement. Arguments are `$1`, `$2`, … in it.
    fn run(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> impl Future<Output = Result<Answer, sqlx::Error>> + Send;
}

impl Target for Connection {
    async fn run(&mut self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Answer, sqlx::Error> {
        match self {
            Self::Sqlite(connection) => run_sqlite(connection, sql, arguments).await,
            Self::Postgres { connection, patience } => {
                within(*patience, run_postgres(connection, sql, arguments)).await
            }
        }
    }
}

impl Target for Tx<'_> {
    async fn run(&mut self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Answer, sqlx::Error> {
        match self {
            Self::Sqlite(transaction) => run_sqlite(transaction, sql, arguments).await,
            Self::Postgres { transaction, patience } => {
                within(*patience, run_postgres(transaction, sql, arguments)).await
            }
        }
    }
}

/// Limits the time of a call to a server that may have gone.
async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let limit = patience * 2;
    match tokio::time::timeout(limit, call).await {
        Ok(result) => result,
        Err(_) => {
            let message = format!("it did not answer within {} s", limit.as_secs_f64());
            Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, message)))
        }
    }
}
