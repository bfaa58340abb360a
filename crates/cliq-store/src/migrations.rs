//! The format of the database: forward only, one transaction, a newer format is refused.

use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::statement::arguments;

/// The format that this version makes and knows.
pub const FORMAT: i64 = 12;

/// Tables with the format that brought them.
pub(crate) const TABLES: [(i64, &str); 26] = [
    (1, "signals"),
    (1, "bridged_files"),
    (1, "plans"),
    (1, "plan_events"),
    (2, "instances"),
    (2, "runs"),
    (2, "run_events"),
    (2, "tokens"),
    (3, "a2a_tasks"),
    (3, "a2a_push"),
    (4, "reviews"),
    (4, "review_contents"),
    (5, "leases"),
    (7, "run_waits"),
    (8, "run_words"),
    (8, "run_search"),
    (8, "run_models"),
    (9, "evaluations"),
    (9, "trials"),
    (10, "triggers"),
    (10, "firings"),
    (10, "firing_keys"),
    (10, "trigger_groups"),
    (10, "run_ends"),
    (10, "sign_ins"),
    (10, "audit"),
];

/// The scripts that lead from each format to the next, for SQLite and PostgreSQL.
const SCRIPTS: [(&str, &str); 12] = [
    (include_str!("schema/1.sqlite.sql"), include_str!("schema/1.postgres.sql")),
    (include_str!("schema/2.sqlite.sql"), include_str!("schema/2.postgres.sql")),
    (include_str!("schema/3.sqlite.sql"), include_str!("schema/3.postgres.sql")),
    (include_str!("schema/4.sqlite.sql"), include_str!("schema/4.postgres.sql")),
    (include_str!("schema/5.sqlite.sql"), include_str!("schema/5.postgres.sql")),
    (include_str!("schema/6.sqlite.sql"), include_str!("schema/6.postgres.sql")),
    (include_str!("schema/7.sqlite.sql"), include_str!("schema/7.postgres.sql")),
    (include_str!("schema/8.sqlite.sql"), include_str!("schema/8.postgres.sql")),
    (include_str!("schema/9.sqlite.sql"), include_str!("schema/9.postgres.sql")),
    (include_str!("schema/10.sqlite.sql"), include_str!("schema/10.postgres.sql")),
    (include_str!("schema/11.sqlite.sql"), include_str!("schema/11.postgres.sql")),
    (include_str!("schema/12.sqlite.sql"), include_str!("schema/12.postgres.sql")),
];

/// Brings the database to [`FORMAT`]. A newer one is refused, and left alone.
pub(crate) async fn migrate(connection: &mut Connection) -> Result<(), DatabaseError> {
    if connection.is_postgres() {
        let sql = "CREATE TABLE IF NOT EXISTS cliq_format (only_row BIGINT PRIMARY KEY DEFAULT 1 CHECK (only_row = 1), format BIGINT NOT NULL)";
        // Two processes may create it at the same moment: one of them gets a conflict in the catalog.
        if format(connection).await.is_err() && connection.run(sql, arguments![]).await.is_err() {
            connection.run(sql, arguments![]).await?;
        }
    }
    let found = match connection {
        Connection::Sqlite(connection) => connection.format(),
        Connection::Postgres(_) => format(connection).await?,
    };
    if is_current(found)? {
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    if transaction.is_postgres() {
        transaction.script("LOCK TABLE cliq_format IN ACCESS EXCLUSIVE MODE").await?;
    }
    // Another process may have been faster.
    let found = format(&mut transaction).await?;
    if is_current(found)? {
        return Ok(());
    }
    let done = usize::try_from(found).unwrap_or(0);
    for (sqlite, postgres) in SCRIPTS.into_iter().skip(done) {
        transaction.script(if transaction.is_postgres() { postgres } else { sqlite }).await?;
    }
    record_format(&mut transaction).await?;
    transaction.commit().await
}

/// Whether the format is the one of this version; an older one is not.
fn is_current(found: i64) -> Result<bool, DatabaseError> {
    if found > FORMAT { Err(DatabaseError::Newer(found)) } else { Ok(found == FORMAT) }
}

pub(crate) async fn format(target: &mut impl Formatted) -> Result<i64, DatabaseError> {
    let sql = if target.has_table_of_formats() {
        "SELECT format AS user_version FROM cliq_format"
    } else {
        "PRAGMA user_version"
    };
    let answer = target.run(sql, arguments![]).await?;
    // SQLite gives a 32-bit number here.
    answer.rows.first().map_or(Ok(0), |row| row.integer("user_version"))
}

async fn record_format(transaction: &mut Tx<'_>) -> Result<(), DatabaseError> {
    const { assert!(FORMAT == 12, "the numbers in the statements below are FORMAT") };
    if transaction.is_postgres() {
        let sql =
            "INSERT INTO cliq_format (format) VALUES (12) ON CONFLICT (only_row) DO UPDATE SET format = 12";
        transaction.run(sql, arguments![]).await.map(drop)
    } else {
        transaction.script("PRAGMA user_version = 12").await
    }
}

pub(crate) trait Formatted: Target {
    fn has_table_of_formats(&self) -> bool;
}

impl Formatted for Connection {
    fn has_table_of_formats(&self) -> bool {
        self.is_postgres()
    }
}

impl Formatted for Tx<'_> {
    fn has_table_of_formats(&self) -> bool {
        self.is_postgres()
    }
}
