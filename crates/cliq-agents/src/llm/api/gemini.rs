//! The Gemini API.

use cliq_coder::{Reply, Turn};
use cliq_protocol::Effort;
use serde_json::{Value, json};

use super::classify::{self, End};
use super::draft::Draft;
use super::{Access, Call, ModelRequest, count, join, text};
use crate::llm::images::Image;
use crate::llm::kinds::ApiKind;

pub(super) fn call(access: &Access, request: &ModelRequest<'_>) -> Call {
    let mut contents: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for turn in request.turns {
        let (role, parts) = match turn {
            Turn::User { text, images } => ("user", user(text, images, request.images)),
            Turn::Assistant(reply) => {
                names = reply.calls.iter().map(|call| (call.id.as_str(), call.name.as_str())).collect();
                ("model", model(reply))
            }
            Turn::Results(results) => {
                let response = |result: &cliq_protocol::ToolResult| {
                    let name = names.iter().find(|(id, _)| *id == result.id).map_or("", |(_, name)| name);
                    let key = if result.is_error { "error" } else { "result" };
                    json!({"functionResponse": {"id": result.id, "name": name, "response": {key: result.text}}})
                };
                let pictures = results
                    .iter()
                    .filter(|result| !result.images.is_empty())
                    .flat_map(|result| pictures(&result.images, request.images));
                ("user", results.iter().map(response).chain(pictures).collect())
            }
        };
        if parts.is_empty() {
            // The API refuses empty contents.
            continue;
        }
        match contents.last_mut().filter(|(last, _)| *last == role) {
            Some((_, known)) => known.extend(parts),
            None => contents.push((role, parts)),
        }
    }
    let content = |(role, parts): (&str, Vec<Value>)| {
        let mut content = json!({ "role": role });
        // Moved, not copied: conversations are long.
        content["parts"] = Value::Array(parts);
        content
    };
    let mut body = json!({});
    if let Some(system) = request.system {
        body["systemInstruction"] = json!({"parts": [{"text": system}]});
    }
    body["contents"] = contents.into_iter().map(content).collect();
    if !request.tools.is_empty() {
        let tool = |tool: &cliq_coder::tools::ToolSpec| json!({"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.schema});
        let declarations: Vec<Value> = request.tools.iter().map(tool).collect();
        body["tools"] = json!([{"functionDeclarations": declarations}]);
        if !request.may_call {
            body["toolConfig"] = json!({"functionCallingConfig": {"mode": "NONE"}});
        }
    }
    let config = config(access, request);
    if config != json!({}) {
        body["generationConfig"] = config;
    }
    let path =
        format!("v1beta/models/{}:streamGenerateContent?alt=sse", access.model.trim_start_matches("models/"));
    let key = access.key.as_ref().map(|key| ("x-goog-api-key", key.reveal().to_owned()));
    Call { url: join(&access.base, &path), headers: key.into_iter().collect(), body }
}

fn config(access: &Access, request: &ModelRequest<'_>) -> Value {
    let (parameters, mut config) = (&access.parameters, json!({}));
    if let Some(max) = request.max_tokens(parameters.max_tokens) {
        config["maxOutputTokens"] = max.into();
    }
    if let Some(temperature) = parameters.temperature {
        config["temperature"] = temperature.get().into();
    }
    if let Some(effort) = parameters.effort {
        let level = match effort {
            Effort::None => "minimal",
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High | Effort::Max => "high",
        };
        config["thinkingConfig"] = json!({"thinkingLevel": level});
    }
    if let Some(schema) = request.schema {
        config["responseMimeType"] = "application/json".into();
        config["responseJsonSchema"] = schema.schema.clone();
    }
    config
}

fn user(text: &str, names: &[String], images: &[Image]) -> Vec<Value> {
    [json!({"text": text})].into_iter().chain(pictures(names, images)).collect()
}

/// Images of these names.
fn pictures<'a>(names: &'a [String], images: &'a [Image]) -> impl Iterator<Item = Value> + 'a {
    let picture = |image: &Image| json!({"inlineData": {"mimeType": image.media_type, "data": image.base64}});
    images.iter().filter(|image| names.contains(&image.path)).map(picture)
}

/// Returns a signature of this API. Data of a model behind another API are left out.
fn own(data: Option<&Value>) -> Option<Value> {
    data.filter(|data| data.is_string()).cloned()
}

fn model(reply: &Reply) -> Vec<Value> {
    let mut parts = Vec::new();
    if !reply.text.is_empty() {
        let mut part = json!({"text": reply.text});
        // A signature of a thought that came with text.
        if let Some(signature) = reply.thinking.iter().find_map(|thought| own(thought.provider_data.as_ref()))
        {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    for call in &reply.calls {
        let mut part = json!({"functionCall": {"id": call.id, "name": call.name, "args": call.arguments}});
        if let Some(signature) = own(call.provider_data.as_ref()) {
            part["thoughtSignature"] = signature;
        }
        parts.push(part);
    }
    parts
}

pub(super) fn apply(value: &Value, draft: &mut Draft) -> Option<String> {
    // Without streaming, the pieces come in a list.
    if let Some(pieces) = value.as_array() {
        let said: String = pieces.iter().filter_map(|piece| apply(piece, draft)).collect();
        return Some(said).filter(|said| !said.is_empty());
    }
    draft.is_reply |=
        ["candidates", "promptFeedback", "usageMetadata"].iter().any(|key| value.get(key).is_some());
    let mut said = String::new();
    for part in value.pointer("/candidates/0/content/parts").and_then(Value::as_array).into_iter().flatten() {
        let signature = part.get("thoughtSignature").cloned();
        if let Some(function) = part.get("functionCall") {
            let call = draft.new_call(None);
            call.id = text(function, "/id").unwrap_or_default();
            call.name = text(function, "/name").unwrap_or_default();
            call.arguments = function.get("args").map(Value::to_string).unwrap_or_default();
            call.provider_data = signature;
            continue;
        }
        let words = part["text"].as_str().unwrap_or_default();
        if part["thought"] == true {
            draft.thought(false).text.push_str(words);
        } else {
            said.push_str(words);
            if signature.is_some() {
                draft.thought(false).provider_data = signature;
            }
        }
    }
    draft.text.push_str(&said);
    draft.tokens_in = count(value, "/usageMetadata/promptTokenCount").or(draft.tokens_in);
    // Thoughts are paid for as output, and counted apart.
    let thoughts = count(value, "/usageMetadata/thoughtsTokenCount");
    draft.tokens_reasoning = thoughts.or(draft.tokens_reasoning);
    let answer = count(value, "/usageMetadata/candidatesTokenCount");
    if answer.or(thoughts).is_some() {
        draft.tokens_out = Some(answer.unwrap_or(0).saturating_add(thoughts.unwrap_or(0)));
    }
    draft.tokens_cached = count(value, "/usageMetadata/cachedContentTokenCount").or(draft.tokens_cached);
    if let Some(why) =
        text(value, "/promptFeedback/blockReason").filter(|why| why != "BLOCK_REASON_UNSPECIFIED")
    {
        draft.end_with(Some(End::Refused(format!("the prompt was blocked: {why}"))));
    }
    let reason = value.pointer("/candidates/0/finishReason").and_then(Value::as_str);
    draft.end_with(reason.and_then(|reason| classify::end(ApiKind::Gemini, reason)));
    Some(said).filter(|said| !said.is_empty())
}
