//! Rows as values.

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use crate::signal::{Signal, SignalStatus};
use crate::store::{PlanEvent, PlanRow};

pub(super) fn signal(row: &SqliteRow) -> Result<Signal, sqlx::Error> {
    let status: String = row.try_get("status")?;
    let status = SignalStatus::parse(&status).ok_or_else(|| sqlx::Error::ColumnDecode {
        index: "status".to_owned(),
        source: format!("`{status}` is no status of a signal").into(),
    })?;
    Ok(Signal {
        id: row.try_get("id")?,
        project: row.try_get("project")?,
        plan: row.try_get("plan_file")?,
        kind: row.try_get("signal_type")?,
        payload: row.try_get("payload")?,
        status,
        created_at: row.try_get("created_at")?,
        claimed_by: row.try_get("claimed_by")?,
        claimed_at: row.try_get("claimed_at")?,
        processed_at: row.try_get("processed_at")?,
        result: row.try_get("result")?,
    })
}

pub(super) fn plan(row: &SqliteRow) -> Result<PlanRow, sqlx::Error> {
    Ok(PlanRow {
        project: row.try_get("project")?,
        name: row.try_get("name")?,
        state: row.try_get("state")?,
        document: row.try_get("document")?,
        version: row.try_get("version")?,
        created_at: row.try_get("created_at")?,
        updated_at: row.try_get("updated_at")?,
    })
}

pub(super) fn event(row: &SqliteRow) -> Result<PlanEvent, sqlx::Error> {
    let detail: String = row.try_get("detail")?;
    Ok(PlanEvent {
        id: row.try_get("id")?,
        plan: row.try_get("plan")?,
        at: row.try_get("at")?,
        kind: row.try_get("kind")?,
        from: row.try_get("from_state")?,
        to: row.try_get("to_state")?,
        signal: row.try_get("signal_id")?,
        detail: serde_json::from_str(&detail).unwrap_or(serde_json::Value::Null),
    })
}
