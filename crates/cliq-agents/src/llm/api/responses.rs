//! The Responses API. Nothing is stored by the provider: thoughts come encrypted, and are returned with the next request.

use cliq_coder::{Reply, Turn};
use cliq_protocol::{Effort, ToolResult};
use serde_json::{Map, Value, json};

use super::classify::{self, End};
use super::draft::Draft;
use super::openai::{add_cache_fields, effort_word};
use super::{Access, Call, ModelRequest, count, join, text};
use crate::llm::images::Image;
use crate::llm::kinds::ApiKind;

/// Key of the position of an item in its reply, in the data that is kept with it.
const POSITION: &str = "output_index";

pub(super) fn call(access: &Access, request: &ModelRequest<'_>) -> Call {
    let mut input: Vec<Value> = Vec::new();
    for turn in request.turns {
        match turn {
            Turn::User { text, images } => input.push(user(text, images, request.images)),
            Turn::Assistant(reply) => input.extend(items(reply)),
            Turn::Results(results) => {
                input.extend(results.iter().map(|given| result(given, request.images)));
            }
        }
    }
    let mut body = json!({
        "model": access.model, "stream": true, "store": false, "include": ["reasoning.encrypted_content"],
    });
    // Moved, not copied: conversations are long.
    body["input"] = Value::Array(input);
    if let Some(system) = request.system {
        body["instructions"] = system.into();
    }
    if !request.tools.is_empty() {
        let tool = |tool: &cliq_coder::tools::ToolSpec| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": false,
            })
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        if !request.may_call {
            body["tool_choice"] = "none".into();
        }
    }
    if let Some(schema) = request.schema {
        body["text"] = json!({"format": {"type": "json_schema", "name": schema.name, "schema": schema.schema, "strict": schema.is_strict}});
    }
    let parameters = &access.parameters;
    if let Some(max) = request.max_tokens(parameters.max_tokens) {
        body["max_output_tokens"] = max.into();
    }
    if let Some(temperature) = parameters.temperature {
        body["temperature"] = temperature.get().into();
    }
    if let Some(effort) = parameters.effort {
        body["reasoning"] = json!({"effort": effort_word(effort)});
        if effort != Effort::None {
            body["reasoning"]["summary"] = "auto".into();
        }
    }
    if access.is_at_vendor {
        add_cache_fields(access, &mut body);
    }
    let key = access.key.as_ref().map(|key| ("authorization", format!("Bearer {}", key.reveal())));
    Call { url: join(&access.base, "responses"), headers: key.into_iter().collect(), body }
}

fn user(text: &str, names: &[String], images: &[Image]) -> Value {
    json!({"type": "message", "role": "user", "content": content(text, names, images)})
}

/// Text with the images of these names.
fn content(text: &str, names: &[String], images: &[Image]) -> Value {
    let of_turn = images.iter().filter(|image| names.contains(&image.path));
    let picture = |image: &Image| {
        let url = format!("data:{};base64,{}", image.media_type, image.base64);
        json!({"type": "input_image", "image_url": url})
    };
    [json!({"type": "input_text", "text": text})].into_iter().chain(of_turn.map(picture)).collect()
}

fn result(result: &ToolResult, images: &[Image]) -> Value {
    let prefix = if result.is_error { "Error: " } else { "" };
    let text = format!("{prefix}{}", result.text);
    let output = match result.images.is_empty() {
        true => text.into(),
        false => content(&text, &result.images, images),
    };
    json!({"type": "function_call_output", "call_id": result.id, "output": output})
}

/// Items of a reply in the order in which the model made them: the API refuses a thought that what followed it does not follow.
fn items(reply: &Reply) -> Vec<Value> {
    let position = |data: Option<&Value>| data.and_then(|data| data[POSITION].as_u64()).unwrap_or(u64::MAX);
    let mut items: Vec<(u64, Value)> = Vec::new();
    for data in reply.thinking.iter().filter_map(|thought| thought.provider_data.as_ref()) {
        if let Some(item) = data.get("item") {
            items.push((position(Some(data)), item.clone()));
        }
    }
    let calls = reply.calls.iter().map(|call| {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        let item =
            json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": arguments});
        (position(call.provider_data.as_ref()), item)
    });
    items.extend(calls);
    items.sort_by_key(|(position, _)| *position);
    let mut items: Vec<Value> = items.into_iter().map(|(_, item)| item).collect();
    if !reply.text.trim().is_empty() {
        let content = json!([{"type": "output_text", "text": reply.text, "annotations": []}]);
        let message = json!({"type": "message", "role": "assistant", "content": content});
        let first_call = items.iter().position(|item| item["type"] == "function_call");
        items.insert(first_call.unwrap_or(items.len()), message);
    }
    items
}

