//! The Messages API.

use cliq_coder::{Reply, Turn};
use cliq_protocol::Effort;
use cliq_settings::CacheLifetime;
use serde_json::{Value, json};

use super::classify;
use super::draft::Draft;
use super::{Access, Call, ModelRequest, count, join, text};
use crate::llm::images::Image;
use crate::llm::kinds::ApiKind;

const VERSION: &str = "2023-06-01";
/// The API requires this field. Thoughts count too.
pub(super) const MAX_TOKENS: u64 = 32_000;

pub(super) fn call(access: &Access, request: &ModelRequest<'_>) -> Call {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in request.turns {
        let (role, content) = match turn {
            Turn::User { text, images } => ("user", user(text, images, request.images)),
            Turn::Assistant(reply) => ("assistant", assistant(reply)),
            Turn::Results(results) => {
                let result = |result: &cliq_protocol::ToolResult| {
                    let mut block = json!({"type": "tool_result", "tool_use_id": result.id});
                    block["content"] = match result.images.is_empty() {
                        true => result.text.as_str().into(),
                        false => user(&result.text, &result.images, request.images).into(),
                    };
                    if result.is_error {
                        block["is_error"] = true.into();
                    }
                    block
                };
                ("user", results.iter().map(result).collect())
            }
        };
        if content.is_empty() {
            // The API refuses empty messages.
            continue;
        }
        match messages.last_mut().filter(|(last, _)| *last == role) {
            Some((_, blocks)) => blocks.extend(content),
            None => messages.push((role, content)),
        }
    }
    if !request.tools.is_empty() {
        mark_for_cache(&mut messages, access.cache_lifetime);
    }
    let messages: Vec<Value> = messages.into_iter().map(|(role, blocks)| message(role, blocks)).collect();
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if let Some(key) = &access.key {
        headers.push(("x-api-key", key.reveal().to_owned()));
    }
    let parameters = &access.parameters;
    let max_tokens = request.max_tokens(parameters.max_tokens.or(Some(MAX_TOKENS)));
    let mut body = json!({"model": access.model, "max_tokens": max_tokens, "stream": true});
    if let Some(system) = request.system {
        body["system"] = system.into();
    }
    body["messages"] = Value::Array(messages);
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.get().into();
    }
    match parameters.effort {
        None => {}
        Some(Effort::None) => body["thinking"] = json!({"type": "disabled"}),
        Some(effort @ (Effort::Low | Effort::Medium | Effort::High | Effort::Max)) => {
            body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
            body["output_config"]["effort"] = effort.as_str().into();
        }
    }
    if let Some(schema) = request.schema {
        body["output_config"]["format"] = json!({"type": "json_schema", "schema": schema.schema});
    }
    if !request.tools.is_empty() {
        let tool = |tool: &cliq_coder::tools::ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
        body["tools"] = request.tools.iter().map(tool).collect();
        if !request.may_call {
            // The tools stay: the request begins as before, and calls in the conversation have their descriptions.
            body["tool_choice"] = json!({"type": "none"});
        }
    }
    Call { url: join(&access.base, "v1/messages"), headers, body }
}

/// A text alone is a string: the shortest form, which every server understands.
fn message(role: &str, blocks: Vec<Value>) -> Value {
    let mut message = json!({ "role": role });
    // Moved, not copied: conversations are long.
    message["content"] = match &blocks[..] {
        [only] if only["type"] == "text" && only.get("cache_control").is_none() => only["text"].clone(),
        _ => Value::Array(blocks),
    };
    message
}

fn user(text: &str, names: &[String], images: &[Image]) -> Vec<Value> {
    let of_turn = images.iter().filter(|image| names.contains(&image.path));
    let picture = |image: &Image| {
        let source = json!({"type": "base64", "media_type": image.media_type, "data": image.base64});
        json!({"type": "image", "source": source})
    };
    of_turn.map(picture).chain([json!({"type": "text", "text": text})]).collect()
}

fn assistant(reply: &Reply) -> Vec<Value> {
    // Thoughts must come back as they were, and first. Those of a model behind another API are left out.
    let own = |data: &&Value| matches!(data["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let thoughts = reply.thinking.iter().filter_map(|thought| thought.provider_data.as_ref());
    let mut blocks: Vec<Value> = thoughts.filter(own).cloned().collect();
    if !reply.text.trim().is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text.trim_end()}));
    }
    for call in &reply.calls {
        blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments}));
    }
    blocks
}

