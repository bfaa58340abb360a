//! A connection to either database, and a transaction on it.

use std::time::Duration;

use sqlx::postgres::{PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Postgres, Transaction};

use crate::error::DatabaseError;
use crate::location::Location;
use crate::select::Select;
use crate::sqlite::{SqliteConnection, SqliteTransaction};
use crate::statement::{Answer, Argument, run_postgres};

#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(SqliteConnection),
    Postgres {
        connection: PgConnection,
        patience: Duration,
        /// Whether a transaction was begun and not committed: its rollback has not been sent yet.
        is_left: bool,
    },
}

/// A transaction. Dropped without a commit, it is rolled back.
pub(crate) enum Tx<'c> {
    Sqlite(SqliteTransaction<'c>),
    Postgres { transaction: Transaction<'c, Postgres>, patience: Duration, is_left: &'c mut bool },
}

impl Connection {
    pub(crate) async fn open(location: &Location, patience: Duration) -> Result<Self, DatabaseError> {
        match location {
            Location::Sqlite(path) => SqliteConnection::open(path, patience).await.map(Self::Sqlite),
            Location::Postgres(options) => {
                let mut options = options.as_ref().clone().disable_statement_logging();
                // A local server without certificates is the usual case; an address can demand more by `sslmode`.
                if options.get_socket().is_some() {
                    options = options.ssl_mode(PgSslMode::Disable);
                }
                let connection = within(patience, PgConnection::connect_with(&options)).await?;
                let mut connection = Self::Postgres { connection, patience, is_left: false };
                // The server gives up before this side does, so that the error names the cause.
                let milliseconds = format!("{}ms", patience.as_millis());
                let sql = "SELECT set_config('lock_timeout', $1, false)";
                connection.run(sql, &[Argument::Text(&milliseconds)]).await?;
                Ok(connection)
            }
        }
    }

    /// Begins a transaction that is going to write.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>, DatabaseError> {
        match self {
            Self::Sqlite(connection) => connection.begin().map(Tx::Sqlite),
            Self::Postgres { connection, patience, is_left } => {
                let patience = *patience;
                *is_left = true;
                let transaction = within(patience, connection.begin()).await?;
                Ok(Tx::Postgres { transaction, patience, is_left })
            }
        }
    }

    /// Ends a transaction that was dropped without a commit: its library sends the rollback with the next statement only, and until then other
    /// servers wait for its locks.
    pub(crate) async fn end_left(&mut self) -> Result<(), DatabaseError> {
        if let Self::Postgres { connection, patience, is_left } = self
            && *is_left
        {
            within(*patience, connection.ping()).await?;
            *is_left = false;
        }
        Ok(())
    }

    /// Runs a composed statement.
    pub(crate) async fn select(&mut self, select: &Select<'_>) -> Result<Answer, DatabaseError> {
        let (sql, arguments) = select.parts();
        match self {
            Self::Sqlite(connection) => connection.run(sql, arguments),
            Self::Postgres { connection, patience, .. } => {
                // It consists of fixed fragments: `Select` takes no other.
                let sql = AssertSqlSafe(sql.to_owned());
                within(*patience, run_postgres(connection, sql, arguments)).await
            }
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }
}

impl Tx<'_> {
    pub(crate) async fn commit(self) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.commit(),
            Self::Postgres { transaction, patience, is_left } => {
                within(patience, transaction.commit()).await?;
                *is_left = false;
                Ok(())
            }
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres { .. })
    }

    /// Runs a script of several statements without arguments.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.connection().script(sql),
            Self::Postgres { transaction, .. } => {
                sqlx::raw_sql(sql).execute(&mut **transaction).await?;
                Ok(())
            }
        }
    }
}

/// Target of statements: a connection, or a transaction.
pub(crate) trait Target: Send {
    /// Runs a statement. Arguments are `$1`, `$2`, … in it.
    fn run(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> impl Future<Output = Result<Answer, DatabaseError>> + Send;
}

impl Target for Connection {
    async fn run(&mut self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        match self {
            Self::Sqlite(connection) => connection.run(sql, arguments),
            Self::Postgres { connection, patience, .. } => {
                within(*patience, run_postgres(connection, sql, arguments)).await
            }
        }
    }
}

impl Target for Tx<'_> {
    async fn run(&mut self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.connection().run(sql, arguments),
            Self::Postgres { transaction, patience, .. } => {
                within(*patience, run_postgres(transaction, sql, arguments)).await
            }
        }
    }
}

/// Limits the time of a call to a server that may have gone.
async fn within<T>(
    patience: Duration,
    call: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, DatabaseError> {
    let limit = patience * 2;
    let Ok(result) = tokio::time::timeout(limit, call).await else {
        let message = format!("it did not answer within {} s", limit.as_secs_f64());
        let error = std::io::Error::new(std::io::ErrorKind::TimedOut, message);
        return Err(sqlx::Error::Io(error).into());
    };
    Ok(result?)
}
