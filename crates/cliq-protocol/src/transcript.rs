//! Transcripts of model agents (docs/models.md): `.cliq/transcripts/<phase>.<activation>.jsonl`, one entry per line.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Object, PermissionRecord, PhaseName, ReplyKind, RunId, Usage, WireTime};

/// Line of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TranscriptEntry {
    /// Time at which it was recorded.
    pub ts: WireTime,
    /// Content.
    #[serde(flatten)]
    pub body: TranscriptBody,
}

/// Content of a line, by `type`.
///
/// A reply of a model is any number of `thinking`, `message` and `tool_call` lines and one `usage` line, which ends it. The lines
/// of a reply are written at once; lines after the last `usage` line are not a whole reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TranscriptBody {
    /// First line.
    Start(TranscriptStart),
    /// Text of the user or of the model.
    Message {
        /// Author.
        role: Role,
        /// Text.
        text: String,
        /// Reason for a message of the user. Absent for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        origin: Option<Origin>,
        /// Ids of the steering messages in it.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        steering: Vec<String>,
        /// Images that the model sees with it, as paths relative to the workspace.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<String>,
    },
    /// Summary of what a model thought, if its provider supplies one.
    Thinking {
        /// Text.
        text: String,
        /// Data of the provider that has to be returned to it with the conversation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        provider_data: Option<Value>,
    },
    /// Request of a model for a tool.
    ToolCall(ToolCall),
    /// Result of a tool call.
    ToolResult(ToolResult),
    /// Request of an agent for permission, with the decision.
    Permission(PermissionRecord),
    /// Usage and end of a reply.
    Usage(ReplyUsage),
    /// Failed call of a model or of a program.
    Error(FailedCall),
    /// Something that people should know, such as a conversation that is not continued.
    Notice {
        /// Text.
        text: String,
    },
    /// The agent has its answer.
    End {
        /// Text of the answer.
        text: String,
    },
}

/// Failed call of a model or of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RecordedError", into = "RecordedError")]
pub struct FailedCall {
    /// Cause, for people. Without secrets.
    pub message: String,
    /// Consequence of the error.
    pub kind: FailedCallKind,
    /// Usage of the failed request. Estimated if its provider reported none.
    pub usage: Option<Usage>,
}

/// Consequence of a failed call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedCallKind {
    /// The agent fails.
    Final,
    /// The same request is tried again.
    Passing,
    /// The conversation was too long for the model. A shorter one is requested.
    TooLong,
    /// The provider refused earlier thoughts, since the conversation before them has changed. The request is tried again without them.
    StaleThinking,
}

impl FailedCallKind {
    /// Whether another request follows.
    #[must_use]
    pub fn is_retried(self) -> bool {
        match self {
            Self::Final => false,
            Self::Passing | Self::TooLong | Self::StaleThinking => true,
        }
    }
}

/// Error line as it is recorded.
#[derive(Serialize, Deserialize)]
struct RecordedError {
    message: String,
    #[serde(default)]
    is_retried: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_too_long: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_stale_thinking: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
}

impl From<RecordedError> for FailedCall {
    fn from(line: RecordedError) -> Self {
        let RecordedError { message, is_retried, is_too_long, has_stale_thinking, usage } = line;
        let kind = match (is_too_long, has_stale_thinking, is_retried) {
            (true, _, _) => FailedCallKind::TooLong,
            (false, true, _) => FailedCallKind::StaleThinking,
            (false, false, true) => FailedCallKind::Passing,
            (false, false, false) => FailedCallKind::Final,
        };
        Self { message, kind, usage }
    }
}

impl From<FailedCall> for RecordedError {
    fn from(error: FailedCall) -> Self {
        let FailedCall { message, kind, usage } = error;
        Self {
            message,
            is_retried: kind.is_retried(),
            is_too_long: kind == FailedCallKind::TooLong,
            has_stale_thinking: kind == FailedCallKind::StaleThinking,
            usage,
        }
    }
}