/// Marks the ends of the task, of the last message and of the user's message before it: what is up to them is read from the cache.
fn mark_for_cache(messages: &mut [(&str, Vec<Value>)], lifetime: Option<CacheLifetime>) {
    let mut mark = json!({"type": "ephemeral"});
    if let Some(CacheLifetime::Hour | CacheLifetime::Day) = lifetime {
        mark["ttl"] = "1h".into();
    }
    let users: Vec<usize> =
        messages.iter().enumerate().filter(|(_, (role, _))| *role == "user").map(|(n, _)| n).collect();
    let marked = users.first().into_iter().chain(users.iter().rev().take(2));
    for &n in marked {
        if let Some(block) = messages[n].1.last_mut() {
            block["cache_control"] = mark.clone();
        }
    }
}

pub(super) fn apply(value: &Value, draft: &mut Draft) -> Option<String> {
    let kind = value["type"].as_str().unwrap_or_default();
    draft.is_reply |= matches!(
        kind,
        "message" | "message_start" | "message_delta" | "content_block_start" | "content_block_delta"
    );
    match kind {
        "message_start" => input(draft, value.pointer("/message/usage")),
        "content_block_start" => return start(&value["content_block"], index_of(value), draft),
        "content_block_delta" => return delta(value, draft),
        "message_delta" => {
            draft.tokens_out = count(value, "/usage/output_tokens").or(draft.tokens_out);
            stop(draft, value.pointer("/delta/stop_reason"));
        }
        "message_stop" => draft.is_done = true,
        // The whole message at once.
        "message" => {
            let mut said = String::new();
            for (n, block) in value["content"].as_array().into_iter().flatten().enumerate() {
                said.extend(start(block, n as u64, draft));
            }
            input(draft, value.get("usage"));
            draft.tokens_out = count(value, "/usage/output_tokens");
            stop(draft, value.get("stop_reason"));
            return Some(said).filter(|said| !said.is_empty());
        }
        _ => {}
    }
    None
}

/// Applies the start of a block, or a whole block.
fn start(block: &Value, index: u64, draft: &mut Draft) -> Option<String> {
    match block["type"].as_str().unwrap_or_default() {
        "text" => {
            let said = text(block, "/text").filter(|text| !text.is_empty())?;
            draft.text.push_str(&said);
            return Some(said);
        }
        "tool_use" => {
            let call = draft.call_at(index);
            call.id = text(block, "/id").unwrap_or_default();
            call.name = text(block, "/name").unwrap_or_default();
            if block["input"].as_object().is_some_and(|input| !input.is_empty()) {
                call.arguments = block["input"].to_string();
            }
        }
        "thinking" | "redacted_thinking" => {
            let thought = draft.thought(true);
            thought.text = text(block, "/thinking").unwrap_or_default();
            thought.provider_data = Some(block.clone());
        }
        _ => {}
    }
    None
}

fn index_of(value: &Value) -> u64 {
    value["index"].as_u64().unwrap_or(0)
}

fn delta(value: &Value, draft: &mut Draft) -> Option<String> {
    match value.pointer("/delta/type").and_then(Value::as_str).unwrap_or_default() {
        "input_json_delta" => {
            let part = text(value, "/delta/partial_json").unwrap_or_default();
            draft.call_at(index_of(value)).arguments.push_str(&part);
        }
        "thinking_delta" => {
            let part = text(value, "/delta/thinking").unwrap_or_default();
            let thought = draft.thought(false);
            thought.text.push_str(&part);
            let whole = thought.text.clone();
            if let Some(data) = &mut thought.provider_data {
                data["thinking"] = whole.into();
            }
        }
        "signature_delta" => {
            if let Some(data) = &mut draft.thought(false).provider_data {
                data["signature"] = value["delta"]["signature"].clone();
            }
        }
        _ => {
            let said = text(value, "/delta/text")?;
            draft.text.push_str(&said);
            return Some(said);
        }
    }
    None
}

/// All input: this API counts tokens that are written to or read from its cache apart.
fn input(draft: &mut Draft, usage: Option<&Value>) {
    let Some(usage) = usage else { return };
    let part = |name: &str| count(usage, name);
    draft.tokens_cached = part("/cache_read_input_tokens");
    let written = part("/cache_creation_input_tokens").unwrap_or(0);
    let cache = written.saturating_add(draft.tokens_cached.unwrap_or(0));
    draft.tokens_in = part("/input_tokens").map(|tokens| tokens.saturating_add(cache));
    draft.tokens_out = draft.tokens_out.or(part("/output_tokens"));
}

fn stop(draft: &mut Draft, reason: Option<&Value>) {
    draft.end_with(
        reason.and_then(Value::as_str).and_then(|reason| classify::end(ApiKind::Anthropic, reason)),
    );
}
