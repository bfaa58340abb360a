//! Conversations of model agents (docs/models.md): the word in `team.yml`, and the record of a conversation,
//! `.cliq/conversations/<phase>.<activation>.json`.

use std::collections::{BTreeMap, BTreeSet};

use camino::Utf8PathBuf;
use serde::{Deserialize, Serialize};

use crate::{PhaseName, RunId};

/// Conversation in which a phase works again after its work was sent back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationMode {
    /// A new one. Its prompt contains the last answer of the phase and the files that it changed.
    #[default]
    Fresh,
    /// The one in which the work was done. The agent receives the feedback only.
    Continue,
}

impl ConversationMode {
    /// Words of the modes in `team.yml`.
    pub const WORDS: [&str; 2] = ["continue", "fresh"];

    /// Parses a word. Returns `None` for any other text.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "continue" => Some(Self::Continue),
            "fresh" => Some(Self::Fresh),
            _ => None,
        }
    }

    /// Whether it is the default.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        *self == Self::Fresh
    }
}

/// Last completed activation of a phase that works again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviousActivation {
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Files that the activation changed, as paths relative to the workspace. Absent if it is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_files: Option<Vec<String>>,
    /// Number of changed files that are not in the list.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more_files: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde calls")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Kind of a conversation, by the program that keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConversationKind {
    /// The transcript of a model behind an API.
    Loop,
    /// A session of a vendor's program.
    Program,
    /// A session of an agent that speaks the Agent Client Protocol.
    Acp,
}

/// Agent that a conversation is held with, and its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationPartner {
    /// Kind of the conversation.
    pub kind: ConversationKind,
    /// Name of the agent.
    pub agent: String,
    /// Version of the agent, as far as it is known. Another version may not find the conversation.
    /// Version of the agent, as far as it is known. Another version may not find the conversation.
    #[serde(default, rename = "agent_version", skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Working directory of the agent. Agents keep their sessions by it.
    pub cwd: Utf8PathBuf,
}

/// Progress of the last prompt of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptState {
    /// The prompt was recorded. The agent may not have received it.
    Pending,
    /// The model has begun to reply: the conversation contains the prompt.
    Accepted,
    /// The agent has answered.
    Answered,
}

/// Contents of all prompts of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SentParts {
    /// Digest of the last text of each part, by the name of the part.
    #[serde(default)]
    pub parts: BTreeMap<String, String>,
    /// Ids of the steering messages.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub steering: BTreeSet<String>,
}

impl SentParts {
    /// Adds the contents of a later prompt.
    pub fn add(&mut self, later: &Self) {
        self.parts.extend(later.parts.clone());
        self.steering.extend(later.steering.iter().cloned());
    }
}

/// Record of a conversation in one activation. It is written before the first prompt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationRecord {
    /// Version of the format.
    pub version: u64,
    /// Run.
    pub run_id: RunId,
    /// Phase.
    pub phase: PhaseName,
    /// Number of the activation, 1-based; for a gate, of the evaluation in the run.
    pub activation: u32,
    /// Agent and place.
    #[serde(flatten)]
    pub partner: ConversationPartner,
    /// Id of the session, as soon as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Activation whose conversation is continued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued_from: Option<u32>,
    /// Reason why an earlier conversation was not continued, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notice: Option<String>,
    /// Progress of the last prompt.
    pub state: PromptState,
    /// Contents of the prompts, the last one included.
    #[serde(default)]
    pub sent: SentParts,
    /// Tokens that the agent has reported for the whole session, if it counts them so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<CountedTokens>,
}

/// Tokens of a session so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CountedTokens {
    /// Input, cached input included.
    pub tokens_in: u64,
    /// Output.
    pub tokens_out: u64,
    /// Cached input.
    #[serde(default)]
    pub tokens_cached: u64,
}
