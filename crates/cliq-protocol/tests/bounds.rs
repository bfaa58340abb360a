//! Bounds of the decoders: inputs of 1 MiB, whose decoding in more than linear time would run into the limit of a test, give short errors.

use cliq_protocol::{
    AgentMessage, ChannelMessage, Envelope, Form, PhaseName, Reviewers, Sandbox, StreamDecoder,
    TranscriptEntry, Usage, Verdict, parse_duration,
};
use serde_json::{Value, json};

const SIZE: usize = 1 << 20;
/// Maximum size of an error in bytes.
const ERROR: usize = 1000;

/// Texts of 1 MiB that begin like documents.
fn documents() -> Vec<String> {
    let fill = |piece: &str| piece.repeat(SIZE / piece.len());
    let mut found: Vec<String> =
        ["[", "{\"a\":", "\"", "\\ud83d", "a", "0", "{}", "\u{e4}"].map(fill).to_vec();
    let long = fill("x");
    for field in [
        "version",
        "type",
        "status",
        "ts",
        "phase",
        "phase_type",
        "agent",
        "data",
        "verdict",
        "reason",
        "id",
        "role",
    ] {
        let valid = json!({"version": 1, "type": "phase", "status": "ok", "ts": "2026-01-01T00:00:00.000Z", "phase_type": "gate",
            "phase": "a", "agent": "a", "data": {}, "text": "t"});
        for value in [json!(long), json!([[long]]), json!({ long.clone(): 1 })] {
            let mut document = valid.clone();
            document[field] = value;
            found.push(document.to_string());
        }
    }
    found.push(json!({ "verdict": {"outcome": long, "target": long} }).to_string());
    found.push(
        json!({"type": "tool_call", "ts": "2026-01-01T00:00:00.000Z", "id": 1, "name": long}).to_string(),
    );
    found
}

fn check<T>(name: &str, document: &str, result: Result<T, impl std::fmt::Display>) {
    if let Err(error) = result {
        let error = error.to_string();
        assert!(error.len() <= ERROR, "{name}: {} bytes for {}…", error.len(), &document[..60]);
    }
}

#[test]
fn large_documents_take_linear_time_and_give_short_errors() {
    for document in documents() {
        let bytes = document.as_bytes();
        check("envelope", &document, Envelope::decode(bytes));
        check("channel message", &document, ChannelMessage::decode(bytes));
        check("agent message", &document, AgentMessage::decode(bytes));
        check("transcript entry", &document, TranscriptEntry::decode(bytes));
        check("phase name", &document, PhaseName::parse(&document));
        check("duration", &document, parse_duration(&document));
        let Ok(value) = serde_json::from_str::<Value>(&document) else { continue };
        check("verdict as JSON", &document, Verdict::from_value(value.clone()));
        check("usage", &document, Usage::read(value.clone(), "usage"));
        check("sandbox", &document, Sandbox::from_value(value.clone(), "sandbox"));
        check("reviewers", &document, Reviewers::from_value(value.clone(), "reviewers"));
        check("form", &document, Form::from_value(value, "form"));
    }
}

#[test]
fn streams_are_cut_into_lines_in_linear_time() {
    for piece in ["\n", "{}\n", "x", "{\"ts\":\"\"}\r\n"] {
        let mut decoder = StreamDecoder::with_limit(1 << 20);
        let stream = piece.repeat(SIZE / piece.len());
        for chunk in stream.as_bytes().chunks(100) {
            decoder.feed(chunk, |line| check("line", &stream, line.message));
        }
    }
}
