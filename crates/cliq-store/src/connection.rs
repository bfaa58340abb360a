//! A connection to either database, and a transaction on it.

use std::time::Duration;

use crate::error::DatabaseError;
use crate::location::Location;
use crate::migrations;
use crate::postgres::{PostgresConnection, PostgresTransaction};
use crate::select::Select;
use crate::sqlite::{SqliteConnection, SqliteTransaction};
use crate::statement::{Answer, Argument};

#[derive(Debug)]
pub(crate) enum Connection {
    Sqlite(SqliteConnection),
    Postgres(PostgresConnection),
}

/// A transaction. Dropped without a commit, it is rolled back.
pub(crate) enum Tx<'c> {
    Sqlite(SqliteTransaction<'c>),
    Postgres(PostgresTransaction<'c>),
}

impl Connection {
    pub(crate) async fn open(location: &Location, patience: Duration) -> Result<Self, DatabaseError> {
        match location {
            Location::Sqlite(path) => SqliteConnection::open(path, patience).await.map(Self::Sqlite),
            Location::Postgres(address) => {
                PostgresConnection::open(address, patience).await.map(Self::Postgres)
            }
        }
    }

    /// Reads the format of a database without changing anything; `None` if it has none yet.
    pub(crate) async fn format_of(
        location: &Location,
        patience: Duration,
    ) -> Result<Option<i64>, DatabaseError> {
        match location {
            Location::Sqlite(path) => SqliteConnection::format_of(path, patience),
            Location::Postgres(address) => {
                let mut connection = Self::Postgres(PostgresConnection::open(address, patience).await?);
                let sql = "SELECT count(*) AS tables FROM pg_catalog.pg_class WHERE oid = to_regclass('cliq_format')";
                let answer = connection.run(sql, crate::statement::arguments![]).await?;
                let tables = answer.rows.first().map_or(Ok(0), |row| row.integer("tables"))?;
                if tables > 0 { migrations::format(&mut connection).await.map(Some) } else { Ok(None) }
            }
        }
    }

    /// Begins a transaction that is going to write.
    pub(crate) async fn begin(&mut self) -> Result<Tx<'_>, DatabaseError> {
        match self {
            Self::Sqlite(connection) => connection.begin().map(Tx::Sqlite),
            Self::Postgres(connection) => connection.begin().await.map(Tx::Postgres),
        }
    }

    /// Ends a transaction that was dropped without a commit.
    pub(crate) async fn end_left(&mut self) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(_) => Ok(()),
            Self::Postgres(connection) => connection.end_left().await,
        }
    }

    /// Runs a composed statement.
    pub(crate) async fn select(&mut self, select: &Select<'_>) -> Result<Answer, DatabaseError> {
        let (sql, arguments) = select.parts();
        match self {
            Self::Sqlite(connection) => connection.run(sql, arguments),
            Self::Postgres(connection) => connection.run_composed(sql, arguments).await,
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }
}

impl Tx<'_> {
    pub(crate) async fn commit(self) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.commit(),
            Self::Postgres(transaction) => transaction.commit().await,
        }
    }

    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Self::Postgres(_))
    }

    /// Runs a script of several statements without arguments.
    pub(crate) async fn script(&mut self, sql: &'static str) -> Result<(), DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.connection().script(sql),
            Self::Postgres(transaction) => transaction.script(sql).await,
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
            Self::Postgres(connection) => connection.run(sql, arguments).await,
        }
    }
}

impl Target for Tx<'_> {
    async fn run(&mut self, sql: &'static str, arguments: &[Argument<'_>]) -> Result<Answer, DatabaseError> {
        match self {
            Self::Sqlite(transaction) => transaction.connection().run(sql, arguments),
            Self::Postgres(transaction) => transaction.run(sql, arguments).await,
        }
    }
}
