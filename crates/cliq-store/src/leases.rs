//! Leases: what one of several servers does for all of them, and which servers live (docs/server.md). They use the clock of the database: that
//! of a server may be wrong.

use std::time::Duration;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::statement::arguments;

/// The time of the database in milliseconds, for SQLite and PostgreSQL. Not that of the transaction's beginning.
macro_rules! now {
    (sqlite) => {
        "CAST((julianday('now') - 2440587.5) * 86400000.0 AS INTEGER)"
    };
    (postgres) => {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    };
}

macro_rules! take {
    ($database:ident) => {
        concat!(
            "INSERT INTO leases (name, holder, until_ms) VALUES ($1, $2, ",
            now!($database),
            " + $3) ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, until_ms = excluded.until_ms ",
            "WHERE leases.holder = excluded.holder OR leases.until_ms < ",
            now!($database)
        )
    };
}

macro_rules! holders {
    ($database:ident) => {
        concat!(
            "SELECT holder FROM leases WHERE substr(name, 1, length($1)) = $1 AND until_ms >= ",
            now!($database),
            " ORDER BY holder"
        )
    };
}

/// Takes a lease that is free or over, or makes one's own longer. `false` where another holds it.
pub(crate) async fn take(
    connection: &mut Connection,
    name: &str,
    holder: &str,
    time: Duration,
) -> Result<bool, DatabaseError> {
    let sql = if connection.is_postgres() { take!(postgres) } else { take!(sqlite) };
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 4);
    Ok(connection.run(sql, arguments![name, holder, time]).await?.changed == 1)
}

/// Gives a lease back.
pub(crate) async fn give(connection: &mut Connection, name: &str, holder: &str) -> Result<(), DatabaseError> {
    let sql = "DELETE FROM leases WHERE name = $1 AND holder = $2";
    connection.run(sql, arguments![name, holder]).await.map(drop)
}

/// Returns the holders of the leases with this prefix.
pub(crate) async fn holders(connection: &mut Connection, prefix: &str) -> Result<Vec<String>, DatabaseError> {
    let sql = if connection.is_postgres() { holders!(postgres) } else { holders!(sqlite) };
    connection.run(sql, arguments![prefix]).await?.rows.iter().map(|row| row.text("holder")).collect()
}
