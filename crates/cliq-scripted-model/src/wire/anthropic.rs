//! The Messages API.

use serde_json::{Value, json};

use super::{Reply, arguments, event, halves};

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    let mut content = Vec::new();
    if let Some(thought) = reply.thinking {
        content.push(json!({"type": "thinking", "thinking": thought, "signature": reply.signature}));
    }
    if !reply.text.is_empty() {
        content.push(json!({"type": "text", "text": reply.text}));
    }
    for (n, call) in reply.calls.iter().enumerate() {
        content
            .push(json!({"type": "tool_use", "id": reply.id(n), "name": call.name, "input": call.arguments}));
    }
    let mut message = message(reply, reply.tokens_out);
    message["content"] = content.into();
    message["stop_reason"] = stop_reason(reply).into();
    message
}

pub(super) fn stream(reply: &Reply<'_>) -> String {
    let mut events = vec![("message_start", json!({"type": "message_start", "message": message(reply, 1)}))];
    let mut index = 0;
    let mut block = |start: Value, deltas: Vec<Value>| {
        events.push((
            "content_block_start",
            json!({"type": "content_block_start", "index": index, "content_block": start}),
        ));
        for delta in deltas {
            events.push((
                "content_block_delta",
                json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ));
        }
        events.push(("content_block_stop", json!({"type": "content_block_stop", "index": index})));
        index += 1;
    };
    if let Some(thought) = reply.thinking {
        let (first, second) = halves(thought);
        let deltas = vec![
            json!({"type": "thinking_delta", "thinking": first}),
            json!({"type": "thinking_delta", "thinking": second}),
            json!({"type": "signature_delta", "signature": reply.signature}),
        ];
        block(json!({"type": "thinking", "thinking": "", "signature": ""}), deltas);
    }
    if !reply.text.is_empty() {
        let (first, second) = halves(reply.text);
        let deltas = [first, second].map(|text| json!({"type": "text_delta", "text": text}));
        block(json!({"type": "text", "text": ""}), deltas.into());
    }
    for (n, call) in reply.calls.iter().enumerate() {
        let text = arguments(call);
        let (first, second) = halves(&text);
        let deltas =
            ["", first, second].map(|part| json!({"type": "input_json_delta", "partial_json": part}));
        block(json!({"type": "tool_use", "id": reply.id(n), "name": call.name, "input": {}}), deltas.into());
    }
    events.push(("ping", json!({"type": "ping"})));
    let mut delta =
        json!({"type": "message_delta", "delta": {"stop_reason": stop_reason(reply), "stop_sequence": null}});
    if reply.has_usage() {
        delta["usage"] = json!({"output_tokens": reply.tokens_out});
    }
    events.push(("message_delta", delta));
    events.push(("message_stop", json!({"type": "message_stop"})));
    events.iter().map(|(name, data)| event(Some(name), data)).collect()
}

fn message(reply: &Reply<'_>, tokens_out: u64) -> Value {
    let mut message = json!({
        "id": format!("msg_{}", reply.number), "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null,
    });
    if reply.has_usage() {
        // Input that is read from the cache is counted apart.
        message["usage"] = json!({
            "input_tokens": reply.tokens_in - reply.tokens_cached, "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": reply.tokens_cached, "output_tokens": tokens_out,
        });
    }
    message
}

fn stop_reason(reply: &Reply<'_>) -> &'static str {
    match (reply.is_cut_off, reply.calls.is_empty()) {
        (true, _) => "max_tokens",
        (false, true) => "end_turn",
        (false, false) => "tool_use",
    }
}
