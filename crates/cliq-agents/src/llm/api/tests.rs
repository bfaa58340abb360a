use cliq_coder::Thinking;
use cliq_protocol::{Object, ToolCall, ToolResult};
use serde_json::json;

use super::*;

fn turns() -> Vec<Turn> {
    let call = |id: &str, data: Option<&str>| ToolCall {
        id: id.into(),
        name: "read_file".into(),
        arguments: Object::from_iter([("path".to_owned(), json!("a"))]),
        invalid: None,
        provider_data: data.map(Value::from),
    };
    let user = |text: &str, images: &[&str]| Turn::User {
        text: text.into(),
        images: images.iter().map(|path| (*path).to_owned()).collect(),
    };
    let result = |id: &str, is_error| ToolResult { is_error, ..ToolResult::new(id, Ok("text".into())) };
    let thought = json!({"type": "thinking", "thinking": "hm", "signature": "s"});
    vec![
        user("The task.", &["a.png"]),
        Turn::Assistant(Reply {
            text: "I look.".into(),
            thinking: vec![Thinking { text: "hm".into(), provider_data: Some(thought) }],
            calls: vec![call("1", Some("signature")), call("2", None)],
        }),
        Turn::Results(vec![result("1", false), result("2", true)]),
        user("Guidance.", &[]),
    ]
}

#[test]
fn requests_are_pinned() {
    let images = [Image { path: "a.png".into(), media_type: "image/png", base64: "AQID".into() }];
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let tools = [ToolSpec { name: "read_file".into(), description: "Reads.".into(), schema }];
    let turns = turns();
    let of = |kind| {
        let access = Access {
            kind,
            name: "x".to_owned(),
            base: "http://x".into(),
            key: None,
            model: "m".into(),
            parameters: ModelParameters { max_tokens: Some(9), ..ModelParameters::default() },
            places: None,
            cache_key: None,
            cache_lifetime: None,
            context_tokens: 32_768,
            reply_timeout: REPLY_TIMEOUT,
            is_at_vendor: false,
        };
        let api = Api::new(access);
        let bodies = [true, false].map(|may_call| {
            let request = ModelRequest {
                system: Some("The role."),
                turns: &turns,
                tools: &tools,
                may_call,
                schema: None,
                images: &images,
                reply_cap: None,
            };
            api.call(&request).body
        });
        let [body, last] = bodies;
        let choice =
            [&last["tool_choice"], &last["toolConfig"]].into_iter().find(|value| !value.is_null()).cloned();
        json!({"body": body, "without calls": choice})
    };
    insta::assert_json_snapshot!(
        [ApiKind::Anthropic, ApiKind::OpenAi, ApiKind::Responses, ApiKind::Gemini].map(of)
    );
}

fn api(kind: ApiKind) -> Api {
    Api::new(Access {
        kind,
        name: "x".to_owned(),
        base: "http://x".into(),
        key: None,
        model: "m".into(),
        parameters: ModelParameters::default(),
        places: None,
        cache_key: None,
        cache_lifetime: None,
        context_tokens: 32_768,
        reply_timeout: REPLY_TIMEOUT,
        is_at_vendor: false,
    })
}

/// Applies the data of events.
fn received(kind: ApiKind, events: &[&[u8]]) -> Draft {
    let (api, mut draft) = (api(kind), Draft::default());
    for event in events {
        let applied = api.apply_text(event, &mut draft);
        assert!(applied.is_ok(), "{}: {applied:?}", event.escape_ascii());
    }
    draft
}

