//! Messages, tasks and artifacts, free of any version.

use serde_json::{Map, Value};

/// A JSON object with details that the protocol does not define.
pub(crate) type Metadata = Map<String, Value>;

/// State of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// Queued.
    Submitted,
    /// The team works.
    Working,
    /// The task waits for a message of the caller.
    InputRequired,
    /// Every phase is done.
    Completed,
    /// The task ended with an error or escalated.
    Failed,
    /// The task was cancelled.
    Canceled,
    /// The agent did not accept it.
    Rejected,
    /// The task waits for credentials.
    AuthRequired,
}

impl TaskState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Submitted,
        Self::Working,
        Self::InputRequired,
        Self::Completed,
        Self::Failed,
        Self::Canceled,
        Self::Rejected,
        Self::AuthRequired,
    ];

    /// Whether the task is over: it takes no message and cannot be cancelled.
    #[must_use]
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled | Self::Rejected)
    }

    /// Whether the task waits for its caller.
    #[must_use]
    pub fn is_interrupted(self) -> bool {
        matches!(self, Self::InputRequired | Self::AuthRequired)
    }
}

/// The side that a message comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The caller.
    User,
    /// The agent.
    Agent,
}

/// A piece of content.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The content.
    pub content: Content,
    /// Details that the protocol does not define.
    pub metadata: Option<Metadata>,
    /// The name of the file, where it is one.
    pub filename: Option<String>,
    /// Media type of the content.
    pub media_type: Option<String>,
}

/// Content of a part.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    /// Text for people.
    Text(String),
    /// A JSON value for programs.
    Data(Value),
    /// The bytes of a file, in base64.
    Bytes(String),
    /// The address of a file.
    Url(String),
}

impl Part {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: Content::Text(text.into()), metadata: None, filename: None, media_type: None }
    }

    /// A JSON value.
    #[must_use]
    pub fn data(value: Value) -> Self {
        Self { content: Content::Data(value), metadata: None, filename: None, media_type: None }
    }
}

/// A message of a caller or of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Id made by the sender. Empty if a 0.3 caller sent none.
    pub message_id: String,
    /// The conversation that it belongs to.
    pub context_id: Option<String>,
    /// The task that it belongs to.
    pub task_id: Option<String>,
    /// Sender of the message.
    pub role: Role,
    /// Content: at least one part.
    pub parts: Vec<Part>,
    /// Details that the protocol does not define.
    pub metadata: Option<Metadata>,
    /// Extensions that it uses, by URI.
    pub extensions: Vec<String>,
    /// Tasks that it refers to.
    pub reference_task_ids: Vec<String>,
}

impl Message {
    /// Returns the texts, separated by empty lines, or `None` if there is none but blanks.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let texts: Vec<&str> = self
            .parts
            .iter()
            .filter_map(|part| match &part.content {
                Content::Text(text) if !text.trim().is_empty() => Some(text.as_str()),
                _ => None,
            })
            .collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}

/// Something that a task delivers.
#[derive(Debug, Clone, PartialEq)]
pub struct Artifact {
    /// Id, unique within the task.
    pub artifact_id: String,
    /// Name of the artifact.
    pub name: Option<String>,
    /// Description of the artifact.
    pub description: Option<String>,
    /// Content: at least one part.
    pub parts: Vec<Part>,
}

/// State of a task with its timestamp.
#[derive(Debug, Clone, PartialEq)]
pub struct Status {
    /// State of the task.
    pub state: TaskState,
    /// Message of the agent about the state.
    pub message: Option<Message>,
    /// Since when, UTC.
    pub timestamp: Option<String>,
}

/// A task.
#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    /// Id made by the agent.
    pub id: String,
    /// The conversation that it belongs to.
    pub context_id: String,
    /// State of the task.
    pub status: Status,
    /// Artifacts, or `None` if the caller did not ask for them.
    pub artifacts: Option<Vec<Artifact>>,
    /// Messages, oldest first; `None` if they were not asked for.
    pub history: Option<Vec<Message>>,
    /// Details that the protocol does not define.
    pub metadata: Option<Metadata>,
}

/// Something that a stream or a push notification carries.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// The task as it is now.
    Task(Task),
    /// A message without a task.
    Message(Message),
    /// The state changed, or the agent sent a message.
    Status {
        /// The task.
        task_id: String,
        /// Id of the conversation.
        context_id: String,
        /// The new status.
        status: Status,
        /// Details that the protocol does not define.
        metadata: Option<Metadata>,
    },
    /// The task delivered an artifact.
    Artifact {
        /// The task.
        task_id: String,
        /// Id of the conversation.
        context_id: String,
        /// The complete artifact.
        artifact: Artifact,
        /// Details that the protocol does not define.
        metadata: Option<Metadata>,
    },
}

impl StreamItem {
    /// Whether the task waits for its caller: in 0.3 this update is marked as final, and the stream closes after it.
    #[must_use]
    pub fn asks(&self) -> bool {
        matches!(self, Self::Status { status, .. } if status.state.is_interrupted())
    }

    /// Whether a stream closes after it: the task is over.
    #[must_use]
    pub fn is_last(&self) -> bool {
        match self {
            Self::Status { status, .. } => status.state.is_terminal(),
            Self::Message(_) => true,
            Self::Task(_) | Self::Artifact { .. } => false,
        }
    }
}

/// Authentication of the agent at a receiver of push notifications.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Authentication {
    /// The HTTP scheme: `Bearer`, `Basic`.
    pub scheme: String,
    /// Text after the scheme in the header `Authorization`.
    pub credentials: Option<String>,
}

/// Receiver of push notifications of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushConfig {
    /// Id of the receiver. `None` lets the agent choose.
    pub id: Option<String>,
    /// The address that notifications are posted to.
    pub url: String,
    /// Sent as `X-A2A-Notification-Token`.
    pub token: Option<String>,
    /// Authentication at the receiver.
    pub authentication: Option<Authentication>,
}
