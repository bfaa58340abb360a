//! Reply that is being received, in pieces or whole.

use std::collections::HashSet;

use cliq_coder::{Reply, Thinking};
use cliq_protocol::{Object, ToolCall, Usage};
use serde_json::Value;

use super::text_calls;

/// Reply that is being received.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Draft {
    pub(super) text: String,
    pub(super) thinking: Vec<Thinking>,
    pub(super) calls: Vec<DraftCall>,
    pub(super) tokens_in: Option<u64>,
    pub(super) tokens_out: Option<u64>,
    /// The part of the input that was read from a cache.
    pub(super) tokens_cached: Option<u64>,
    /// Whether the reply was cut off at the length limit.
    pub(super) is_cut_off: bool,
    /// Reason why the model refused to continue.
    pub(super) refusal: Option<String>,
    /// Error of the server, and whether another try may help.
    pub(super) error: Option<(String, bool)>,
    /// Nothing more of the content follows.
    pub(super) is_done: bool,
}

/// Tool call that is being received.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct DraftCall {
    /// Position in the reply, by which later pieces name it.
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    /// Arguments as JSON text.
    pub(super) arguments: String,
    pub(super) provider_data: Option<Value>,
}

impl Draft {
    /// Call at a position: the one that has it already, or a new one.
    pub(super) fn call_at(&mut self, index: u64) -> &mut DraftCall {
        match self.calls.iter().position(|call| call.index == Some(index)) {
            Some(at) => &mut self.calls[at],
            None => self.new_call(Some(index)),
        }
    }

    /// Adds a call.
    pub(super) fn new_call(&mut self, index: Option<u64>) -> &mut DraftCall {
        self.calls.push(DraftCall { index, ..DraftCall::default() });
        let last = self.calls.len() - 1;
        &mut self.calls[last]
    }

    /// Last thought, or a new one.
    pub(super) fn thought(&mut self, is_new: bool) -> &mut Thinking {
        if is_new || self.thinking.is_empty() {
            self.thinking.push(Thinking { text: String::new(), provider_data: None });
        }
        let last = self.thinking.len() - 1;
        &mut self.thinking[last]
    }

    /// Usage, if the server reported any.
    pub(super) fn usage(&self, provider: &str, model: &str) -> Option<Usage> {
        self.tokens_in.or(self.tokens_out)?;
        Some(Usage {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            tokens_in: self.tokens_in.unwrap_or(0),
            tokens_out: self.tokens_out.unwrap_or(0),
            tokens_cached: self.tokens_cached,
            ..Usage::default()
        })
        .filter(|usage| usage.tokens() > 0)
    }

    /// Returns the whole reply. `tools` are the names that the model may call, `known` the ids of earlier calls.
    pub(super) fn into_reply<'a>(self, tools: &[&str], known: impl Iterator<Item = &'a str>) -> Reply {
        let mut known: HashSet<String> = known.map(str::to_owned).collect();
        let mut number = known.len();
        // Some servers send no ids, or the same id again.
        let mut unique = |id: String| {
            let mut id = id;
            while id.is_empty() || !known.insert(id.clone()) {
                number += 1;
                id = format!("call_{number}");
            }
            id
        };
        let mut calls: Vec<ToolCall> = self.calls.into_iter().map(DraftCall::into_call).collect();
        let mut text = self.text;
        if calls.is_empty()
            && !tools.is_empty()
            && let Some((rest, found)) = text_calls::find(&text, tools)
        {
            (text, calls) = (rest, found);
        }
        for call in &mut calls {
            call.id = unique(std::mem::take(&mut call.id));
        }
        Reply { text, thinking: self.thinking, calls }
    }
}

impl DraftCall {
    fn into_call(self) -> ToolCall {
        let (arguments, invalid) = arguments(&self.arguments);
        ToolCall { id: self.id, name: self.name, arguments, invalid, provider_data: self.provider_data }
    }
}

/// Parses arguments. The second part is the text if it is not a JSON object.
fn arguments(text: &str) -> (Object, Option<String>) {
    if text.trim().is_empty() {
        return (Object::new(), None);
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(arguments)) => (arguments, None),
        // Some servers encode twice.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(Value::Object(arguments)) => (arguments, None),
            _ => (Object::new(), Some(text.to_owned())),
        },
        Ok(Value::Null) => (Object::new(), None),
        _ => (Object::new(), Some(text.to_owned())),
    }
}
