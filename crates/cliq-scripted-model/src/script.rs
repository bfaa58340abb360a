//! Scripts, and deviations of servers from the published formats.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Script of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Script {
    /// Scenes. The first one that applies is played.
    pub scenes: Vec<Scene>,
}

/// Replies to one conversation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Scene {
    /// Texts that the first message of a request must contain.
    #[serde(default)]
    pub contains: Vec<String>,
    /// Replies, in their order. The last one is repeated.
    pub replies: Vec<ScriptedReply>,
}

/// Reply of the model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptedReply {
    /// Text.
    #[serde(default)]
    pub text: String,
    /// Summary of a thought.
    #[serde(default)]
    pub thinking: Option<String>,
    /// Tool calls.
    #[serde(default)]
    pub calls: Vec<ScriptedCall>,
    /// Time before the reply in milliseconds.
    #[serde(default)]
    pub delay_ms: u64,
    /// Whether the reply ends at the limit of its length.
    #[serde(default)]
    pub is_cut_off: bool,
}

/// Tool call of a reply.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptedCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
}

/// Behavior of a server, with the deviations that servers of local models are known for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Behavior {
    /// Answers at once, even if a stream was requested.
    pub is_whole: bool,
    /// Reports no usage.
    pub has_no_usage: bool,
    /// Writes tool calls as text.
    pub writes_calls_as_text: bool,
    /// Sends the same id for all tool calls.
    pub has_equal_ids: bool,
    /// Sends tool calls without ids and positions.
    pub has_no_ids: bool,
    /// Sends one tool call at a time, even if the script has several.
    pub has_no_parallel_calls: bool,
    /// Cuts every second stream before its end.
    pub cuts_streams: bool,
    /// Refuses thoughts if the conversation before them is not the one that they were made in, as the Messages API does.
    pub binds_thinking: bool,
    /// Answers every request whose number can be divided by this with 429 and no pause.
    pub limits_every: Option<usize>,
    /// Refuses requests with more tokens than this.
    pub context_tokens: Option<u64>,
}

impl Script {
    /// Returns the reply to a conversation: `first` is its first message, `replies` the number of replies in it.
    pub(crate) fn reply(&self, first: &str, replies: usize) -> Option<&ScriptedReply> {
        let applies = |scene: &&Scene| scene.contains.iter().all(|text| first.contains(text.as_str()));
        let scene = self.scenes.iter().find(applies)?;
        scene.replies.get(replies).or_else(|| scene.replies.last())
    }
}
