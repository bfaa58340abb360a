//! The Chat Completions API.

use serde_json::{Value, json};

use super::{Reply, arguments, event, halves};

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    let mut message = json!({"role": "assistant", "content": reply.text, "refusal": null});
    if let Some(thought) = reply.thinking {
        message["reasoning_content"] = thought.into();
    }
    let calls: Vec<Value> =
        (0..reply.calls.len()).map(|n| call(reply, n, &arguments(&reply.calls[n]))).collect();
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut body = json!({
        "id": format!("chatcmpl-{}", reply.number), "object": "chat.completion", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)}],
    });
    if reply.has_usage() {
        body["usage"] = usage(reply);
    }
    body
}

pub(super) fn stream(reply: &Reply<'_>) -> String {
    let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    if let Some(thought) = reply.thinking {
        deltas.push(json!({"reasoning_content": thought}));
    }
    if !reply.text.is_empty() {
        let (first, second) = halves(reply.text);
        deltas.extend([json!({"content": first}), json!({"content": second})]);
    }
    for n in 0..reply.calls.len() {
        let text = arguments(&reply.calls[n]);
        if reply.behavior.has_no_ids {
            deltas.push(json!({"tool_calls": [call(reply, n, &text)]}));
            continue;
        }
        let mut first = call(reply, n, "");
        first["index"] = n.into();
        deltas.push(json!({"tool_calls": [first]}));
        let (one, two) = halves(&text);
        for part in [one, two] {
            deltas.push(json!({"tool_calls": [{"index": n, "function": {"arguments": part}}]}));
        }
    }
    let mut out = String::new();
    for delta in deltas {
        out.push_str(&event(None, &chunk(reply, &delta, None)));
    }
    out.push_str(&event(None, &chunk(reply, &json!({}), Some(finish_reason(reply)))));
    if reply.has_usage() {
        let mut last = chunk(reply, &json!({}), None);
        last["choices"] = json!([]);
        last["usage"] = usage(reply);
        out.push_str(&event(None, &last));
    }
    out.push_str("data: [DONE]\n\n");
    out
}

fn call(reply: &Reply<'_>, n: usize, arguments: &str) -> Value {
    let mut call =
        json!({"type": "function", "function": {"name": reply.calls[n].name, "arguments": arguments}});
    if let Some(id) = reply.id(n) {
        call["id"] = id.into();
    }
    call
}

fn chunk(reply: &Reply<'_>, delta: &Value, finish: Option<&str>) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.number), "object": "chat.completion.chunk", "created": 0, "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}

fn usage(reply: &Reply<'_>) -> Value {
    json!({
        "prompt_tokens": reply.tokens_in, "completion_tokens": reply.tokens_out,
        "total_tokens": reply.tokens_in + reply.tokens_out, "prompt_tokens_details": {"cached_tokens": reply.tokens_cached},
    })
}

fn finish_reason(reply: &Reply<'_>) -> &'static str {
    match (reply.is_cut_off, reply.calls.is_empty()) {
        (true, _) => "length",
        (false, true) => "stop",
        (false, false) => "tool_calls",
    }
}
