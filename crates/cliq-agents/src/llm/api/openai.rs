//! The Chat Completions API, which many servers speak.

use cliq_coder::{Reply, Turn};
use cliq_protocol::Effort;
use cliq_settings::CacheLifetime;
use serde_json::{Value, json};

use super::classify::{self, End};
use super::draft::Draft;
use super::{Access, Call, ModelRequest, count, join, text, texts};
use crate::llm::images::Image;
use crate::llm::kinds::ApiKind;

pub(super) fn call(access: &Access, request: &ModelRequest<'_>) -> Call {
    let system = request.system.map(|system| json!({"role": "system", "content": system}));
    let mut messages: Vec<Value> = system.into_iter().collect();
    for turn in request.turns {
        match turn {
            Turn::User { text, images } => add(&mut messages, user(text, images, request.images)),
            Turn::Assistant(reply) if reply.text.trim().is_empty() && reply.calls.is_empty() => {}
            Turn::Assistant(reply) => add(&mut messages, assistant(reply)),
            Turn::Results(results) => {
                messages.extend(results.iter().map(|result| {
                    let prefix = if result.is_error { "Error: " } else { "" };
                    json!({"role": "tool", "tool_call_id": result.id, "content": format!("{prefix}{}", result.text)})
                }));
                // A result is a text in this API: images follow in a message.
                let images: Vec<String> =
                    results.iter().flat_map(|result| result.images.iter().cloned()).collect();
                if !images.is_empty() {
                    let text = format!("The images of the results: {}", images.join(", "));
                    add(&mut messages, user(&text, &images, request.images));
                }
            }
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
    if let Some(schema) = request.schema {
        let schema = json!({"name": schema.name, "schema": schema.schema, "strict": schema.is_strict});
        body["response_format"] = json!({"type": "json_schema", "json_schema": schema});
    }
    let parameters = &access.parameters;
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.get().into();
    }
    if let Some(effort) = parameters.effort {
        body["reasoning_effort"] = effort_word(effort).into();
    }
    if access.is_at_vendor {
        add_cache_fields(access, &mut body);
    }
    if let Some(max) = request.max_tokens(parameters.max_tokens) {
        body["max_completion_tokens"] = max.into();
        // Other servers may know the older name only.
        if !access.is_at_vendor {
            body["max_tokens"] = max.into();
        }
    }
    let key = access.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal())));
    Call { url: join(&access.base, "chat/completions"), headers: key.into_iter().collect(), body }
}

/// Word of an effort in both APIs of OpenAI.
pub(super) fn effort_word(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "none",
        Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::High => "high",
        Effort::Max => "xhigh",
    }
}

/// Adds the fields for the vendor's cache: requests of one conversation are to reach the same server.
pub(super) fn add_cache_fields(access: &Access, body: &mut Value) {
    if let Some(key) = &access.cache_key {
        body["prompt_cache_key"] = key.as_str().into();
    }
    if access.cache_lifetime == Some(CacheLifetime::Day) {
        body["prompt_cache_retention"] = CacheLifetime::Day.as_str().into();
    }
}

/// Adds a message. Templates of models need alternating roles: a message of the same role as the one before becomes a part of it.
fn add(messages: &mut Vec<Value>, message: Value) {
    let Some(last) = messages.last_mut().filter(|last| last["role"] == message["role"]) else {
        messages.push(message);
        return;
    };
    let content = match (last["content"].take(), message["content"].clone()) {
        (Value::String(one), Value::String(other)) if one.is_empty() || other.is_empty() => {
            (one + &other).into()
        }
        (Value::String(one), Value::String(other)) => format!("{one}\n\n{other}").into(),
        (one, other) => Value::Array([one, other].into_iter().flat_map(parts).collect()),
    };
    last["content"] = content;
    if let Value::Array(calls) = message["tool_calls"].clone() {
        match &mut last["tool_calls"] {
            Value::Array(known) => known.extend(calls),
            other => *other = Value::Array(calls),
        }
    }
}

/// Content of a message as a list of parts.
fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        text => vec![json!({"type": "text", "text": text})],
    }
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
    draft.is_reply |= value.get("choices").is_some();
    let message = value.pointer("/choices/0/delta").or_else(|| value.pointer("/choices/0/message"));
    let message = message.unwrap_or(&Value::Null);
    // Some servers send a list of parts. Thoughts are parts of their own.
    let said = match &message["content"] {
        Value::Array(parts) => {
            let mut said = String::new();
            for part in parts {
                let thought = ["thinking", "reasoning"].iter().find_map(|name| texts(part.get(*name)?));
                match thought {
                    Some(thought) => draft.thought(false).text.push_str(&thought),
                    None => said.extend(texts(part)),
                }
                if let Some(refusal) = text(part, "/refusal") {
                    draft.end_with(Some(End::Refused(refusal)));
                }
            }
            Some(said).filter(|said| !said.is_empty())
        }
        content => texts(content),
    };
    // The completions API has the text at the choice itself.
    let said = said.or_else(|| texts(value.pointer("/choices/0/text")?));
    if let Some(said) = &said {
        draft.text.push_str(said);
    }
    // Not part of the API: how servers of models that think show it. Some send the same thought under two names.
    let thought = ["reasoning_content", "reasoning", "thinking", "reasoning_details"];
    if let Some(part) = thought.iter().find_map(|name| texts(message.get(*name)?)) {
        draft.thought(false).text.push_str(&part);
    }
    if let Some(refusal) = text(message, "/refusal").filter(|refusal| !refusal.is_empty()) {
        // It may come in pieces.
        match &mut draft.end {
            Some(End::Refused(known)) => known.push_str(&refusal),
            end => *end = Some(End::Refused(refusal)),
        }
    }
    message["tool_calls"].as_array().into_iter().flatten().for_each(|piece| tool_call(piece, draft));
    // The older form of a single call.
    if let Some(function) = message.get("function_call").filter(|function| function.is_object()) {
        tool_call(&json!({"index": 0, "function": function}), draft);
    }
    draft.tokens_in = count(value, "/usage/prompt_tokens").or(draft.tokens_in);
    draft.tokens_out = count(value, "/usage/completion_tokens").or(draft.tokens_out);
    draft.tokens_cached = count(value, "/usage/prompt_tokens_details/cached_tokens").or(draft.tokens_cached);
    draft.tokens_reasoning =
        count(value, "/usage/completion_tokens_details/reasoning_tokens").or(draft.tokens_reasoning);
    // What the reply used comes after its end.
    let reason = value.pointer("/choices/0/finish_reason").and_then(Value::as_str);
    draft.end_with(reason.and_then(|reason| classify::end(ApiKind::OpenAi, reason)));
    said
}

/// Applies a piece of a tool call, or a whole one. Some servers send no index, others the same one for all calls.
fn tool_call(piece: &Value, draft: &mut Draft) {
    let index = piece["index"].as_u64();
    let id = text(piece, "/id").filter(|id| !id.is_empty());
    let name = text(piece, "/function/name").filter(|name| !name.is_empty());
    let continues = index.is_some() || name.is_none();
    let known = draft.last_at(index).filter(|at| {
        let call = &draft.calls[*at];
        continues && id.as_ref().is_none_or(|id| call.id.is_empty() || call.id == *id)
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
