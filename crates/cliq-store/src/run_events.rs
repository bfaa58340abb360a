//! Events of runs.

use cliq_runs::{Change, RunEventRow, RunId};

use crate::connection::{Connection, Target, Tx};
use crate::statement::{Row, arguments};

pub(crate) async fn add(transaction: &mut Tx<'_>, change: &Change) -> Result<(), sqlx::Error> {
    for row in change.rows() {
        let sql = "INSERT INTO run_events (run_id, id, ts, kind, data) VALUES ($1, $2, $3, $4, $5)";
        let arguments = arguments![change.id().as_str(), row.id, &row.ts, &row.kind, &row.data];
        transaction.run(sql, arguments).await?;
    }
    Ok(())
}

pub(crate) async fn list(
    connection: &mut Connection,
    id: &RunId,
    after: i64,
    limit: u32,
) -> Result<Vec<RunEventRow>, sqlx::Error> {
    let sql = "SELECT id, ts, kind, data FROM run_events WHERE run_id = $1 AND id > $2 ORDER BY id LIMIT $3";
    let answer = connection.run(sql, arguments![id.as_str(), after, i64::from(limit)]).await?;
    answer.rows.iter().map(event).collect()
}

fn event(row: &Row) -> Result<RunEventRow, sqlx::Error> {
    Ok(RunEventRow {
        id: row.integer("id")?,
        ts: row.text("ts")?,
        kind: row.text("kind")?,
        data: row.text("data")?,
    })
}
