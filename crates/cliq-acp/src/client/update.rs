//! Updates of a session, typed by the schema where it knows them. Pure.

use std::collections::{BTreeMap, VecDeque};

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Notice, PlanEntry, SessionUpdate, ToolCall, ToolCallId, ToolCallUpdate,
};
use serde::Deserialize;
use serde_json::Value;

use super::usage::{Money, Tokens};

/// Number of tool calls whose state is kept. Older ones are forgotten.
const CALLS: usize = 4096;

/// Place of an update in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// Output of the turn that runs.
    Turn,
    /// Repetition of earlier turns while a conversation is continued. It is not new output.
    Replay,
    /// Between turns: state of the session, or output that came after the answer.
    Idle,
}

/// Part of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    /// Content: a text, an image, a link, …
    pub content: ContentBlock,
    /// Id of the message, if the agent gives one.
    pub message: Option<String>,
    /// Tokens of the model request that ended with this part, if the agent gives them here
    /// ([`UsageMeaning::Chunks`](super::UsageMeaning::Chunks)).
    pub usage: Option<Tokens>,
}

impl Chunk {
    fn new(chunk: ContentChunk) -> Self {
        let usage = chunk.meta.as_ref().and_then(|meta| Tokens::parse(meta.get("usage")?));
        Self { content: chunk.content, message: chunk.message_id.map(|id| id.0.to_string()), usage }
    }

    /// Returns the text, or `None` if the content is not a text.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.content {
            ContentBlock::Text(text) => Some(&text.text),
            _ => None,
        }
    }
}

/// Update of a session.
#[derive(Debug, Clone, PartialEq)]
pub enum Update {
    /// Part of a message of the agent.
    Answer(Chunk),
    /// Part of a thought of the model.
    Thought(Chunk),
    /// Part of a message of the user, as the agent repeats it.
    User(Chunk),
    /// New tool call.
    ToolStarted(Box<ToolCall>),
    /// Change of a tool call: its state after the change. A call that was never announced starts with its first change.
    ToolChanged(Box<ToolCall>),
    /// The agent's plan, complete.
    Plan(Vec<PlanEntry>),
    /// Notice for the user. It is not an answer.
    Notice(Notice),
    /// Size of the context, and cost of the session.
    Usage {
        /// Tokens in the context window.
        used: u64,
        /// Size of the context window.
        size: u64,
        /// Cost of the session so far.
        cost: Option<Money>,
    },
    /// New mode of the session.
    Mode(String),
    /// Update that the schema knows and that has no meaning here: commands, options, titles, subagents, compaction.
    Other(Box<SessionUpdate>),
    /// Update that the schema does not know, or with fields of the wrong type.
    Unknown {
        /// Value of `sessionUpdate`, or an empty text.
        kind: String,
        /// The update as the agent wrote it.
        value: Value,
    },
    /// Notification that is not part of the protocol.
    Extension {
        /// Name of the method.
        method: String,
        /// Parameters.
        params: Value,
    },
}

/// State of the tool calls of a session.
#[derive(Debug, Clone, Default)]
pub struct ToolCalls {
    calls: BTreeMap<String, ToolCall>,
    /// Ids, oldest first.
    order: VecDeque<String>,
}

impl ToolCalls {
    /// Returns a tool call.
    #[must_use]
    pub fn get(&self, id: &ToolCallId) -> Option<&ToolCall> {
        self.calls.get(&*id.0)
    }

    /// Applies a change, and returns the call and whether it is new.
    pub(crate) fn change(&mut self, change: ToolCallUpdate) -> (ToolCall, bool) {
        let id = change.tool_call_id.0.to_string();
        if let Some(call) = self.calls.get_mut(&id) {
            call.update(change.fields);
            return (call.clone(), false);
        }
        let title = change.fields.title.clone().unwrap_or_else(|| id.clone());
        let mut call = ToolCall::new(change.tool_call_id, title).meta(change.meta);
        call.update(change.fields);
        self.insert(call.clone());
        (call, true)
    }

