//! The Gemini API.

use serde_json::{Value, json};

use super::{Reply, event, halves};

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    let mut parts = thoughts(reply);
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(calls(reply));
    response(reply, &parts, true)
}

pub(super) fn stream(reply: &Reply<'_>) -> String {
    let mut pieces = Vec::new();
    let thoughts = thoughts(reply);
    if !thoughts.is_empty() {
        pieces.push(thoughts);
    }
    if !reply.text.is_empty() {
        let (first, second) = halves(reply.text);
        pieces.extend([vec![json!({"text": first})], vec![json!({"text": second})]]);
    }
    pieces.push(calls(reply));
    let last = pieces.len() - 1;
    let pieces = pieces.iter().enumerate();
    pieces.map(|(n, parts)| event(None, &response(reply, parts, n == last)).replace('\n', "\r\n")).collect()
}

fn thoughts(reply: &Reply<'_>) -> Vec<Value> {
    reply.thinking.map(|thought| json!({"text": thought, "thought": true})).into_iter().collect()
}

fn calls(reply: &Reply<'_>) -> Vec<Value> {
    let part = |(n, call): (usize, &crate::script::ScriptedCall)| {
        let mut function = json!({"name": call.name, "args": call.arguments});
        if let Some(id) = reply.id(n) {
            function["id"] = id.into();
        }
        let mut part = json!({"functionCall": function});
        // The first call of a reply has the signature of its thoughts.
        if n == 0 {
            part["thoughtSignature"] = reply.signature.into();
        }
        part
    };
    reply.calls.iter().enumerate().map(part).collect()
}

fn response(reply: &Reply<'_>, parts: &[Value], is_last: bool) -> Value {
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        candidate["finishReason"] = if reply.is_cut_off { "MAX_TOKENS" } else { "STOP" }.into();
    }
    let mut response = json!({"candidates": [candidate], "modelVersion": "scripted", "responseId": format!("r{}", reply.number)});
    if reply.has_usage() {
        response["usageMetadata"] = json!({
            "promptTokenCount": reply.tokens_in, "candidatesTokenCount": reply.tokens_out,
            "totalTokenCount": reply.tokens_in + reply.tokens_out, "cachedContentTokenCount": reply.tokens_cached,
        });
    }
    response
}
