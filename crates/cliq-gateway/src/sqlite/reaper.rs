//! The reaper: makes signals pending again whose worker did not finish them within the lease, or died (SPEC section 10).

use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::ago;

/// Ends leases that are older than `age`. Gives the signals that are pending again.
pub(super) async fn expired(
    connection: &mut SqliteConnection,
    age: Duration,
) -> Result<Vec<i64>, sqlx::Error> {
    let rows = sqlx::query(
        "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '' WHERE status = 'processing' AND claimed_at <= ? RETURNING id",
    )
    .bind(ago(age))
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Ends all leases of a worker. Gives the signals that are pending again.
pub(super) async fn of_worker(
    connection: &mut SqliteConnection,
    worker: &str,
) -> Result<Vec<i64>, sqlx::Error> {
    let rows = sqlx::query(
        "UPDATE signals SET status = 'pending', claimed_by = '', claimed_at = '' WHERE status = 'processing' AND substr(claimed_by, 1, length(?1) + 1) = ?1 || '#' RETURNING id",
    )
    .bind(worker)
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}
