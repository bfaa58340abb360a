//! The Gemini API.

use serde_json::{Value, json};

use super::{Access, Call, Piece, count, join, text};
use crate::llm::Conversation;

pub(super) fn call(access: &Access, conversation: &Conversation) -> Call {
    let contents: Vec<Value> = conversation
        .turns
        .iter()
        .enumerate()
        .map(
            |(n, turn)| json!({"role": if n % 2 == 0 { "user" } else { "model" }, "parts": [{"text": turn}]}),
        )
        .collect();
    let mut body = json!({ "contents": contents });
    if let Some(max) = access.max_tokens {
        body["generationConfig"] = json!({ "maxOutputTokens": max });
    }
    let path =
        format!("v1beta/models/{}:streamGenerateContent?alt=sse", access.model.trim_start_matches("models/"));
    let key = access.key.as_ref().map(|key| ("x-goog-api-key", key.reveal().to_owned()));
    Call { url: join(&access.base, &path), headers: key.into_iter().collect(), body }
}

pub(super) fn piece(value: &Value) -> Piece {
    let mut piece = Piece::default();
    // Without streaming, the pieces come in a list.
    if let Some(pieces) = value.as_array() {
        for one in pieces.iter().map(self::piece) {
            piece.text = match (piece.text.take(), one.text) {
                (Some(before), Some(more)) => Some(before + &more),
                (before, more) => before.or(more),
            };
            piece.tokens_in = one.tokens_in.or(piece.tokens_in);
            piece.tokens_out = one.tokens_out.or(piece.tokens_out);
            piece.tokens_cached = one.tokens_cached.or(piece.tokens_cached);
            piece.cut_off |= one.cut_off;
            piece.done |= one.done;
            piece.refused = piece.refused.or(one.refused);
            piece.error = piece.error.or(one.error);
        }
        return piece;
    }
    if let Some(message) = text(value, "/error/message") {
        let again = count(value, "/error/code").is_some_and(|code| code == 429 || code >= 500);
        piece.error = Some((message, again));
        return piece;
    }
    let parts = value.pointer("/candidates/0/content/parts").and_then(Value::as_array);
    // Thoughts are not part of the answer.
    let said = parts.into_iter().flatten().filter(|part| part["thought"] != true);
    let said: String = said.filter_map(|part| part["text"].as_str()).collect();
    piece.text = Some(said).filter(|said| !said.is_empty());
    piece.tokens_in = count(value, "/usageMetadata/promptTokenCount");
    // Thoughts are paid for as output, and counted apart.
    let thoughts = count(value, "/usageMetadata/thoughtsTokenCount");
    let said = count(value, "/usageMetadata/candidatesTokenCount");
    piece.tokens_out = said.or(thoughts).map(|_| said.unwrap_or(0) + thoughts.unwrap_or(0));
    piece.tokens_cached = count(value, "/usageMetadata/cachedContentTokenCount");
    if let Some(why) = text(value, "/promptFeedback/blockReason") {
        piece.refused = Some(format!("the prompt was blocked: {why}"));
    }
    match value.pointer("/candidates/0/finishReason").and_then(Value::as_str) {
        Some("MAX_TOKENS") => piece.cut_off = true,
        Some("STOP") => piece.done = true,
        Some(other) if other != "FINISH_REASON_UNSPECIFIED" => piece.refused = Some(other.to_owned()),
        _ => {}
    }
    piece
}
