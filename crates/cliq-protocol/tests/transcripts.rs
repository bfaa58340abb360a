//! Transcripts as bytes: a snapshot pins what is written, and every entry survives.

use cliq_protocol::{
    FailedCall, FailedCallKind, Object, Origin, PhaseName, ReplyKind, ReplyUsage, Role, RunId, Timestamp,
    ToolCall, ToolResult, TranscriptBody, TranscriptEntry, TranscriptStart, Usage, WireTime,
};
use proptest::prelude::*;
use serde_json::json;

fn object(value: &serde_json::Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn all() -> Vec<TranscriptBody> {
    let message = |role, text: &str, origin, steering: &[&str], images: &[&str]| TranscriptBody::Message {
        role,
        text: text.into(),
        origin,
        steering: steering.iter().map(|id| (*id).to_owned()).collect(),
        images: images.iter().map(|path| (*path).to_owned()).collect(),
    };
    let error = |kind| {
        let usage = Usage { tokens_in: 7, estimated: true, ..Usage::default() };
        let usage = (kind == FailedCallKind::StaleThinking).then_some(usage);
        TranscriptBody::Error(FailedCall { message: "refused".into(), kind, usage })
    };
    vec![
        TranscriptBody::Start(TranscriptStart {
            version: 1,
            run_id: RunId::parse("r").expect("an id"),
            phase: PhaseName::parse("work").expect("a valid name"),
            activation: 2,
            agent: "claude-api".into(),
            model: Some("m".into()),
            tools: vec!["read_file".into()],
            continues: Some(1),
            continued_from: Some(1),
        }),
        message(Role::User, "The task.", Some(Origin::Task), &["s1"], &["a.png"]),
        message(Role::User, "Guidance.", Some(Origin::Steering), &["s2"], &[]),
        message(Role::User, "Again.", Some(Origin::Retry), &[], &[]),
        message(Role::User, "A limit.", Some(Origin::Limit), &[], &[]),
        message(Role::User, "A summary.", Some(Origin::Summary), &[], &[]),
        message(Role::User, "Go on.", Some(Origin::Continue), &[], &[]),
        message(Role::User, "Resumed.", Some(Origin::Resume), &[], &[]),
        message(Role::User, "Sent back.", Some(Origin::Feedback), &[], &[]),
        TranscriptBody::Notice { text: "A notice.".into() },
        TranscriptBody::Thinking { text: "hm".into(), provider_data: Some(json!({"signature": "s"})) },
        message(Role::Assistant, "I look.", None, &[], &[]),
        TranscriptBody::ToolCall(ToolCall {
            id: "1".into(),
            name: "read_file".into(),
            arguments: object(&json!({"path": "a"})),
            invalid: None,
            provider_data: None,
        }),
        TranscriptBody::ToolCall(ToolCall {
            id: "2".into(),
            name: "search".into(),
            arguments: Object::new(),
            invalid: Some("{".into()),
            provider_data: Some("signature".into()),
        }),
        TranscriptBody::Usage(ReplyUsage {
            usage: Some(Usage { tokens_in: 10, tokens_out: 2, tokens_cached: Some(8), ..Usage::default() }),
            duration_ms: Some(5),
            kind: Some(ReplyKind::CutOff),
            detail: Some("its own limit".into()),
        }),
        TranscriptBody::Usage(ReplyUsage {
            usage: Some(Usage { tokens_in: 10, estimated: true, ..Usage::default() }),
            kind: Some(ReplyKind::Calls),
            ..ReplyUsage::default()
        }),
        TranscriptBody::Usage(ReplyUsage::default()),
        TranscriptBody::ToolResult(ToolResult {
            duration_ms: Some(1),
            ..ToolResult::new("1", Err("no".into()))
        }),
        TranscriptBody::ToolResult(ToolResult {
            images: vec![".cliq/files/dev/.images/1.png".into()],
            ..ToolResult::new("2", Ok("page.png: image/png, 12 bytes".into()))
        }),
        error(FailedCallKind::Passing),
        error(FailedCallKind::TooLong),
        error(FailedCallKind::StaleThinking),
        TranscriptBody::End { text: "Done.".into() },
    ]
}

#[test]
fn written_lines_are_pinned() {
    let ts = WireTime::from(Timestamp::UNIX_EPOCH);
    let lines = all().into_iter().map(|body| TranscriptEntry { ts: ts.clone(), body }.encode());
    insta::assert_snapshot!(String::from_utf8(lines.flatten().collect()).unwrap());
}

#[test]
fn lines_of_newer_versions_are_read() {
    let line = br#"{"ts":"x","type":"tool_result","id":"1","text":"t","new_field":{"a":1}}"#;
    assert!(
        matches!(TranscriptEntry::decode(line).unwrap().body, TranscriptBody::ToolResult(result) if !result.is_error)
    );
    for (line, kind) in [
        (&br#"{"ts":"x","type":"usage","is_cut_off":true}"#[..], Some(ReplyKind::CutOff)),
        (br#"{"ts":"x","type":"usage","kind":"refused"}"#, Some(ReplyKind::Refused)),
        (br#"{"ts":"x","type":"usage","usage":{"tokens_in":3}}"#, None),
    ] {
        let body = TranscriptEntry::decode(line).unwrap().body;
        assert!(matches!(&body, TranscriptBody::Usage(end) if end.kind == kind), "{body:?}");
    }
    for bad in
        [&b"{}"[..], br#"{"ts":"x","type":"unheard-of"}"#, b"", b"[1]", br#"{"ts":"x","type":"tool_call"}"#]
    {
        assert!(TranscriptEntry::decode(bad).is_err());
    }
}

proptest! {
    #[test]
    fn every_entry_survives(at in any::<prop::sample::Index>(), text in ".*", ts in ".*") {
        let mut body = at.get(&all()).clone();
        match &mut body {
            TranscriptBody::Message { text: own, .. } | TranscriptBody::End { text: own } | TranscriptBody::Thinking { text: own, .. } => own.clone_from(&text),
            TranscriptBody::ToolResult(result) => result.text.clone_from(&text),
            TranscriptBody::ToolCall(call) => { call.arguments.insert(text.clone(), json!(text)); }
            _ => {}
        }
        let entry = TranscriptEntry { ts: WireTime::from_text(ts), body };
        let line = entry.encode();
        prop_assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        prop_assert_eq!(TranscriptEntry::decode(&line).unwrap(), entry);
    }
}