#[test]
fn thoughts_and_parts_of_all_forms_are_told_from_text() {
    for (kind, event) in [
        (
            ApiKind::OpenAi,
            r#"{"choices":[{"message":{"content":"b","reasoning_content":"a"},"finish_reason":"stop"}]}"#,
        ),
        (
            ApiKind::OpenAi,
            r#"{"choices":[{"message":{"content":"b","reasoning":"a","reasoning_details":[{"text":"a"}]}}]}"#,
        ),
        (
            ApiKind::OpenAi,
            r#"{"choices":[{"message":{"content":"b","thinking":[{"type":"text","text":"a"}]}}]}"#,
        ),
        (
            ApiKind::OpenAi,
            r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]},{"type":"text","text":"b"}]}}]}"#,
        ),
        (ApiKind::OpenAi, r#"{"choices":[{"delta":{"content":"<think>a</think>\nb"}}]}"#),
        (
            ApiKind::Anthropic,
            r#"{"type":"message","content":[{"type":"thinking","thinking":"a"},{"type":"text","text":"b"}]}"#,
        ),
        (ApiKind::Anthropic, r#"{"type":"message","content":[{"type":"text","text":"a</think>b"}]}"#),
        (
            ApiKind::Gemini,
            r#"{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"text":"b"}]}}]}"#,
        ),
    ] {
        let reply = received(kind, &[event.as_bytes()]).into_reply(&[], std::iter::empty(), false);
        let thoughts: Vec<&str> = reply.thinking.iter().map(|thought| thought.text.as_str()).collect();
        assert_eq!((thoughts.as_slice(), reply.text.as_str()), (&["a"][..], "b"), "{event}");
    }
}

