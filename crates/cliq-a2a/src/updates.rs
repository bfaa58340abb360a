//! Updates of a task, with numbers by which a stream continues (docs/a2a.md).
//!
//! A task has no log of its own: its updates follow from the events of its run, each from one event, without anything else. The
//! same event gives the same updates at any time, to any reader.

use std::fmt;

use serde_json::{Map, Value};

use crate::model::{Artifact, Message, Part, Role, Status, StreamItem, TaskState};

/// The task that a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// The task's id, which is the run's.
    pub task_id: String,
    /// The conversation.
    pub context_id: String,
    /// The name of the team.
    pub team: String,
    /// The id of this cliq (`server.a2a.instance_id`).
    pub instance_id: String,
}

/// The number of an update: that of the event, and its place among the updates of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct EventNumber {
    /// The number of the run's event, from 1.
    pub event: i64,
    /// The place, from 0.
    pub index: u32,
}

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.index)
    }
}

impl EventNumber {
    /// Reads a number as a stream gave it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (event, index) = text.split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(event) && digits(index)).then_some(())?;
        Some(Self { event: event.parse().ok()?, index: index.parse().ok()? })
    }
}

/// An update of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Number of the update.
    pub number: EventNumber,
    /// Item of the stream.
    pub item: StreamItem,
}

/// An update without number, ids and timestamp.
#[derive(Debug, Clone, PartialEq)]
pub enum UpdateDraft {
    /// State of the task, with a message of the agent.
    Status {
        /// State.
        state: TaskState,
        /// Text part of the message.
        text: String,
        /// Data part of the message.
        data: Option<Value>,
    },
    /// Artifact of the task.
    Artifact(Artifact),
}

impl UpdateDraft {
    /// Returns the update of a task at work.
    #[must_use]
    pub fn working(text: String, data: Value) -> Self {
        Self::Status { state: TaskState::Working, text, data: Some(data) }
    }
}

impl TaskContext {
    /// Returns the updates of the event with a number. `ts` is its timestamp.
    #[must_use]
    pub fn updates(&self, number: i64, ts: Option<&str>, drafts: Vec<UpdateDraft>) -> Vec<Update> {
        let update = |(index, draft)| {
            let number = EventNumber { event: number, index };
            Update { number, item: self.item(number, ts, draft) }
        };
        (0..).zip(drafts).map(update).collect()
    }

    fn item(&self, number: EventNumber, ts: Option<&str>, draft: UpdateDraft) -> StreamItem {
        let metadata = Some(Map::from_iter([("eventId".to_owned(), number.to_string().into())]));
        let (task_id, context_id) = (self.task_id.clone(), self.context_id.clone());
        match draft {
            UpdateDraft::Status { state, text, data } => {
                let message = Message {
                    // The same each time that the event is read.
                    message_id: format!("{task_id}.{number}"),
                    context_id: Some(context_id.clone()),
                    task_id: Some(task_id.clone()),
                    role: Role::Agent,
                    parts: [Part::text(text)].into_iter().chain(data.map(Part::data)).collect(),
                    metadata: None,
                    extensions: Vec::new(),
                    reference_task_ids: Vec::new(),
                };
                let status = Status { state, message: Some(message), timestamp: ts.map(str::to_owned) };
                StreamItem::Status { task_id, context_id, status, metadata }
            }
            UpdateDraft::Artifact(artifact) => {
                StreamItem::Artifact { task_id, context_id, artifact, metadata }
            }
        }
    }
}