/// First line of a transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptStart {
    /// Version of the format.
    pub version: u64,
    /// Run.
    pub run_id: RunId,
    /// Phase.
    pub phase: PhaseName,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Name of the agent.
    pub agent: String,
    /// Model, if it is known before the first reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Names of the tools that are offered. Empty for programs of vendors, which have tools of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Number of the interrupted activation whose lines follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continues: Option<u32>,
    /// Number of the completed activation whose conversation is continued. Its lines are in its own transcript.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_from: Option<u32>,
}

/// Author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// cliq: instructions before the conversation.
    System,
    /// cliq, on behalf of people.
    User,
    /// The model.
    Assistant,
}

/// Reason for a message of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The prompt.
    Task,
    /// Steering messages that arrived while the agent worked.
    Steering,
    /// The last answer cannot be used.
    Retry,
    /// A limit is near: the answer is requested now.
    Limit,
    /// A summary of the conversation is requested, since it becomes too long.
    Summary,
    /// The last reply was cut off: its continuation is requested.
    Continue,
    /// A resumed run goes on after a limit or a failure.
    Resume,
    /// The work was sent back: what others found.
    Feedback,
}

/// Request of a model for a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// Id of the call. Unique in the transcript.
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    #[serde(default)]
    pub arguments: Object,
    /// Arguments as the model wrote them, if they are not a JSON object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invalid: Option<String>,
    /// Data of the provider that has to be returned to it with the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_data: Option<Value>,
}

/// Result of a tool call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    /// Id of the call.
    pub id: String,
    /// Whether the tool failed.
    #[serde(default)]
    pub is_error: bool,
    /// Text for the model.
    pub text: String,
    /// Images for the model, as paths relative to the workspace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl ToolResult {
    /// Makes the result of a call with a text for the model. `Err` is a failure.
    #[must_use]
    pub fn new(id: impl Into<String>, outcome: Result<String, String>) -> Self {
        let is_error = outcome.is_err();
        let text = outcome.unwrap_or_else(|text| text);
        Self { id: id.into(), is_error, text, images: Vec::new(), duration_ms: None }
    }
}

/// Usage and end of a reply.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(from = "RecordedUsage")]
pub struct ReplyUsage {
    /// Tokens and cost. `None` if the provider reported none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Duration of the request in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Kind of the reply. `None` in transcripts of earlier versions: the content decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<ReplyKind>,
    /// Reason for the kind, for people: the limit that cut the reply off, or the refusal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// Usage line as any version recorded it.
#[derive(Deserialize)]
struct RecordedUsage {
    #[serde(default)]
    usage: Option<Usage>,
    #[serde(default)]
    duration_ms: Option<u64>,
    #[serde(default)]
    kind: Option<ReplyKind>,
    #[serde(default)]
    detail: Option<String>,
    /// Mark of a cut reply before replies had kinds.
    #[serde(default)]
    is_cut_off: bool,
}

impl From<RecordedUsage> for ReplyUsage {
    fn from(line: RecordedUsage) -> Self {
        let RecordedUsage { usage, duration_ms, kind, detail, is_cut_off } = line;
        let kind = kind.or(is_cut_off.then_some(ReplyKind::CutOff));
        Self { usage, duration_ms, kind, detail }
    }
}

impl TranscriptEntry {
    /// Encodes the entry as one line.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        // Maps with text keys and numbers always become JSON.
        let mut line = serde_json::to_vec(self).unwrap_or_default();
        line.push(b'\n');
        line
    }

    /// Decodes a line. Time and memory are linear in the size of the line; an error has at most 300 bytes.
    ///
    /// # Errors
    /// Returns an error if the line is not an entry that this version knows.
    pub fn decode(line: &[u8]) -> Result<Self, serde_json::Error> {
        // The reader quotes names that it does not know.
        serde_json::from_slice(line)
            .map_err(|error| serde::de::Error::custom(crate::shorten(&error.to_string(), 300)))
    }
}
