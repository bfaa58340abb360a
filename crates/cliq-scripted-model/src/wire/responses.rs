//! The Responses API.

use serde_json::{Value, json};

use super::{Reply, arguments, event, halves};

pub(super) fn whole(reply: &Reply<'_>) -> Value {
    response(reply, &items(reply))
}

pub(super) fn stream(reply: &Reply<'_>) -> String {
    let items = items(reply);
    let mut first = response(reply, &[]);
    first["status"] = "in_progress".into();
    let mut out = String::new();
    let mut send = |kind: &str, mut data: Value| {
        data["type"] = kind.into();
        out.push_str(&event(Some(kind), &data));
    };
    send("response.created", json!({"response": first}));
    for (n, item) in items.iter().enumerate() {
        let mut begun = item.clone();
        match item["type"].as_str() {
            Some("function_call") => begun["arguments"] = "".into(),
            Some("message") => begun["content"] = json!([]),
            _ => begun["summary"] = json!([]),
        }
        send("response.output_item.added", json!({"output_index": n, "item": begun}));
        match item["type"].as_str() {
            Some("function_call") => {
                let (one, two) = halves(item["arguments"].as_str().unwrap_or_default());
                for delta in [one, two] {
                    let data = json!({"output_index": n, "item_id": item["id"], "delta": delta});
                    send("response.function_call_arguments.delta", data);
                }
            }
            Some("message") => {
                let (one, two) = halves(reply.text);
                for delta in [one, two] {
                    let data =
                        json!({"output_index": n, "content_index": 0, "item_id": item["id"], "delta": delta});
                    send("response.output_text.delta", data);
                }
            }
            _ => {
                let data = json!({"output_index": n, "summary_index": 0, "item_id": item["id"]});
                send("response.reasoning_summary_part.added", data.clone());
                let mut data = data;
                data["delta"] = reply.thinking.unwrap_or_default().into();
                send("response.reasoning_summary_text.delta", data);
            }
        }
        send("response.output_item.done", json!({"output_index": n, "item": item}));
    }
    let kind = if reply.is_cut_off { "response.incomplete" } else { "response.completed" };
    send(kind, json!({"response": response(reply, &items)}));
    out
}

fn items(reply: &Reply<'_>) -> Vec<Value> {
    let status = if reply.is_cut_off { "incomplete" } else { "completed" };
    let thought = reply.thinking.map(|thought| {
        json!({
            "type": "reasoning", "id": format!("rs_{}", reply.number), "encrypted_content": reply.signature,
            "summary": [{"type": "summary_text", "text": thought}],
        })
    });
    let message = (!reply.text.is_empty()).then(|| {
        let content = json!([{"type": "output_text", "text": reply.text, "annotations": []}]);
        json!({"type": "message", "id": format!("msg_{}", reply.number), "role": "assistant", "status": status, "content": content})
    });
    let call = |n: usize| {
        let call = &reply.calls[n];
        json!({
            "type": "function_call", "id": format!("fc_{}_{n}", reply.number), "call_id": reply.id(n), "name": call.name,
            "arguments": arguments(call), "status": status,
        })
    };
    thought.into_iter().chain(message).chain((0..reply.calls.len()).map(call)).collect()
}

fn response(reply: &Reply<'_>, output: &[Value]) -> Value {
    let status = if reply.is_cut_off { "incomplete" } else { "completed" };
    let mut body = json!({
        "id": format!("resp_{}", reply.number), "object": "response", "created_at": 0, "model": "scripted", "status": status,
        "error": null, "incomplete_details": null, "output": output,
    });
    if reply.is_cut_off {
        body["incomplete_details"] = json!({"reason": "max_output_tokens"});
    }
    if reply.has_usage() {
        body["usage"] = json!({
            "input_tokens": reply.tokens_in, "output_tokens": reply.tokens_out,
            "total_tokens": reply.tokens_in + reply.tokens_out,
            "input_tokens_details": {"cached_tokens": reply.tokens_cached},
        });
    }
    body
}