    fn insert(&mut self, call: ToolCall) {
        let id = call.tool_call_id.0.to_string();
        if self.calls.insert(id.clone(), call).is_none() {
            self.order.push_back(id);
        }
        if self.order.len() > CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// Parses the `update` of a `session/update`.
    pub(crate) fn parse(&mut self, value: Value) -> Update {
        let Ok(update) = SessionUpdate::deserialize(&value) else {
            let kind = value.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Update::Unknown { kind, value };
        };
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => Update::Answer(Chunk::new(chunk)),
            SessionUpdate::AgentThoughtChunk(chunk) => Update::Thought(Chunk::new(chunk)),
            SessionUpdate::UserMessageChunk(chunk) => Update::User(Chunk::new(chunk)),
            SessionUpdate::ToolCall(call) => {
                // Some agents announce a call again instead of changing it.
                let is_new = self.get(&call.tool_call_id).is_none();
                self.insert(call.clone());
                if is_new { Update::ToolStarted(Box::new(call)) } else { Update::ToolChanged(Box::new(call)) }
            }
            SessionUpdate::ToolCallUpdate(change) => match self.change(change) {
                (call, true) => Update::ToolStarted(Box::new(call)),
                (call, false) => Update::ToolChanged(Box::new(call)),
            },
            SessionUpdate::Plan(plan) => Update::Plan(plan.entries),
            SessionUpdate::Notice(notice) => Update::Notice(notice),
            SessionUpdate::UsageUpdate(usage) => {
                let cost = usage.cost.map(|cost| Money { amount: cost.amount, currency: cost.currency });
                Update::Usage { used: usage.used, size: usage.size, cost }
            }
            SessionUpdate::CurrentModeUpdate(mode) => Update::Mode(mode.current_mode_id.0.to_string()),
            other => Update::Other(Box::new(other)),
        }
    }
}

#[cfg(test)]
mod tests {
    use agent_client_protocol_schema::v1::{ToolCallContent, ToolCallStatus, ToolKind};
    use serde_json::json;

    use super::*;

    #[test]
    fn a_tool_call_has_the_state_after_each_change() {
        let mut calls = ToolCalls::default();
        let started = calls.parse(json!({ "sessionUpdate": "tool_call", "toolCallId": "c", "title": "Write", "kind": "edit", "status": "pending" }));
        assert!(matches!(started, Update::ToolStarted(_)));
        let diff = json!({ "type": "diff", "path": "/w/a", "oldText": null, "newText": "x" });
        let changed = calls.parse(json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "completed", "content": [diff, { "type": "hologram" }] }));
        let Update::ToolChanged(call) = changed else { panic!("a change: {changed:?}") };
        assert_eq!(
            (&*call.title, call.kind, call.status),
            ("Write", ToolKind::Edit, ToolCallStatus::Completed)
        );
        assert!(matches!(&call.content[..], [ToolCallContent::Diff(diff)] if diff.new_text == "x"));
    }

    #[test]
    fn a_call_that_was_never_announced_starts_with_its_first_change() {
        let mut calls = ToolCalls::default();
        let change = json!({ "sessionUpdate": "tool_call_update", "toolCallId": "c", "status": "teleported", "kind": "magic" });
        let Update::ToolStarted(call) = calls.parse(change.clone()) else { panic!("a start") };
        assert_eq!((&*call.title, call.kind), ("c", ToolKind::Other));
        assert!(matches!(calls.parse(change), Update::ToolChanged(_)));
    }

    #[test]
    fn usage_and_cost_are_read_while_a_turn_runs() {
        let mut calls = ToolCalls::default();
        let chunk = json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "" }, "_meta": { "usage": { "inputTokens": 5, "outputTokens": 1 } } });
        let Update::Answer(chunk) = calls.parse(chunk) else { panic!("a chunk") };
        assert_eq!(chunk.usage, Some(Tokens { input: 5, output: 1, cached: 0 }));
        let usage = json!({ "sessionUpdate": "usage_update", "used": 5, "size": 9, "cost": { "amount": 0.5, "currency": "USD" } });
        let cost = Some(Money { amount: 0.5, currency: "USD".into() });
        assert_eq!(calls.parse(usage), Update::Usage { used: 5, size: 9, cost });
    }

    #[test]
    fn unknown_updates_are_kept() {
        let mut calls = ToolCalls::default();
        for (value, expected) in [
            (json!({ "sessionUpdate": "mood", "level": 3 }), "mood"),
            (json!({ "sessionUpdate": "agent_message_chunk", "content": 5 }), "agent_message_chunk"),
            (json!({ "sessionUpdate": 7 }), ""),
            (json!(null), ""),
        ] {
            let update = calls.parse(value.clone());
            assert_eq!(update, Update::Unknown { kind: expected.into(), value });
        }
    }

    #[test]
    fn old_calls_are_forgotten() {
        let mut calls = ToolCalls::default();
        for n in 0..=CALLS {
            calls.parse(json!({ "sessionUpdate": "tool_call", "toolCallId": n.to_string(), "title": "t" }));
        }
        assert_eq!(calls.calls.len(), CALLS);
        assert!(calls.get(&ToolCallId::new("0")).is_none());
    }
}
