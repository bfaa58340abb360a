//! Receivers of push notifications, and how far their deliveries are.

use cliq_model::PushRow;
use cliq_protocol::{RunId, Timestamp};

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::push;
use crate::statement::arguments;

/// Stores a new receiver, or a changed one. `false` where another changed it since.
pub(crate) async fn put(connection: &mut Connection, new: &PushRow) -> Result<bool, DatabaseError> {
    if new.version == 0 {
        return insert(connection, new).await;
    }
    let sql = "UPDATE a2a_push SET event = $3, part = $4, state = $5, attempts = $6, failing_since = $7, next_at = $8, reason = $9, version = $10 + 1 WHERE task_id = $1 AND id = $2 AND version = $10";
    let arguments = arguments![
        new.task_id.as_str(),
        &new.id,
        new.event,
        new.part,
        new.state.as_str(),
        new.attempts,
        new.failing_since,
        new.next_at,
        new.reason.as_deref(),
        new.version
    ];
    Ok(connection.run(sql, arguments).await?.changed == 1)
}

/// Stores a receiver in the place of one with the same id.
pub(crate) async fn insert(target: &mut impl Target, new: &PushRow) -> Result<bool, DatabaseError> {
    let sql = "INSERT INTO a2a_push (task_id, id, protocol, url, token, scheme, credentials, event, part, state, attempts, failing_since, next_at, reason, version) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1) ON CONFLICT (task_id, id) DO UPDATE SET protocol = $3, url = $4, token = $5, scheme = $6, credentials = $7, state = $10, attempts = 0, failing_since = NULL, next_at = $13, reason = NULL, version = a2a_push.version + 1";
    let arguments = arguments![
        new.task_id.as_str(),
        &new.id,
        &new.protocol,
        &new.url,
        new.token.as_deref(),
        new.scheme.as_deref(),
        new.credentials.as_deref(),
        new.event,
        new.part,
        new.state.as_str(),
        new.attempts,
        new.failing_since,
        new.next_at,
        new.reason.as_deref()
    ];
    target.run(sql, arguments).await.map(|_| true)
}

pub(crate) async fn list(connection: &mut Connection, task: &RunId) -> Result<Vec<PushRow>, DatabaseError> {
    let sql = "SELECT * FROM a2a_push WHERE task_id = $1 ORDER BY id";
    connection.run(sql, arguments![task.as_str()]).await?.rows.iter().map(push).collect()
}

pub(crate) async fn remove(connection: &mut Connection, task: &RunId, id: &str) -> Result<(), DatabaseError> {
    let sql = "DELETE FROM a2a_push WHERE task_id = $1 AND id = $2";
    connection.run(sql, arguments![task.as_str(), id]).await.map(drop)
}

pub(crate) async fn due(
    connection: &mut Connection,
    now: Timestamp,
    limit: u32,
) -> Result<Vec<PushRow>, DatabaseError> {
    let sql = "SELECT p.* FROM a2a_push p JOIN runs r ON r.id = p.task_id WHERE p.state = 'active' AND p.next_at <= $1 AND r.last_event > p.event ORDER BY p.next_at LIMIT $2";
    connection.run(sql, arguments![now, i64::from(limit)]).await?.rows.iter().map(push).collect()
}
