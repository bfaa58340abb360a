//! Runs that callers of A2A asked for, with what belongs to the caller (docs/a2a.md).
//!
//! A task is a run: it has the run's id, and its updates follow from the run's events. What is stored beside the run is who owns
//! it, its conversation, the messages of its caller, and where push notifications go.

use async_trait::async_trait;
use cliq_gateway::GatewayError;

use crate::lifecycle::RunState;
use crate::run::{Run, RunId};

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
    pub updated_at: String,
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
    pub after: Option<String>,
    /// Those that come after a task in the list: its time of change and its id.
    pub cursor: Option<(String, RunId)>,
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
    pub failing_since: Option<String>,
    /// When the next delivery may be tried, UTC.
    pub next_at: String,
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

/// Keeps tasks and push notifications. New tasks are stored with their run by [`crate::RunStore::change`].
#[async_trait]
pub trait TaskStore: Send + Sync + std::fmt::Debug {
    /// A task of an owner. `None` if there is none, or it is another owner's.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task(&self, owner: &str, id: &RunId) -> Result<Option<StoredTask>, GatewayError>;

    /// The task that a message of an owner made.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task_of_message(
        &self,
        owner: &str,
        message_id: &str,
    ) -> Result<Option<StoredTask>, GatewayError>;

    /// A task by its id alone, for the server itself.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn task_of_run(&self, id: &RunId) -> Result<Option<TaskRow>, GatewayError>;

    /// Replaces the messages of a task. `false` if they are no longer those in `known`.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn put_messages(&self, id: &RunId, known: &str, messages: &str) -> Result<bool, GatewayError>;

    /// Tasks of an owner, last changed first. The `view` of their runs is left out.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn tasks(&self, filter: &TaskFilter) -> Result<Vec<StoredTask>, GatewayError>;

    /// Returns the number of tasks that match a filter on all pages.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn count_tasks(&self, filter: &TaskFilter) -> Result<u64, GatewayError>;

    /// Stores a receiver of push notifications, new or changed. `false` where another changed it since.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn put_push(&self, push: &PushRow) -> Result<bool, GatewayError>;

    /// The receivers of a task, by id.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn pushes(&self, task_id: &RunId) -> Result<Vec<PushRow>, GatewayError>;

    /// Removes a receiver.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn remove_push(&self, task_id: &RunId, id: &str) -> Result<(), GatewayError>;

    /// Active receivers whose task has events that are not delivered, and whose time has come at `now` (UTC), at most `limit`.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn due_pushes(&self, now: &str, limit: u32) -> Result<Vec<PushRow>, GatewayError>;
}
