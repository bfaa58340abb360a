//! Events of runs.

use cliq_model::{Change, RunEventRow};
use cliq_protocol::{RunId, WireTime};

use crate::cells::Cells;
use crate::connection::{Connection, Target, Tx};
use crate::error::DatabaseError;
use crate::statement::{Argument, Row, arguments};

/// Statements that insert several events at once, the largest number first: each statement costs two changes of threads, or a turn to
/// the server.
const INSERTS: [(usize, &str); 4] = [
    (
        8,
        "INSERT INTO run_events (run_id, id, ts, kind, data) VALUES ($1, $2, $3, $4, $5), ($1, $6, $7, $8, $9), ($1, $10, $11, $12, $13), ($1, $14, $15, $16, $17), ($1, $18, $19, $20, $21), ($1, $22, $23, $24, $25), ($1, $26, $27, $28, $29), ($1, $30, $31, $32, $33)",
    ),
    (
        4,
        "INSERT INTO run_events (run_id, id, ts, kind, data) VALUES ($1, $2, $3, $4, $5), ($1, $6, $7, $8, $9), ($1, $10, $11, $12, $13), ($1, $14, $15, $16, $17)",
    ),
    (
        2,
        "INSERT INTO run_events (run_id, id, ts, kind, data) VALUES ($1, $2, $3, $4, $5), ($1, $6, $7, $8, $9)",
    ),
    (1, "INSERT INTO run_events (run_id, id, ts, kind, data) VALUES ($1, $2, $3, $4, $5)"),
];

pub(crate) async fn add(transaction: &mut Tx<'_>, change: &Change) -> Result<(), DatabaseError> {
    let rows = change.rows();
    let mut left = &rows[..];
    for (together, sql) in INSERTS {
        while let Some((now, rest)) = left.split_at_checked(together) {
            insert(transaction, sql, change.id(), now).await?;
            left = rest;
        }
    }
    Ok(())
}

async fn insert(
    transaction: &mut Tx<'_>,
    sql: &'static str,
    run: &RunId,
    rows: &[RunEventRow],
) -> Result<(), DatabaseError> {
    let mut arguments = vec![Argument::Text(run.as_str())];
    let times: Vec<String> = rows.iter().map(|row| row.ts.to_string()).collect();
    for (row, ts) in rows.iter().zip(&times) {
        let texts = [ts, &row.kind, &row.data].map(|text| Argument::Text(text));
        arguments.push(Argument::Integer(row.id));
        arguments.extend(texts);
    }
    transaction.run(sql, &arguments).await.map(drop)
}

pub(crate) async fn list(
    connection: &mut Connection,
    id: &RunId,
    after: i64,
    limit: u32,
) -> Result<Vec<RunEventRow>, DatabaseError> {
    let sql = "SELECT run_id, id, ts, kind, data FROM run_events WHERE run_id = $1 AND id > $2 ORDER BY id LIMIT $3";
    let answer = connection.run(sql, arguments![id.as_str(), after, i64::from(limit)]).await?;
    answer.rows.iter().map(event).collect()
}

fn event(row: &Row) -> Result<RunEventRow, DatabaseError> {
    let row = Cells::new(row, "run_events", &["run_id", "id"]);
    Ok(RunEventRow {
        id: row.integer("id")?,
        ts: WireTime::from_text(row.text("ts")?),
        kind: row.text("kind")?,
        data: row.text("data")?,
    })
}
