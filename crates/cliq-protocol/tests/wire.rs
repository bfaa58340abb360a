//! The formats as bytes: examples of the protocol are read and written without loss, and snapshots pin what is written.

use std::fs;
use std::path::PathBuf;

use cliq_protocol::{
    AgentMessage, ChannelBody, ChannelMessage, CommandResult, DispatchType, Envelope, Form, GateData,
    Limited, NotifyRequest, PhaseName, ReviewSpec, StreamDecoder, Timestamp, Usage, Verdict, WaitingReview,
};
use serde_json::{Value, json};

fn fixtures(kind: &str) -> Vec<(String, Vec<u8>)> {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/protocol/v1").join(kind);
    let mut files: Vec<_> = fs::read_dir(&dir)
        .expect("fixture directory")
        .map(|entry| {
            let path = entry.expect("entry").path();
            (path.file_name().expect("name").to_string_lossy().into_owned(), fs::read(&path).expect("file"))
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {dir:?}");
    files
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("fixture is JSON")
}

#[test]
fn every_envelope_of_the_seed_round_trips() {
    for (name, bytes) in fixtures("envelopes") {
        let envelope = Envelope::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(json(&envelope.encode()), json(&bytes), "{name}");
    }
}

#[test]
fn every_signal_line_of_the_seed_round_trips() {
    for (name, bytes) in fixtures("signals") {
        let mut lines = Vec::new();
        StreamDecoder::new()
            .feed(&bytes, |line| lines.push(line.message.unwrap_or_else(|e| panic!("{name}: {e}"))));
        let again: Vec<u8> = lines.iter().flat_map(ChannelMessage::encode).collect();
        let values = |bytes: &[u8]| {
            bytes.split(|&b| b == b'\n').filter(|l| !l.is_empty()).map(json).collect::<Vec<_>>()
        };
        assert_eq!(values(&again), values(&bytes), "{name}");
    }
}

#[test]
fn every_dispatch_message_round_trips() {
    for (name, bytes) in fixtures("messages") {
        let message = AgentMessage::decode(&bytes).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(json(&message.encode()), json(&bytes), "{name}");
    }
}

#[test]
fn dispatch_messages_may_grow_fields() {
    for (name, bytes) in fixtures("messages") {
        let before = AgentMessage::decode(&bytes).unwrap();
        let mut value = json(&bytes);
        value["added_later"] = json!({"x": 1});
        if let Some(phase) = value.get_mut("phase") {
            phase["added_later"] = json!([1]);
        }
        let after =
            AgentMessage::decode(value.to_string().as_bytes()).unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(after, before, "{name}");
    }
}

fn name(text: &str) -> PhaseName {
    PhaseName::parse(text).expect("a name")
}

#[test]
fn written_formats_are_pinned() {
    let data = GateData {
        verdict: Verdict::route(name("developer"), "2 of 12 tests fail"),
        checks: vec![CommandResult {
            name: "npm test".into(),
            pass: false,
            run: Some("npm test".into()),
            exit_code: Some(1),
            duration_ms: Some(812),
            skipped: Some(false),
            output_tail: Some("2 failing\n".into()),
            log_file: Some("logs/reviewer.1.1-npm-test.log".into()),
            extra: Default::default(),
        }],
        iteration: 1,
        max_iterations: 3,
        extra: Default::default(),
    };
    let gate = Envelope::gate(name("reviewer"), "rules", data);
    insta::assert_snapshot!("gate_envelope", String::from_utf8(gate.encode()).unwrap());
    let data = json!({"version": "2.1.0"}).as_object().cloned();
    let standard = Envelope::standard(name("analyzer"), "cursor", data, Some("Deploy.".into()));
    insta::assert_snapshot!("standard_envelope", String::from_utf8(standard.encode()).unwrap());
    let partial = Envelope { limited: Some(Limited::new("max_turns", 3)), ..standard };
    let written = json(&partial.encode());
    assert_eq!(written["limited"], json!({"limit": "max_turns", "value": 3}));
    assert_eq!(Envelope::from_value(written).unwrap(), partial);

    let usage = Usage {
        provider: Some("anthropic".into()),
        model: Some("claude-sonnet-4-5".into()),
        tokens_in: 1200,
        tokens_out: 300,
        tokens_cached: Some(1000),
        cost_usd: Some(0.0081),
        ..Usage::default()
    };
    let waiting = WaitingReview {
        id: "0123456789abcdef0123456789abcdef".into(),
        reviewers: vec!["ann".into()],
        since: Timestamp::UNIX_EPOCH.into(),
        until: Timestamp::from_unix_millis(86_400_000).into(),
        due: Some(Timestamp::from_unix_millis(3_600_000).into()),
        others: vec!["fedcba9876543210fedcba9876543210".into()],
        page: Some("http://localhost:4100/reviews/0123456789abcdef0123456789abcdef".into()),
        route_targets: vec![name("developer")],
        inputs: Form::from_value(json!([{"name": "version", "required": true}]), "inputs").unwrap(),
        asks: Some("claude-agent asks for permission: execute: cargo test".into()),
        answer: Some("ann allowed it once".into()),
    };
    let bodies = [
        ChannelBody::Ok,
        ChannelBody::Progress { message: Some("half\nway".into()), usage: None, review: None },
        ChannelBody::Notify(NotifyRequest {
            id: None,
            agent: "slack".into(),
            channel: Some("elan".into()),
            event: "hug_review".into(),
            payload: Some(json!({"url": "x"})),
            extra: Default::default(),
        }),
        ChannelBody::Complete { result: Some(json!({"verdict": Verdict::pass("green").to_value()})) },
        ChannelBody::Progress { message: None, usage: Some(Box::new(usage.clone())), review: None },
        ChannelBody::Error { error: "no model".into(), usage: None, limited: None },
        ChannelBody::Progress {
            message: Some("waits for ann".into()),
            usage: None,
            review: Some(Box::new(waiting)),
        },
        ChannelBody::Notify(NotifyRequest {
            id: Some("n-1".into()),
            agent: "webhook".into(),
            channel: None,
            event: "hug_reminder".into(),
            payload: None,
            extra: Default::default(),
        }),
        ChannelBody::Error { error: "no verdict".into(), usage: Some(Box::new(usage)), limited: None },
        ChannelBody::Error {
            error: "stopped at max_turns (3)".into(),
            usage: None,
            limited: Some(Limited::new("max_turns", 3)),
        },
    ];
    let ts = Timestamp::from_unix_millis(1_780_034_654_222);
    let lines: Vec<u8> = bodies
        .into_iter()
        .flat_map(|body| ChannelMessage::new(ts, DispatchType::Phase, body).encode())
        .collect();
    insta::assert_snapshot!("channel_messages", String::from_utf8(lines).unwrap());
    let (_, phase) = fixtures("messages").into_iter().find(|(n, _)| n == "gate.json").unwrap();
    let message = AgentMessage::decode(&phase).unwrap();
    insta::assert_snapshot!("dispatch_message", String::from_utf8(message.encode()).unwrap());
}

#[test]
fn errors_name_the_field_and_what_was_expected() {
    let cases = [
        json!([]),
        json!({}),
        json!({"version": 2}),
        json!({"version": "1", "phase_type": "standard"}),
        json!({"version": 1, "phase_type": "human"}),
        json!({"version": 1, "phase_type": "standard"}),
        json!({"version": 1, "phase_type": "standard", "phase": "A--b", "agent": "x"}),
        json!({"version": 1, "phase_type": "standard", "phase": "a", "agent": 7}),
        json!({"version": 1, "phase_type": "standard", "phase": "a", "agent": "x", "data": [1]}),
        json!({"version": 1, "phase_type": "standard", "phase": "a", "agent": "x", "text": {"a": 1}}),
        json!({"version": 1, "phase_type": "gate", "phase": "a", "agent": "x"}),
        json!({"version": 1, "phase_type": "gate", "phase": "a", "agent": "x", "data": {"verdict": {"outcome": "pass"}}}),
        json!({"version": 1, "phase_type": "gate", "phase": "a", "agent": "x", "data": {"verdict": {"outcome": "ROUTE"}}}),
        json!({"version": 1, "phase_type": "gate", "phase": "a", "agent": "x",
               "data": {"verdict": "PASS", "checks": [{"name": "t"}], "iteration": 1, "max_iterations": 3}}),
        json!({"version": 1, "phase_type": "gate", "phase": "a", "agent": "x",
               "data": {"verdict": "PASS", "checks": [], "iteration": -1, "max_iterations": 3}}),
    ];
    let errors: Vec<String> =
        cases.into_iter().map(|case| Envelope::from_value(case).unwrap_err().to_string()).collect();
    insta::assert_snapshot!(errors.join("\n"));
    insta::assert_snapshot!(Envelope::decode(b"{\"version\": 1,\n oops}").unwrap_err().to_string(), @"not JSON: key must be a string (line 2, column 2)");
}

#[test]
fn verdicts_have_a_text_form() {
    for text in ["PASS", "ROUTE:developer", "ESCALATE"] {
        let verdict: Verdict = text.parse().unwrap();
        assert_eq!(verdict.to_string(), text);
        assert_eq!(Verdict::from_value(json!(text)).unwrap(), verdict);
    }
    for text in ["", "pass", "ROUTE", "ROUTE:", "ROUTE:a--b", "PASS now", "ROUTE:../etc"] {
        assert!(text.parse::<Verdict>().is_err(), "{text:?}");
    }
}

#[test]
fn phase_names_are_path_segments() {
    for good in ["a", "7", "security-auditor", "a_b", "a-_b", &"x".repeat(64)] {
        assert!(PhaseName::parse(good).is_ok(), "{good}");
    }
    for bad in ["", "-a", "a-", "_a", "a_", "A", "a--b", "a b", "a/b", "..", "ü", "a\n", &"x".repeat(65)] {
        assert!(PhaseName::parse(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn review_blocks() {
    let read = |block: serde_json::Value| ReviewSpec::from_value(block).map(|spec| spec.to_value());
    insta::assert_json_snapshot!(
        "review_block",
        read(json!({
            "reviewer": ["ann", {"policy": "all", "members": ["bob", {"members": ["cleo", "dan"]}]}, "eve"],
            "artifacts": "docs/*.md", "timeout": "48h", "remind_every": "90m",
            "inputs": [
                {"name": "version", "label": "Version", "required": true, "help": "As in the tag."},
                {"name": "count", "type": "number", "default": "3"},
                {"name": "sure", "type": "boolean", "default": "yes"},
                {"name": "channel", "choices": ["stable", "beta"], "default": "beta"},
                {"name": "notes", "type": "textarea"},
            ],
        }))
        .unwrap()
    );
    assert_eq!(read(json!({"reviewer": "ann"})).unwrap(), json!({"reviewer": "ann", "timeout": "1d"}));
    let wrong = [
        json!({}),
        json!({"reviewer": []}),
        json!({"reviewer": " "}),
        json!({"reviewer": 7}),
        json!({"reviewer": {"policy": "most", "members": ["a"]}}),
        json!({"reviewer": {"policy": "any"}}),
        json!({"reviewer": {"members": ["a"], "channels": []}}),
        json!({"reviewer": "a", "timeout": "soon"}),
        json!({"reviewer": "a", "artifacts": [1]}),
        json!({"reviewer": "a", "inputs": [{"name": "Big"}]}),
        json!({"reviewer": "a", "inputs": [{"name": "a"}, {"name": "a"}]}),
        json!({"reviewer": "a", "inputs": [{"name": "a", "type": "select"}]}),
        json!({"reviewer": "a", "inputs": [{"name": "a", "type": "number", "default": "x"}]}),
        json!({"reviewer": "a", "inputs": [{"name": "a", "kind": "text"}]}),
        json!({"reviewer": "a", "who": "b"}),
    ];
    let said: Vec<String> = wrong.into_iter().map(|block| read(block).unwrap_err().to_string()).collect();
    insta::assert_snapshot!("review_block_errors", said.join("\n"));
}
