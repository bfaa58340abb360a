//! Replies in the formats of the four APIs.

mod anthropic;
mod gemini;
mod openai;
mod responses;

use serde_json::{Value, json};

use crate::request::Api;
use crate::script::{Behavior, ScriptedCall, ScriptedReply};

/// Reply with its usage, ready to be written.
pub(crate) struct Reply<'a> {
    /// Signature of its thoughts.
    pub(crate) signature: &'a str,
    pub(crate) text: &'a str,
    pub(crate) thinking: Option<&'a str>,
    pub(crate) calls: &'a [ScriptedCall],
    /// Whether it ends at the limit of its length.
    pub(crate) is_cut_off: bool,
    /// Number of the reply in its conversation, 0-based.
    pub(crate) number: usize,
    pub(crate) tokens_in: u64,
    pub(crate) tokens_out: u64,
    pub(crate) tokens_cached: u64,
    pub(crate) behavior: Behavior,
}

impl Reply<'_> {
    /// Id of a call.
    fn id(&self, call: usize) -> Option<String> {
        match self.behavior {
            Behavior { has_no_ids: true, .. } => None,
            Behavior { has_equal_ids: true, .. } => Some("call".to_owned()),
            _ => Some(format!("call_{}_{call}", self.number)),
        }
    }

    fn has_usage(&self) -> bool {
        !self.behavior.has_no_usage
    }
}

/// Number of tokens of a reply.
pub(crate) fn tokens_of(reply: &ScriptedReply) -> u64 {
    let calls: usize =
        reply.calls.iter().map(|call| Value::Object(call.arguments.clone()).to_string().len() + 20).sum();
    ((reply.text.len() + reply.thinking.as_ref().map_or(0, String::len) + calls) as u64 / 4).max(1)
}

/// Writes a reply: the body of a JSON response.
pub(crate) fn whole(api: Api, reply: &Reply<'_>) -> Value {
    match api {
        Api::Anthropic => anthropic::whole(reply),
        Api::OpenAi => openai::whole(reply),
        Api::Responses => responses::whole(reply),
        Api::Gemini => gemini::whole(reply),
    }
}

/// Writes a reply as server-sent events.
pub(crate) fn stream(api: Api, reply: &Reply<'_>) -> String {
    match api {
        Api::Anthropic => anthropic::stream(reply),
        Api::OpenAi => openai::stream(reply),
        Api::Responses => responses::stream(reply),
        Api::Gemini => gemini::stream(reply),
    }
}

/// Writes an error.
pub(crate) fn error(api: Api, status: u16, message: &str) -> Value {
    match api {
        Api::Anthropic => {
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": message}})
        }
        Api::OpenAi | Api::Responses => {
            json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": null}})
        }
        Api::Gemini => json!({"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}),
    }
}

/// Two parts of a text, so that a reader has something to put together.
fn halves(text: &str) -> (&str, &str) {
    let mut at = text.len() / 2;
    while !text.is_char_boundary(at) {
        at += 1;
    }
    text.split_at(at)
}

fn arguments(call: &ScriptedCall) -> String {
    Value::Object(call.arguments.clone()).to_string()
}

fn event(name: Option<&str>, data: &Value) -> String {
    match name {
        Some(name) => format!("event: {name}\ndata: {data}\n\n"),
        None => format!("data: {data}\n\n"),
    }
}
