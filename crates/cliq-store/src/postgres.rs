//! PostgreSQL. The only module that knows its library; without the feature `postgres`, `postgres/absent.rs` has its place.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use futures_util::StreamExt;
use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, PgSslMode, Postgres};
use sqlx::query::Query;
use sqlx::{
    AssertSqlSafe, ConnectOptions, Connection as _, Either, Executor, Row as _, SqlSafeStr, Transaction,
};

use crate::error::DatabaseError;
use crate::location::BadDatabaseUrl;
use crate::statement::{Answer, Argument, Row};

/// Address of a PostgreSQL database. `Display` and `Debug` show no password.
#[derive(Clone)]
pub struct PostgresAddress {
    options: Box<PgConnectOptions>,
}

impl PostgresAddress {
    pub(crate) fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        let options = PgConnectOptions::from_str(url);
        let options = options.map_err(|_| BadDatabaseUrl::malformed("it cannot be read"))?;
        Ok(Self { options: Box::new(options.application_name("cliq")) })
    }
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options = &self.options;
        let host =
            options.get_socket().map_or(options.get_host().to_owned(), |dir| dir.display().to_string());
        let database = options.get_database().unwrap_or_else(|| options.get_username());
        write!(f, "postgresql://{host}:{}/{database}", options.get_port())
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgresAddress({self})")
    }
}

/// Error of the library or the server.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(crate) struct PostgresError(#[from] sqlx::Error);

impl PostgresError {
    /// Whether the connection is of no use any more.
    pub(crate) fn is_broken(&self) -> bool {
        let Self(error) = self;
        // 57P01 to 57P03: the server shuts down, crashed, or starts; 08: the connection failed; 25006: it became a read-only
        // replica; 57P05: it was idle for too long.
        let is_of_connection =
            |code: &str| code.starts_with("57P") || code.starts_with("08") || code == "25006";
        match error {
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::WorkerCrashed
            | sqlx::Error::PoolClosed => true,
            sqlx::Error::Database(said) => said.code().is_some_and(|code| is_of_connection(&code)),
            _ => false,
        }
    }

    /// Returns the code and the message of the server, if the error is one of the server.
    pub(crate) fn of_server(&self) -> Option<(Option<String>, String)> {
        match &self.0 {
            sqlx::Error::Database(said) => {
                Some((said.code().map(std::borrow::Cow::into_owned), said.message().to_owned()))
            }
            _ => None,
        }
    }
}

/// Row of a result.
#[derive(Debug)]
pub(crate) struct PostgresRow(PgRow);

impl PostgresRow {
    pub(crate) fn text(&self, column: &str) -> Result<String, PostgresError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn optional_text(&self, column: &str) -> Result<Option<String>, PostgresError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn integer(&self, column: &str) -> Result<i64, PostgresError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn optional_integer(&self, column: &str) -> Result<Option<i64>, PostgresError> {
        Ok(self.0.try_get(column)?)
    }

    pub(crate) fn optional_real(&self, column: &str) -> Result<Option<f64>, PostgresError> {
        Ok(self.0.try_get(column)?)
    }
}

/// Connection to a database.
#[derive(Debug)]
pub(crate) struct PostgresConnection {
    connection: PgConnection,
    patience: Duration,
    /// Whether a transaction was begun and not committed: its rollback has not been sent yet.
    is_left: bool,
}

impl PostgresConnection {
    pub(crate) async fn open(address: &PostgresAddress, patience: Duration) -> Result<Self, DatabaseError> {
        let mut options = address.options.as_ref().clone().disable_statement_logging();
        // A local server without certificates is the usual case; an address can demand more by `sslmode`.
        if options.get_socket().is_some() {
            options = options.ssl_mode(PgSslMode::Disable);
        }
        let connection = within(patience, PgConnection::connect_with(&options)).await?;
        let mut connection = Self { connection, patience, is_left: false };
        // The server gives up before this side does, so that the error names the cause.
        let milliseconds = format!("{}ms", patience.as_millis());
        let sql = "SELECT set_config('lock_timeout', $1, false)";
        connection.run(sql, &[Argument::Text(&milliseconds)]).await?;
        Ok(connection)
    }

    pub(crate) async fn begin(&mut self) -> Result<PostgresTransaction<'_>, DatabaseError> {
        let patience = self.patience;
        self.is_left = true;
        let transaction = within(patience, self.connection.begin()).await?;
        Ok(PostgresTransaction { transaction, patience, is_left: &mut self.is_left })
    }

    /// Ends a transaction that was dropped without a commit: its library sends the rollback with the next statement only, and until then other
    /// servers wait for its locks.
    pub(crate) async fn end_left(&mut self) -> Result<(), DatabaseError> {
        if self.is_left {
            within(self.patience, self.connection.ping()).await?;
            self.is_left = false;
        }
        Ok(())
    }

    pub(crate) async fn run(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Answer, DatabaseError> {
        within(self.patience, run(&mut self.connection, sql, arguments)).await
    }

    /// Runs a statement that consists of fixed fragments: `Select` takes no other.
    pub(crate) async fn run_composed(
        &mut self,
        sql: &str,
        arguments: &[Argument<'_>],
    ) -> Result<Answer, DatabaseError> {
        let sql = AssertSqlSafe(sql.to_owned());
        within(self.patience, run(&mut self.connection, sql, arguments)).await
    }
}

/// Transaction. Dropped without a commit, it is rolled back.
pub(crate) struct PostgresTransaction<'c> {
    transaction: Transaction<'c, Postgres>,
    patience: Duration,
    is_left: &'c mut bool,
}

impl PostgresTransaction<'_> {
    pub(crate) async fn commit(self) -> Result<(), DatabaseError> {
        within(self.patience, self.transaction.commit()).await?;
        *self.is_left = false;
        Ok(())
    }

    /// Runs a script of several statements without arguments.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        sqlx::raw_sql(sql).execute(&mut *self.transaction).await.map_err(PostgresError)?;
        Ok(())
    }

    pub(crate) async fn run(
        &mut self,
        sql: &'static str,
        arguments: &[Argument<'_>],
    ) -> Result<Answer, DatabaseError> {
        within(self.patience, run(&mut self.transaction, sql, arguments)).await
    }
}

/// Runs a statement to its end.
async fn run(
    connection: &mut PgConnection,
    sql: impl SqlSafeStr,
    arguments: &[Argument<'_>],
) -> Result<Answer, sqlx::Error> {
    let mut query: Query<'_, Postgres, PgArguments> = sqlx::query(sql);
    for argument in arguments {
        query = match *argument {
            Argument::Text(text) => query.bind(text),
            Argument::OptionalText(text) => query.bind(text),
            Argument::OptionalTime(time) => query.bind(time.map(|time| time.to_string())),
            Argument::Integer(number) => query.bind(number),
            Argument::OptionalInteger(number) => query.bind(number),
            Argument::OptionalReal(number) => query.bind(number),
        };
    }
    let mut answer = Answer::default();
    let mut items = connection.fetch_many(query);
    while let Some(item) = items.next().await {
        match item? {
            Either::Right(row) => answer.rows.push(Row::Postgres(PostgresRow(row))),
            Either::Left(result) => answer.changed = result.rows_affected(),
        }
    }
    Ok(answer)
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
        return Err(PostgresError(sqlx::Error::Io(error)).into());
    };
    Ok(result.map_err(PostgresError)?)
}
