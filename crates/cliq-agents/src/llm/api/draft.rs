//! Reply that is being received, in pieces or whole.

use std::collections::{HashMap, HashSet};

use cliq_coder::tools::ToolSpec;
use cliq_coder::{Reply, Thinking};
use cliq_protocol::{Object, ToolCall, Usage, read_json};
use serde_json::Value;

use super::classify::End;
use super::errors::{Class, ServerError};
use super::repetition::Watch;
use super::{TOKEN_BYTES, text_calls};
use crate::llm::thoughts;

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
    /// The part of the output that is reasoning.
    pub(super) tokens_reasoning: Option<u64>,
    /// End of the reply, if the server has reported one.
    pub(super) end: Option<End>,
    /// Error of the server that was not handled yet.
    pub(super) error: Option<ServerError>,
    /// Class of the error that ended the reply.
    pub(super) class: Option<Class>,
    /// Nothing more of the content follows.
    pub(super) is_done: bool,
    /// Whether a piece of the response belongs to the API.
    pub(super) is_reply: bool,
    /// Whether the server has begun to answer.
    pub(super) is_begun: bool,
    /// Whether the server did not answer in time.
    pub(super) has_timed_out: bool,
    /// Whether the process was asked to end.
    pub(super) was_ended: bool,
    /// Watches over text and thoughts that repeat themselves.
    pub(super) watches: [Watch; 2],
    /// Last call of each position.
    pub(super) places: HashMap<Option<u64>, usize>,
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
        match self.last_at(Some(index)) {
            Some(at) => &mut self.calls[at],
            None => self.new_call(Some(index)),
        }
    }

    /// Returns the last call at a position.
    pub(super) fn last_at(&self, index: Option<u64>) -> Option<usize> {
        self.places.get(&index).copied()
    }

    /// Sets the end of the reply. The first one counts: others are repetitions.
    pub(super) fn end_with(&mut self, end: Option<End>) {
        if self.end.is_none() {
            self.end = end;
        }
    }

    /// Adds a call.
    pub(super) fn new_call(&mut self, index: Option<u64>) -> &mut DraftCall {
        self.calls.push(DraftCall { index, ..DraftCall::default() });
        let last = self.calls.len() - 1;
        self.places.insert(index, last);
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
            tokens_reasoning: self.tokens_reasoning,
            ..Usage::default()
        })
        .filter(|usage| usage.tokens() > 0)
    }

    /// Usage of a reply that was not completed: counts of the server, and estimates of the others. `request` is the estimate of the
    /// request in tokens. `None` if the server is not known to have worked on it.
    pub(super) fn partial_usage(&self, provider: &str, model: &str, request: u64) -> Option<Usage> {
        let received = self.received();
        let has_worked =
            received > 0 || self.has_timed_out || self.was_ended || self.is_begun && self.is_reply;
        if !has_worked && self.tokens_in.or(self.tokens_out).is_none() {
            return None;
        }
        Some(Usage {
            provider: Some(provider.to_owned()),
            model: Some(model.to_owned()),
            tokens_in: self.tokens_in.unwrap_or(request),
            tokens_out: self.tokens_out.unwrap_or(0).max(received / TOKEN_BYTES),
            tokens_cached: self.tokens_cached,
            tokens_reasoning: self.tokens_reasoning,
            estimated: true,
            ..Usage::default()
        })
        .filter(|usage| usage.tokens() > 0)
    }

    /// Size of the content in bytes.
    fn received(&self) -> u64 {
        let thinking = self.thinking.iter().map(|thought| thought.text.len());
        let calls = self.calls.iter().map(|call| call.arguments.len() + call.name.len());
        (self.text.len() + thinking.chain(calls).sum::<usize>()) as u64
    }

    /// Returns the whole reply. `tools` are those of the model, `known` the ids of earlier calls. `was_told` means that the model was
    /// told that a call in an example is not run.
    pub(super) fn into_reply<'a>(
        self,
        tools: &[ToolSpec],
        known: impl Iterator<Item = &'a str>,
        was_told: bool,
    ) -> Reply {
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
        let mut calls: Vec<ToolCall> = self.calls.into_iter().map(|call| call.into_call(tools)).collect();
        let split = thoughts::split(&self.text);
        let mut text = split.text;
        let mut thinking = self.thinking;
        let own = split.thoughts.into_iter().map(|text| Thinking { text, provider_data: None });
        thinking.extend(own);
        if calls.is_empty()
            && let Some(found) = text_calls::find(&text, tools, was_told)
        {
            (text, calls) = (found.text, found.calls);
        }
        for call in &mut calls {
            call.id = unique(std::mem::take(&mut call.id));
        }
        Reply { text, thinking, calls }
    }
}

impl DraftCall {
    fn into_call(self, tools: &[ToolSpec]) -> ToolCall {
        let (arguments, invalid) = arguments(&self.arguments);
        let is_known = |name: &str| tools.iter().any(|tool| tool.name == name);
        // Servers leave marks of the model's format in names: `functions.search<|channel|>commentary`.
        let bare = self.name.split("<|").next().unwrap_or_default();
        let bare = bare.strip_prefix("functions.").unwrap_or(bare);
        let name = if !is_known(&self.name) && is_known(bare) { bare.to_owned() } else { self.name };
        ToolCall { id: self.id, name, arguments, invalid, provider_data: self.provider_data }
    }
}

/// Parses arguments. The second part is the text if it is not a JSON object.
fn arguments(text: &str) -> (Object, Option<String>) {
    if text.trim().is_empty() {
        return (Object::new(), None);
    }
    match read_json(text.as_bytes()) {
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
