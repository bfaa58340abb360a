//! The Chat Completions API, which many servers speak.

use cliq_coder::{Reply, Turn};
use serde_json::{Value, json};

use super::draft::Draft;
use super::{Access, Call, ModelRequest, count, join, text};
use crate::llm::images::Image;

pub(super) fn call(access: &Access, request: &ModelRequest<'_>) -> Call {
    let mut messages = Vec::new();
    for turn in request.turns {
        match turn {
            Turn::User { text, images } => messages.push(user(text, images, request.images)),
            Turn::Assistant(reply) => messages.push(assistant(reply)),
            Turn::Results(results) => messages.extend(results.iter().map(|result| {
                let prefix = if result.is_error { "Error: " } else { "" };
                json!({"role": "tool", "tool_call_id": result.id, "content": format!("{prefix}{}", result.text)})
            })),
        }
    }
    let mut body = json!({"model": access.model, "stream": true, "stream_options": {"include_usage": true}});
    // Moved, not copied: conversations are long.
    body["messages"] = Value::Array(messages);
    if !request.tools.is_empty() {
        let tool = |tool: &cliq_coder::tools::ToolSpec| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        if !request.may_call {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(max) = access.max_tokens {
        body["max_completion_tokens"] = max.into();
    }
    let key = access.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal())));
    Call { url: join(&access.base, "chat/completions"), headers: key.into_iter().collect(), body }
}

fn user(text: &str, names: &[String], images: &[Image]) -> Value {
    let of_turn: Vec<&Image> = images.iter().filter(|image| names.contains(&image.path)).collect();
    if of_turn.is_empty() {
        return json!({"role": "user", "content": text});
    }
    let picture = |image: &Image| {
        let url = format!("data:{};base64,{}", image.media_type, image.base64);
        json!({"type": "image_url", "image_url": {"url": url}})
    };
    let parts: Vec<Value> =
        [json!({"type": "text", "text": text})].into_iter().chain(of_turn.into_iter().map(picture)).collect();
    json!({"role": "user", "content": parts})
}

fn assistant(reply: &Reply) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.calls.is_empty() {
        let call = |call: &cliq_protocol::ToolCall| {
            // Servers check that this is JSON.
            let arguments = Value::Object(call.arguments.clone()).to_string();
            json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}})
        };
        message["tool_calls"] = reply.calls.iter().map(call).collect();
    }
    message
}

pub(super) fn apply(value: &Value, draft: &mut Draft) -> Option<String> {
    if let Some(message) = text(value, "/error/message").or_else(|| text(value, "/error")) {
        let kind = value.pointer("/error/type").and_then(Value::as_str);
        draft.error = Some((message, matches!(kind, Some("server_error" | "rate_limit_error"))));
        return None;
    }
    let message = value.pointer("/choices/0/delta").or_else(|| value.pointer("/choices/0/message"));
    let message = message.unwrap_or(&Value::Null);
    let said = text(message, "/content").filter(|said| !said.is_empty());
    if let Some(said) = &said {
        draft.text.push_str(said);
    }
    // Not part of the API: how servers of models that think show it.
    for name in ["/reasoning_content", "/reasoning"] {
        if let Some(part) = text(message, name) {
            draft.thought(false).text.push_str(&part);
        }
    }
    message["tool_calls"].as_array().into_iter().flatten().for_each(|piece| tool_call(piece, draft));
    draft.tokens_in = count(value, "/usage/prompt_tokens").or(draft.tokens_in);
    draft.tokens_out = count(value, "/usage/completion_tokens").or(draft.tokens_out);
    draft.tokens_cached = count(value, "/usage/prompt_tokens_details/cached_tokens").or(draft.tokens_cached);
    match value.pointer("/choices/0/finish_reason").and_then(Value::as_str) {
        Some("length") => draft.is_cut_off = true,
        Some("content_filter") => draft.refusal = Some("a content filter stopped it".to_owned()),
        // Not every server says `[DONE]`. What it used comes after this.
        Some(_) => draft.is_done = true,
        None => {}
    }
    if let Some(refusal) = text(message, "/refusal").filter(|refusal| !refusal.is_empty()) {
        draft.refusal = Some(refusal);
    }
    said
}

/// Applies a piece of a tool call, or a whole one. Some servers send no index, others the same one for all calls.
fn tool_call(piece: &Value, draft: &mut Draft) {
    let index = piece["index"].as_u64();
    let id = text(piece, "/id").filter(|id| !id.is_empty());
    let name = text(piece, "/function/name").filter(|name| !name.is_empty());
    let continues = index.is_some() || name.is_none();
    let known = draft.calls.iter().rposition(|call| {
        continues && call.index == index && id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id)
    });
    let call = match known {
        Some(at) => &mut draft.calls[at],
        None => draft.new_call(index),
    };
    if let Some(id) = id {
        call.id = id;
    }
    if let Some(name) = name {
        call.name = name;
    }
    match &piece["function"]["arguments"] {
        Value::String(part) => call.arguments.push_str(part),
        Value::Null => {}
        whole => call.arguments = whole.to_string(),
    }
}
