//! Parked runs: the queue that they come back to, and their wake-up (docs/decisions/0034-parked-runs-are-rows.md).
//!
//! A run that parks and a review that ends meet in the rows of the reviews: both transactions lock them before the run. So either the run
//! finds the review over, or the review finds the run waiting, with any number of servers.

use cliq_model::{Cause, Queue, Run};
use cliq_protocol::{RunId, Timestamp};

use crate::cells::Cells;
use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::rows::{run, runs_of};
use crate::run_change::write;
use crate::statement::arguments;
use crate::time;

/// Locks the reviews that a run is about to wait for. Returns one that is over, or is not there.
pub(crate) async fn review_that_is_over(
    transaction: &mut Tx<'_>,
    reviews: &[String],
) -> Result<Option<String>, DatabaseError> {
    // In one order, so that two transactions cannot wait for each other.
    let mut reviews: Vec<&String> = reviews.iter().collect();
    reviews.sort();
    let mut over = None;
    for id in reviews {
        let sql = if transaction.is_postgres() {
            "SELECT state FROM reviews WHERE id = $1 FOR UPDATE"
        } else {
            "SELECT state FROM reviews WHERE id = $1"
        };
        let answer = transaction.run(sql, arguments![id]).await?;
        let state = answer.rows.first().map(|row| row.text("state")).transpose()?;
        if state.as_deref() != Some("pending") {
            over.get_or_insert_with(|| id.clone());
        }
    }
    Ok(over)
}

/// Records the reviews that a parked run waits for.
pub(crate) async fn set_reviews(
    transaction: &mut Tx<'_>,
    id: &RunId,
    reviews: &[String],
) -> Result<(), DatabaseError> {
    transaction.run("DELETE FROM run_waits WHERE run_id = $1", arguments![id.as_str()]).await?;
    for review in reviews {
        let sql = "INSERT INTO run_waits (review_id, run_id) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        transaction.run(sql, arguments![review, id.as_str()]).await?;
    }
    Ok(())
}

/// Queues the runs that wait for a review, which is over.
pub(crate) async fn wake(transaction: &mut Tx<'_>, review: &str) -> Result<(), DatabaseError> {
    let sql = if transaction.is_postgres() {
        "SELECT r.* FROM runs r JOIN run_waits w ON w.run_id = r.id WHERE w.review_id = $1 AND r.state = 'waiting' ORDER BY r.id FOR UPDATE OF r"
    } else {
        "SELECT r.* FROM runs r JOIN run_waits w ON w.run_id = r.id WHERE w.review_id = $1 AND r.state = 'waiting' ORDER BY r.id"
    };
    let waiting: Vec<Run> =
        transaction.run(sql, arguments![review]).await?.rows.iter().map(run).collect::<Result<_, _>>()?;
    for run in waiting {
        // Both are impossible: its state was read under the lock.
        if let Ok(change) = cliq_model::wake(run, Cause::Review { review: review.to_owned() }, time::now()) {
            write(transaction, &change).await?;
        }
    }
    Ok(())
}

pub(crate) async fn queue(connection: &mut Connection, limit: u32) -> Result<Queue, DatabaseError> {
    let limit = arguments![i64::from(limit)];
    let sql = "SELECT * FROM runs WHERE state = 'queued' AND woken_at IS NOT NULL ORDER BY cancel_requested DESC, woken_at, id LIMIT $1";
    let woken = runs_of(&connection.run(sql, limit).await?)?.into();
    let sql =
        "SELECT * FROM runs WHERE state = 'queued' AND woken_at IS NULL ORDER BY queued_at, id LIMIT $1";
    let new = runs_of(&connection.run(sql, limit).await?)?.into();
    Ok(Queue { woken, new })
}

pub(crate) async fn due(connection: &mut Connection, limit: u32) -> Result<Vec<Run>, DatabaseError> {
    let limit = i64::from(limit);
    let answer = if connection.is_postgres() {
        // The clocks of several servers may differ.
        let sql = r#"SELECT * FROM runs WHERE state = 'waiting' AND wake_at <= to_char(clock_timestamp() AT TIME ZONE 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') ORDER BY wake_at, id LIMIT $1"#;
        connection.run(sql, arguments![limit]).await?
    } else {
        let sql =
            "SELECT * FROM runs WHERE state = 'waiting' AND wake_at <= $1 ORDER BY wake_at, id LIMIT $2";
        connection.run(sql, arguments![time::now(), limit]).await?
    };
    runs_of(&answer)
}

pub(crate) async fn next_wake(connection: &mut Connection) -> Result<Option<Timestamp>, DatabaseError> {
    let sql = "SELECT id, wake_at FROM runs WHERE wake_at IS NOT NULL ORDER BY wake_at LIMIT 1";
    let answer = connection.run(sql, arguments![]).await?;
    answer.rows.first().map(|row| Cells::new(row, "runs", &["id"]).time("wake_at")).transpose()
}