pub(super) fn apply(value: &Value, draft: &mut Draft) -> Option<String> {
    let kind = value["type"].as_str().unwrap_or_default();
    draft.is_reply |= kind.starts_with("response.") || value["object"] == "response";
    let index = value[POSITION].as_u64();
    match kind {
        "response.output_text.delta" => return said(value["delta"].as_str(), draft),
        "response.refusal.delta" => refuse(value["delta"].as_str().unwrap_or_default(), draft),
        "response.reasoning_summary_part.added" => {
            let thought = &mut draft.thought(false).text;
            if !thought.is_empty() {
                thought.push_str("\n\n");
            }
        }
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            draft.thought(false).text.push_str(value["delta"].as_str().unwrap_or_default());
        }
        "response.output_item.added" => begin(&value["item"], index, draft),
        "response.function_call_arguments.delta" => {
            let call = draft.call_at(index.unwrap_or_default());
            call.arguments.push_str(value["delta"].as_str().unwrap_or_default());
        }
        "response.output_item.done" => finish(&value["item"], index, draft),
        "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
            end(&value["response"], draft);
            draft.is_done = true;
        }
        // The whole response at once.
        _ if value["object"] == "response" && value["output"].is_array() => {
            let mut whole = String::new();
            for (n, item) in value["output"].as_array().into_iter().flatten().enumerate() {
                begin(item, Some(n as u64), draft);
                for part in
                    item["content"].as_array().into_iter().flatten().filter(|_| item["type"] == "message")
                {
                    match part["type"].as_str() {
                        Some("refusal") => refuse(part["refusal"].as_str().unwrap_or_default(), draft),
                        _ => whole.extend(said(part["text"].as_str(), draft)),
                    }
                }
                finish(item, Some(n as u64), draft);
            }
            end(value, draft);
            draft.is_done = true;
            return Some(whole).filter(|text| !text.is_empty());
        }
        _ => {}
    }
    None
}

fn said(text: Option<&str>, draft: &mut Draft) -> Option<String> {
    let text = text.filter(|text| !text.is_empty())?;
    draft.text.push_str(text);
    Some(text.to_owned())
}

/// Adds a piece of a refusal. The first piece decides the end of the reply.
fn refuse(piece: &str, draft: &mut Draft) {
    match &mut draft.end {
        Some(End::Refused(known)) => known.push_str(piece),
        end => *end = Some(End::Refused(piece.to_owned())),
    }
}

fn begin(item: &Value, index: Option<u64>, draft: &mut Draft) {
    match item["type"].as_str() {
        Some("function_call") => {
            let call = draft.call_at(index.unwrap_or_default());
            call.id = text(item, "/call_id").or_else(|| text(item, "/id")).unwrap_or_default();
            call.name = text(item, "/name").unwrap_or_default();
            call.provider_data = index.map(|index| json!({ POSITION: index }));
        }
        Some("reasoning") => {
            draft.thought(true);
        }
        _ => {}
    }
}

/// Applies an item that is complete: it counts, and not the pieces before it.
fn finish(item: &Value, index: Option<u64>, draft: &mut Draft) {
    match item["type"].as_str() {
        Some("function_call") => {
            let arguments = match &item["arguments"] {
                Value::String(text) => text.clone(),
                Value::Null => return,
                whole => whole.to_string(),
            };
            draft.call_at(index.unwrap_or_default()).arguments = arguments;
        }
        Some("reasoning") => {
            let thought = draft.thought(false);
            let parts = ["summary", "content"].iter().filter_map(|name| item[*name].as_array()).flatten();
            let texts: Vec<&str> = parts.filter_map(|part| part["text"].as_str()).collect();
            if !texts.is_empty() {
                thought.text = texts.join("\n\n");
            }
            // Without the encrypted content, the provider does not know the thought any more.
            if item["encrypted_content"].is_string() {
                let mut kept = Map::new();
                for name in ["type", "summary", "encrypted_content"] {
                    kept.insert(name.to_owned(), item[name].clone());
                }
                thought.provider_data = Some(json!({ "item": kept, POSITION: index }));
            }
        }
        _ => {}
    }
}

/// Applies the end of a response: usage and reason.
fn end(response: &Value, draft: &mut Draft) {
    draft.tokens_in = count(response, "/usage/input_tokens").or(draft.tokens_in);
    draft.tokens_out = count(response, "/usage/output_tokens").or(draft.tokens_out);
    draft.tokens_cached =
        count(response, "/usage/input_tokens_details/cached_tokens").or(draft.tokens_cached);
    draft.tokens_reasoning =
        count(response, "/usage/output_tokens_details/reasoning_tokens").or(draft.tokens_reasoning);
    let status = response["status"].as_str().unwrap_or("no status");
    let reason = match status {
        "incomplete" => text(response, "/incomplete_details/reason").unwrap_or_else(|| status.to_owned()),
        "failed" => text(response, "/error/code").unwrap_or_else(|| status.to_owned()),
        _ => status.to_owned(),
    };
    draft.end_with(match status {
        "failed" | "cancelled" => Some(End::Failed(reason)),
        _ => classify::end(ApiKind::Responses, &reason),
    });
}
