//! Audit log: actions of callers, append-only (docs/sign-in.md).

use cliq_protocol::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

/// Action that is to be recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditAction {
    /// Time, UTC.
    #[schema(value_type = String)]
    pub ts: Timestamp,
    /// Label of the caller's token, name of the person, or user of the machine.
    pub actor: String,
    /// Verified mail address of a person who signed in; `null` for tokens.
    pub person: Option<String>,
    /// Door: `api`, `page`, `mcp`, `a2a` or `command`.
    pub via: String,
    /// Action, such as `POST /api/v1/runs` or `token create`.
    pub action: String,
    /// Object of the action: the path of the address, or a name.
    pub target: String,
    /// Outcome: the HTTP status, `ok` or `failed`.
    pub outcome: String,
    /// Id of the request, as in the access log; `null` for commands.
    pub request_id: Option<String>,
    /// Address of the caller; `null` for commands.
    pub peer: Option<String>,
}

/// A recorded action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AuditEntry {
    /// Number, in the order of recording.
    pub id: i64,
    /// Action.
    #[serde(flatten)]
    pub action: AuditAction,
}

/// Filter for recorded actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditFilter {
    /// Of this actor or person.
    pub actor: Option<String>,
    /// Recorded at this time or later, UTC.
    pub since: Option<Timestamp>,
    /// Recorded before this time, UTC.
    pub until: Option<Timestamp>,
    /// With a greater number, oldest first. `None` for newest first.
    pub after: Option<i64>,
    /// With a smaller number, newest first.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
}
