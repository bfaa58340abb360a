//! The reaper: makes signals pending again whose worker did not finish them within the lease, or died (docs/signals.md).

use std::time::Duration;

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::statement::{Answer, arguments};
use crate::time::ago;

/// Ends leases that are older than `age`. Gives the signals that are pending again.
pub(crate) async fn expired(connection: &mut Connection, age: Duration) -> Result<Vec<i64>, DatabaseError> {
    let sql = "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '' WHERE status = 'processing' AND claimed_at <= $1 RETURNING id";
    ids(&connection.run(sql, arguments![ago(age)]).await?)
}

/// Ends all leases of a worker. Gives the signals that are pending again.
pub(crate) async fn of_worker(connection: &mut Connection, worker: &str) -> Result<Vec<i64>, DatabaseError> {
    let sql = "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '' WHERE status = 'processing' AND substr(claimed_by, 1, length($1) + 1) = $1 || '#' RETURNING id";
    ids(&connection.run(sql, arguments![worker]).await?)
}

fn ids(answer: &Answer) -> Result<Vec<i64>, DatabaseError> {
    let mut ids = answer.rows.iter().map(|row| row.integer("id")).collect::<Result<Vec<_>, _>>()?;
    ids.sort_unstable();
    Ok(ids)
}
