//! Runs that callers of A2A asked for, with what belongs to the caller (docs/a2a.md).
//!
//! A task is a run: it has the run's id, and its updates follow from the run's events. What is stored beside the run is who owns
//! it, its conversation, the messages of its caller, and where push notifications go.

use crate::lifecycle::RunState;
use crate::run::Run;
use cliq_protocol::{RunId, Timestamp};

/// Data of a task besides its run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRow {
    /// Owner, who may see and change the task: the id of a token.
    pub owner: String,
    /// The conversation that it belongs to.
    pub context_id: String,
    /// The id of the message that made it. The same owner makes no second task with it.
    pub message_id: String,
    /// The caller's messages, as a JSON list in the format of A2A 1.0.
    pub messages: String,
    /// Time of the last change of its run, UTC. Set by the store.
    pub updated_at: Timestamp,
}

/// A task with its run.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredTask {
    /// Data of the caller.
    pub task: TaskRow,
    /// The run.
    pub run: Run,
}

/// Filter for the tasks of an owner.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskFilter {
    /// The owner.
    pub owner: String,
    /// Of this conversation.
    pub context_id: Option<String>,
    /// In one of these states, which may be the same: no state of a task is more than three states of runs. `None` for any.
    pub states: Option<[RunState; 3]>,
    /// Changed after this time, UTC.
    pub after: Option<Timestamp>,
    /// Those that come after a task in the list: its time of change and its id.
    pub cursor: Option<(Timestamp, RunId)>,
    /// At most so many.
    pub limit: u32,
}

/// State of a receiver of push notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushState {
    /// Notifications are delivered.
    Active,
    /// The last one was delivered.
    Done,
    /// The receiver was given up.
    Dead,
}

impl PushState {
    /// The word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Done => "done",
            Self::Dead => "dead",
        }
    }

    /// The state that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Active, Self::Done, Self::Dead].into_iter().find(|state| state.as_str() == text)
    }
}

/// Receiver of push notifications of a task with its position: all updates up to the position are delivered.
#[derive(Clone, PartialEq, Eq)]
pub struct PushRow {
    /// The task.
    pub task_id: RunId,
    /// Id, unique within the task.
    pub id: String,
    /// The version of the protocol that it was made with: `0.3` or `1.0`.
    pub protocol: String,
    /// The address.
    pub url: String,
    /// Sent as `X-A2A-Notification-Token`.
    pub token: Option<String>,
    /// The scheme of the header `Authorization`.
    pub scheme: Option<String>,
    /// Text after the scheme.
    pub credentials: Option<String>,
    /// The number of the event that was delivered last.
    pub event: i64,
    /// The place among the updates of that event.
    pub part: i64,
    /// State of the receiver.
    pub state: PushState,
    /// Number of failed delivery attempts for the next update.
    pub attempts: i64,
    /// Since when deliveries fail, UTC.
    pub failing_since: Option<Timestamp>,
    /// When the next delivery may be tried, UTC.
    pub next_at: Timestamp,
    /// Why the last try failed.
    pub reason: Option<String>,
    /// Number of changes, for optimistic locking. 0 for a receiver that is not stored yet.
    pub version: i64,
}

/// Secrets are not shown.
impl std::fmt::Debug for PushRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PushRow")
            .field("task_id", &self.task_id)
            .field("id", &self.id)
            .field("event", &self.event)
            .field("part", &self.part)
            .field("state", &self.state)
            .field("attempts", &self.attempts)
            .finish_non_exhaustive()
    }
}
