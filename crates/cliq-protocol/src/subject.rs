//! Requests of agents at work that a person answers by a review (docs/agents.md): permission for a tool call, and questions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Object, shorten};

/// Environment variable of an agent at work: the command that asks people, as a JSON array of the program and its arguments. Absent where nobody
/// can be asked.
pub const PEOPLE_VARIABLE: &str = "CLIQ_PEOPLE";

/// Maximum size of a title in bytes.
const TITLE: usize = 200;

/// Subject of a review that an agent at work asks for. Reviews of human gates have none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ReviewSubject {
    /// Permission for one tool call.
    Permission {
        /// Name of the agent.
        agent: String,
        /// Title of the call, as the agent shows it.
        title: String,
        /// Kind of the call, as the agent names it: [`crate::ToolKind::as_str`].
        tool: String,
        /// Files that the call concerns.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        paths: Vec<String>,
        /// Arguments and content of the call, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        details: Option<String>,
    },
    /// Question. The form of the review has the fields of the answer.
    Question {
        /// Name of the agent.
        agent: String,
        /// Text of the question.
        text: String,
    },
}

impl ReviewSubject {
    /// Name of the agent.
    #[must_use]
    pub fn agent(&self) -> &str {
        match self {
            Self::Permission { agent, .. } | Self::Question { agent, .. } => agent,
        }
    }

    /// Title in one line of at most 200 bytes: `execute: cargo test`, or the beginning of a question.
    #[must_use]
    pub fn title(&self) -> String {
        let text = match self {
            Self::Permission { title, tool, .. } => format!("{tool}: {title}"),
            Self::Question { text, .. } => text.clone(),
        };
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        shorten(&flat, TITLE).into_owned()
    }

    /// Request in a sentence: `claude-agent asks for permission: execute: cargo test`.
    #[must_use]
    pub fn sentence(&self) -> String {
        match self {
            Self::Permission { agent, .. } => format!("{agent} asks for permission: {}", self.title()),
            Self::Question { agent, .. } => format!("{agent} asks: {}", self.title()),
        }
    }

    /// Words for the two choices of a reviewer: to approve, and to reject.
    #[must_use]
    pub fn choices(&self) -> (&'static str, &'static str) {
        match self {
            Self::Permission { .. } => ("Allow once", "Refuse"),
            Self::Question { .. } => ("Answer", "Decline"),
        }
    }
}

/// Request of an agent at work, in the dispatch message of the agent that asks people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskDispatch {
    /// Subject of the review.
    pub subject: ReviewSubject,
    /// Whether the request is withdrawn: its review is cancelled if it is pending.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withdraw: bool,
}

/// Outcome of a request. Only [`AskAnswer::Approved`] allows anything.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub enum AskAnswer {
    /// The call is allowed once, or the question is answered.
    Approved {
        /// Person, for people.
        by: String,
        /// Words of the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Values of the form.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        inputs: Object,
    },
    /// The call is refused, or the question is not answered.
    Rejected {
        /// Person, for people.
        by: String,
        /// Words of the person.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody answered in time.
    Expired {
        /// Explanation for people.
        reason: String,
    },
    /// The request was withdrawn, or its review was cancelled.
    Withdrawn {
        /// Explanation for people.
        reason: String,
    },
}

impl AskAnswer {
    /// Whether the call is allowed, or the question answered.
    #[must_use]
    pub fn is_approved(&self) -> bool {
        match self {
            Self::Approved { .. } => true,
            Self::Rejected { .. } | Self::Expired { .. } | Self::Withdrawn { .. } => false,
        }
    }

    /// Words of the person.
    #[must_use]
    pub fn words(&self) -> Option<&str> {
        match self {
            Self::Approved { reason, .. } | Self::Rejected { reason, .. } => reason.as_deref(),
            Self::Expired { .. } | Self::Withdrawn { .. } => None,
        }
    }

    /// Outcome for people: `ann allowed it`, with the words of the person.
    #[must_use]
    pub fn sentence(&self, subject: &ReviewSubject) -> String {
        let done = match (subject, self.is_approved()) {
            (ReviewSubject::Permission { .. }, true) => "allowed it once",
            (ReviewSubject::Permission { .. }, false) => "refused it",
            (ReviewSubject::Question { .. }, true) => "answered",
            (ReviewSubject::Question { .. }, false) => "declined to answer",
        };
        match self {
            Self::Approved { by, .. } | Self::Rejected { by, .. } => {
                let given = self.given();
                match (given.is_empty(), self.words()) {
                    (true, Some(words)) => format!("{by} {done}: {words}"),
                    (true, None) => format!("{by} {done}"),
                    (false, Some(words)) => format!("{by} {done} {given}: {words}"),
                    (false, None) => format!("{by} {done} {given}"),
                }
            }
            Self::Expired { reason } | Self::Withdrawn { reason } => reason.clone(),
        }
    }

    /// Values of the form in a line: `blue`, or `host: db, port: 5432`.
    fn given(&self) -> String {
        let Self::Approved { inputs, .. } = self else { return String::new() };
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let all = match inputs.len() {
            1 => inputs.values().map(text).collect::<String>(),
            _ => inputs
                .iter()
                .map(|(name, value)| format!("{name}: {}", text(value)))
                .collect::<Vec<_>>()
                .join(", "),
        };
        let flat = all.split_whitespace().collect::<Vec<_>>().join(" ");
        if flat.is_empty() { flat } else { format!("`{}`", shorten(&flat, TITLE)) }
    }

    /// Reads the answer in the result of the agent that asks people. Returns `None` if there is none.
    #[must_use]
    pub fn of_result(result: &Value) -> Option<Self> {
        serde_json::from_value(result.get("ask")?.clone()).ok()
    }
}

/// Progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskState {
    /// A person is asked.
    Pending,
    /// There is an outcome, and the agent may not have acted on it.
    Answered,
    /// The agent has acted on the outcome, or its turn has ended.
    Used,
}

/// Record of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskRecord {
    /// Number of the request in the phase and run, 1-based.
    pub number: u32,
    /// Activation of the phase.
    pub activation: u32,
    /// Digest of what is asked, without ids. The same request after an interruption has the same digest.
    pub digest: String,
    /// Subject of the review.
    pub subject: ReviewSubject,
    /// Form of a question, as the review has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub form: Option<Value>,
    /// Progress.
    pub state: AskState,
    /// Outcome, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<AskAnswer>,
}

/// Requests of a phase in a run: `.cliq/asks/<phase>.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskFile {
    /// Version of the format.
    pub version: u64,
    /// Run.
    pub run_id: crate::RunId,
    /// Requests in their order. Those that were used long ago are left out.
    #[serde(default)]
    pub asks: Vec<AskRecord>,
    /// Number of the next request.
    pub next: u32,
}
