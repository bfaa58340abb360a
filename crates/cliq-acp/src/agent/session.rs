//! Sessions of a client, and the turn of a session. Pure.

use std::collections::BTreeSet;

use agent_client_protocol_schema::v1::{Meta, StopReason};

use crate::rpc::{Id, RpcError};

/// Number of a turn, unique in its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(pub u64);

/// End of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum TurnEnd {
    /// The turn has an answer.
    Answered {
        /// Reason.
        reason: StopReason,
        /// Facts for programs.
        meta: Option<Meta>,
    },
    /// The turn failed.
    Failed(RpcError),
}

/// Prompt that is not answered yet.
#[derive(Debug, Clone)]
pub(super) struct Turn {
    pub(super) id: TurnId,
    /// Request of the client.
    pub(super) request: Id,
    /// Whether the client cancelled the turn.
    pub(super) is_cancelled: bool,
    /// Gates that the client was asked about.
    pub(super) asked: BTreeSet<String>,
}

/// Request for changes whose words the next prompt has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AwaitedWords {
    pub(super) gate: String,
    pub(super) to: String,
}

/// Session of a client.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionState {
    pub(super) turn: Option<Turn>,
    pub(super) awaited: Option<AwaitedWords>,
}

/// Returns the error for a session that this process has not opened.
pub(super) fn unknown(session: &str) -> RpcError {
    let message = format!("session {session} is not open: load it with `session/load` or `session/resume`");
    RpcError::new(RpcError::RESOURCE_NOT_FOUND, message)
}
