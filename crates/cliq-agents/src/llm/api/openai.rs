//! The Chat Completions API, which many servers speak.

use serde_json::{Value, json};

use super::{Access, Call, Piece, count, join, text};
use crate::llm::Conversation;

pub(super) fn call(access: &Access, conversation: &Conversation) -> Call {
    let messages: Vec<Value> = conversation
        .turns
        .iter()
        .enumerate()
        .map(|(n, turn)| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": turn}))
        .collect();
    let mut body = json!({
        "model": access.model, "messages": messages, "stream": true, "stream_options": {"include_usage": true},
    });
    if let Some(max) = access.max_tokens {
        body["max_completion_tokens"] = max.into();
    }
    let key = access.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal())));
    Call { url: join(&access.base, "chat/completions"), headers: key.into_iter().collect(), body }
}

pub(super) fn piece(value: &Value) -> Piece {
    let mut piece = Piece::default();
    if let Some(message) = text(value, "/error/message") {
        let again = matches!(
            value.pointer("/error/type").and_then(Value::as_str),
            Some("server_error" | "rate_limit_error")
        );
        piece.error = Some((message, again));
        return piece;
    }
    piece.text =
        text(value, "/choices/0/delta/content").or_else(|| text(value, "/choices/0/message/content"));
    piece.tokens_in = count(value, "/usage/prompt_tokens");
    piece.tokens_out = count(value, "/usage/completion_tokens");
    piece.tokens_cached = count(value, "/usage/prompt_tokens_details/cached_tokens");
    match value.pointer("/choices/0/finish_reason").and_then(Value::as_str) {
        Some("length") => piece.cut_off = true,
        Some("content_filter") => piece.refused = Some("a content filter stopped it".to_owned()),
        // Not every server says `[DONE]`. What it used comes after this.
        Some(_) => piece.done = true,
        None => {}
    }
    if let Some(refusal) =
        text(value, "/choices/0/delta/refusal").or_else(|| text(value, "/choices/0/message/refusal"))
    {
        piece.refused = Some(refusal);
    }
    piece
}
