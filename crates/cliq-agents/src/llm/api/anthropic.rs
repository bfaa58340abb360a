//! The Messages API.

use serde_json::{Value, json};

use super::{Access, Call, Piece, count, join, text};
use crate::llm::Conversation;

const VERSION: &str = "2023-06-01";
/// The API requires this field.
const MAX_TOKENS: usize = 16_384;

pub(super) fn call(access: &Access, conversation: &Conversation) -> Call {
    let messages: Vec<Value> = conversation
        .turns
        .iter()
        .enumerate()
        .map(|(n, turn)| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": turn}))
        .collect();
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if let Some(key) = &access.key {
        headers.push(("x-api-key", key.reveal().to_owned()));
    }
    Call {
        url: join(&access.base, "v1/messages"),
        headers,
        body: json!({
            "model": access.model, "max_tokens": access.max_tokens.unwrap_or(MAX_TOKENS), "stream": true, "messages": messages,
        }),
    }
}

pub(super) fn piece(value: &Value) -> Piece {
    let mut piece = Piece::default();
    match value["type"].as_str().unwrap_or_default() {
        "message_start" => input(&mut piece, value.pointer("/message/usage")),
        "content_block_start" => {
            piece.text = text(value, "/content_block/text").filter(|text| !text.is_empty())
        }
        "content_block_delta" => piece.text = text(value, "/delta/text"),
        "message_delta" => {
            piece.tokens_out = count(value, "/usage/output_tokens");
            stop(&mut piece, value.pointer("/delta/stop_reason"));
        }
        "message_stop" => piece.done = true,
        "error" => {
            let kind = text(value, "/error/type").unwrap_or_default();
            let again = matches!(
                kind.as_str(),
                "overloaded_error" | "rate_limit_error" | "api_error" | "timeout_error"
            );
            piece.error = Some((text(value, "/error/message").unwrap_or(kind), again));
        }
        // The whole message at once.
        "message" => {
            let parts = value["content"].as_array().into_iter().flatten();
            piece.text = Some(parts.filter_map(|part| part["text"].as_str()).collect());
            input(&mut piece, value.get("usage"));
            piece.tokens_out = count(value, "/usage/output_tokens");
            stop(&mut piece, value.get("stop_reason"));
        }
        _ => {}
    }
    piece
}

/// All input: this API counts tokens that are written to or read from its cache apart.
fn input(piece: &mut Piece, usage: Option<&Value>) {
    let Some(usage) = usage else { return };
    let part = |name: &str| count(usage, name);
    piece.tokens_cached = part("/cache_read_input_tokens");
    let cache = part("/cache_creation_input_tokens").unwrap_or(0) + piece.tokens_cached.unwrap_or(0);
    piece.tokens_in = part("/input_tokens").map(|tokens| tokens + cache);
}

fn stop(piece: &mut Piece, reason: Option<&Value>) {
    match reason.and_then(Value::as_str) {
        Some("max_tokens" | "model_context_window_exceeded") => piece.cut_off = true,
        Some("refusal") => piece.refused = Some("refusal".to_owned()),
        _ => {}
    }
}
