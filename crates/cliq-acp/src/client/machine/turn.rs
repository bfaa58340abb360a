//! Text, decisions and report of a turn.

use super::super::ask::PermissionDecision;
use super::super::outcome::Outcome;
use super::super::update::{Chunk, Update};
use super::super::usage::TurnUsage;

/// Maximum length of the text of a turn, in bytes: 16 MiB.
pub const MAX_TEXT: usize = 16 << 20;

/// Numbers of decisions about permissions in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Decisions {
    /// Calls that were allowed.
    pub allowed: u64,
    /// Calls that were refused.
    pub rejected: u64,
    /// Requests that got no decision.
    pub cancelled: u64,
}

impl Decisions {
    pub(crate) fn count(&mut self, decision: PermissionDecision) {
        match decision {
            PermissionDecision::Allow => self.allowed += 1,
            PermissionDecision::Reject => self.rejected += 1,
            PermissionDecision::Cancel => self.cancelled += 1,
        }
    }
}

/// Result of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnReport {
    /// End of the turn.
    pub outcome: Outcome,
    /// Messages of the agent in order. A tool call or a new message id begins a new one. The last one is usually the answer.
    pub messages: Vec<String>,
    /// Usage of the turn.
    pub usage: TurnUsage,
    /// Number of tool calls.
    pub tool_calls: u64,
    /// Decisions about permissions.
    pub decisions: Decisions,
}

impl TurnReport {
    /// Returns the last message that is not blank.
    #[must_use]
    pub fn answer(&self) -> &str {
        let mut messages = self.messages.iter().rev().map(|message| message.trim());
        messages.find(|message| !message.is_empty()).unwrap_or_default()
    }
}

/// Turn that runs.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    messages: Vec<String>,
    /// Id of the last message.
    message: Option<String>,
    /// Whether the next chunk may belong to the last message.
    is_open: bool,
    bytes: usize,
    tool_calls: u64,
    pub(super) decisions: Decisions,
}

impl Turn {
    /// Takes an update of the turn. Returns `false` if its text exceeds [`MAX_TEXT`].
    pub(super) fn take(&mut self, update: &Update) -> bool {
        match update {
            Update::Answer(chunk) => self.take_chunk(chunk),
            Update::ToolStarted(_) => {
                self.tool_calls += 1;
                self.is_open = false;
                true
            }
            Update::Thought(_)
            | Update::User(_)
            | Update::ToolChanged(_)
            | Update::Plan(_)
            | Update::Notice(_)
            | Update::Usage { .. }
            | Update::Mode(_)
            | Update::Other(_)
            | Update::Unknown { .. }
            | Update::Extension { .. } => true,
        }
    }

    fn take_chunk(&mut self, chunk: &Chunk) -> bool {
        let Some(text) = chunk.text().filter(|text| !text.is_empty()) else { return true };
        self.bytes += text.len();
        if self.bytes > MAX_TEXT {
            return false;
        }
        match self.messages.last_mut().filter(|_| self.is_open && self.message == chunk.message) {
            Some(last) => last.push_str(text),
            None => self.messages.push(text.to_owned()),
        }
        self.message.clone_from(&chunk.message);
        self.is_open = true;
        true
    }

    pub(super) fn into_report(self, outcome: Outcome, usage: TurnUsage) -> TurnReport {
        let Self { messages, tool_calls, decisions, .. } = self;
        TurnReport { outcome, messages, usage, tool_calls, decisions }
    }
}
