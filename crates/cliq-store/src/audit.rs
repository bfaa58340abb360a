//! Audit log: entries are added and read, nothing else.

use async_trait::async_trait;
use cliq_model::{AuditAction, AuditEntry, AuditFilter, AuditStore, StoreError};

use crate::connection::{Connection, Target};
use crate::error::DatabaseError;
use crate::rows::audit_entry;
use crate::select::Select;
use crate::statement::arguments;
use crate::store::{SqlStore, on};

/// Adds an entry.
pub(crate) async fn add(target: &mut impl Target, action: &AuditAction) -> Result<(), DatabaseError> {
    let sql = "INSERT INTO audit (ts, actor, person, via, action, target, outcome, request_id, peer) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let arguments = arguments![
        action.ts,
        &action.actor,
        action.person.as_deref(),
        &action.via,
        &action.action,
        &action.target,
        &action.outcome,
        action.request_id.as_deref(),
        action.peer.as_deref()
    ];
    target.run(sql, arguments).await.map(drop)
}

async fn list(connection: &mut Connection, filter: &AuditFilter) -> Result<Vec<AuditEntry>, DatabaseError> {
    let mut select = Select::new("SELECT * FROM audit");
    if let Some(actor) = &filter.actor {
        select.filter("(actor = ? OR person = ?)", [actor, actor]);
    }
    for (condition, value) in [("ts >= ?", filter.since), ("ts < ?", filter.until)] {
        if let Some(value) = value {
            select.filter(condition, [value]);
        }
    }
    for (condition, id) in [("id > ?", filter.after), ("id < ?", filter.before)] {
        if let Some(id) = id {
            select.filter(condition, [id]);
        }
    }
    let limit = [i64::from(filter.limit)];
    if filter.after.is_some() {
        select.add(" ORDER BY id LIMIT ?", limit);
    } else {
        select.add(" ORDER BY id DESC LIMIT ?", limit);
    }
    connection.select(&select).await?.rows.iter().map(audit_entry).collect()
}

#[async_trait]
impl AuditStore for SqlStore {
    async fn add_audit(&self, action: &AuditAction) -> Result<(), StoreError> {
        on!(self.writer("the entry of the audit log"), connection => add(connection, action).await)
    }

    async fn audit(&self, filter: &AuditFilter) -> Result<Vec<AuditEntry>, StoreError> {
        on!(self.reader(), connection => list(connection, filter).await)
    }
}