#[test]
fn refusals_of_all_forms_are_ends() {
    for (kind, events) in [
        (ApiKind::OpenAi, &[&br#"{"choices":[{"delta":{"refusal":"I will"}}]}"#[..], br#"{"choices":[{"delta":{"refusal":" not."},"finish_reason":"stop"}]}"#][..]),
        (ApiKind::OpenAi, &[&br#"{"choices":[{"message":{"content":[{"type":"refusal","refusal":"I will not."}]},"finish_reason":"stop"}]}"#[..]]),
        (ApiKind::Anthropic, &[br#"{"type":"message_delta","delta":{"stop_reason":"refusal"}}"#]),
        (ApiKind::Gemini, &[br#"{"promptFeedback":{"blockReason":"SAFETY"}}"#]),
        (ApiKind::Gemini, &[br#"{"candidates":[{"finishReason":"RECITATION"}]}"#]),
    ] {
        let draft = received(kind, events);
        assert!(matches!(&draft.end, Some(End::Refused(why)) if !why.is_empty()), "{:?}", draft.end);
        assert!(draft.is_reply);
    }
}

#[test]
fn counts_that_are_too_large_and_text_that_is_not_unicode_are_read() {
    let draft = received(
        ApiKind::Anthropic,
        &[br#"{"type":"message_start","message":{"usage":{"input_tokens":18446744073709551615,"cache_read_input_tokens":18446744073709551615,"cache_creation_input_tokens":1e30}}}"#],
    );
    assert_eq!(
        draft.usage("p", "m").map(|usage| (usage.tokens_in, usage.tokens())),
        Some((u64::MAX, u64::MAX))
    );
    let draft = received(
        ApiKind::Gemini,
        &[br#"{"usageMetadata":{"candidatesTokenCount":18446744073709551615,"thoughtsTokenCount":18446744073709551615}}"#],
    );
    assert_eq!(draft.tokens_out, Some(u64::MAX));
    let draft = received(
        ApiKind::OpenAi,
        &[
            br#"{"choices":[{"delta":{"content":"a\ud83d"}}],"usage":{"prompt_tokens":1e25,"completion_tokens":-1}}"#,
            b"{\"choices\":[{\"delta\":{\"content\":\"b\xff\"}}]}",
        ],
    );
    assert_eq!(
        (draft.text.as_str(), draft.tokens_in, draft.tokens_out),
        ("a\u{fffd}b\u{fffd}", Some(u64::MAX), Some(0))
    );
}

#[test]
fn usage_of_replies_that_broke_off_is_estimated() {
    let usage = |draft: &Draft| {
        draft.partial_usage("p", "m", 100).map(|usage| (usage.tokens_in, usage.tokens_out, usage.estimated))
    };
    assert_eq!(usage(&Draft::default()), None, "the server did nothing");
    assert_eq!(usage(&Draft { has_timed_out: true, ..Draft::default() }), Some((100, 0, true)));
    assert_eq!(usage(&Draft { was_ended: true, ..Draft::default() }), Some((100, 0, true)));
    let text = "x".repeat(400);
    let event = json!({"choices": [{"delta": {"content": text}}]}).to_string();
    assert_eq!(usage(&received(ApiKind::OpenAi, &[event.as_bytes()])), Some((100, 100, true)));
    let start = br#"{"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":1}}}"#;
    assert_eq!(usage(&received(ApiKind::Anthropic, &[start])), Some((7, 1, true)));
}

#[test]
fn messages_of_one_role_are_merged() {
    let user = |text: &str| Turn::User { text: text.into(), images: Vec::new() };
    let assistant = |text: &str| Turn::Assistant(Reply { text: text.into(), ..Reply::default() });
    let turns = [user("a"), user("b"), assistant(""), user("c"), assistant("d"), assistant("e"), user("f")];
    let request = ModelRequest {
        system: None,
        turns: &turns,
        tools: &[],
        may_call: false,
        schema: None,
        images: &[],
        reply_cap: None,
    };
    for (kind, list) in
        [(ApiKind::OpenAi, "messages"), (ApiKind::Anthropic, "messages"), (ApiKind::Gemini, "contents")]
    {
        let body = api(kind).call(&request).body;
        let roles: Vec<&str> = body[list]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|message| message["role"].as_str())
            .collect();
        let model = if kind == ApiKind::Gemini { "model" } else { "assistant" };
        assert_eq!(roles, ["user", model, "user"], "{body}");
        let text = body[list].to_string();
        assert!(["a", "b", "c", "d", "e", "f"].iter().all(|part| text.contains(part)), "{text}");
    }
}

#[test]
fn response_is_a_success_only_if_its_status_is() {
    let item = json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Half."}]});
    let kind = |events: &[Value]| {
        let events: Vec<String> = events.iter().map(Value::to_string).collect();
        let events: Vec<&[u8]> = events.iter().map(String::as_bytes).collect();
        let draft = received(ApiKind::Responses, &events);
        let end = draft.end.clone();
        let reply = draft.into_reply(&[], std::iter::empty(), false);
        end.map(|end| classify::kind(&end, &reply, "x", &Sizes::default()).0)
    };
    let whole = |status: Value| json!({"object": "response", "status": status, "output": [item.clone()]});
    assert_eq!(kind(&[whole(json!("completed"))]), Some(ReplyKind::Answer));
    for status in [json!("in_progress"), json!("queued"), json!("incomplete"), json!("new"), json!(null)] {
        assert_eq!(kind(&[whole(status.clone())]), Some(ReplyKind::CutOff), "{status}");
    }
    let delta = json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Half."});
    assert_eq!(kind(std::slice::from_ref(&delta)), None, "the end is missing");
    for event in ["response.incomplete", "response.completed"] {
        let unclear = json!({"type": event, "response": {"object": "response", "output": []}});
        assert_eq!(kind(&[delta.clone(), unclear]), Some(ReplyKind::CutOff), "{event} without a status");
    }
}

#[test]
fn thoughts_of_another_api_are_left_out() {
    let thought = |data: Value| Thinking { text: "hm".into(), provider_data: Some(data) };
    let foreign = [
        json!({"type": "thinking", "thinking": "hm", "signature": "of-messages"}),
        json!({"item": {"type": "reasoning", "encrypted_content": "of-responses"}, "output_index": 0}),
        json!("of-gemini"),
    ];
    let reply = Reply { text: "I look.".into(), thinking: foreign.map(thought).into(), calls: vec![] };
    let turns = [Turn::User { text: "a".into(), images: Vec::new() }, Turn::Assistant(reply)];
    for (kind, own) in [
        (ApiKind::Anthropic, "of-messages"),
        (ApiKind::Responses, "of-responses"),
        (ApiKind::Gemini, "of-gemini"),
    ] {
        let request = ModelRequest {
            system: None,
            turns: &turns,
            tools: &[],
            may_call: false,
            schema: None,
            images: &[],
            reply_cap: None,
        };
        let body = api(kind).call(&request).body.to_string();
        for name in ["of-messages", "of-responses", "of-gemini"] {
            assert_eq!(body.contains(name), name == own, "{name}: {body}");
        }
    }
}
