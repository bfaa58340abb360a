//! Lines of a transcript for those who follow a delegated run. Pure.
//!
//! Thoughts and prompts are left out. Results of tools are counted and not quoted: they contain files of the workspace.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_protocol::{FailedCall, Object, Role, TranscriptBody, TranscriptEntry};
use serde_json::{Value, json};

/// Names of arguments that show what a tool call is about, most telling first.
const TELLING: [&str; 8] = ["path", "file_path", "command", "pattern", "query", "url", "message", "name"];
/// Maximum number of characters of a text in an event, and of an argument in a line.
const MAX_TEXT: usize = 500;
const MAX_ARGUMENT: usize = 200;

/// Translation of an entry.
#[derive(Debug, PartialEq)]
pub(super) struct Shown {
    /// Lines for people.
    pub(super) lines: Vec<String>,
    /// The entry for programs, with its texts shortened.
    pub(super) event: Value,
}

/// Translates a line of a transcript. Returns `None` for lines that callers do not get, and for those that are not entries.
pub(super) fn translate(line: &[u8]) -> Option<Shown> {
    let entry = TranscriptEntry::decode(line).ok()?;
    let (lines, mut event) = match entry.body {
        TranscriptBody::Message { role: Role::Assistant, text, .. } => {
            let lines = text.lines().map(str::to_owned).collect();
            (lines, json!({"type": "message", "text": shorten(&text)}))
        }
        TranscriptBody::ToolCall(call) => {
            let about = argument(&call.arguments);
            let line = format!("→ {} {about}", call.name);
            let arguments: Object =
                call.arguments.iter().map(|(name, value)| (name.clone(), short_value(value))).collect();
            let event =
                json!({"type": "tool_call", "id": call.id, "name": call.name, "arguments": arguments});
            (vec![line.trim_end().to_owned()], event)
        }
        TranscriptBody::ToolResult(result) => {
            let count = result.text.lines().count();
            let line = match (result.is_error, count) {
                (true, _) => {
                    format!("✗ {}", cut(result.text.lines().next().unwrap_or("failed"), MAX_ARGUMENT))
                }
                (false, 1) => "✓ 1 line".to_owned(),
                (false, count) => format!("✓ {count} lines"),
            };
            let event = json!({"type": "tool_result", "id": result.id, "is_error": result.is_error, "lines": count,
                "duration_ms": result.duration_ms});
            (vec![line], event)
        }
        TranscriptBody::Permission(asked) => {
            let about = cut(&asked.title, MAX_ARGUMENT);
            let line = format!("? {} {}: {about}", asked.decision.as_str(), asked.kind);
            let event = json!({"type": "permission", "id": asked.id, "kind": asked.kind, "title": shorten(&asked.title),
                "decision": asked.decision, "reason": shorten(&asked.reason)});
            (vec![line], event)
        }
        TranscriptBody::Error(FailedCall { message, kind, .. }) => {
            let line = format!("✗ {}", cut(message.lines().next().unwrap_or("error"), MAX_ARGUMENT));
            (
                vec![line],
                json!({"type": "error", "message": shorten(&message), "is_retried": kind.is_retried()}),
            )
        }
        TranscriptBody::Notice { text } => {
            (vec![cut(&text, MAX_TEXT)], json!({"type": "notice", "text": shorten(&text)}))
        }
        TranscriptBody::Start(_)
        | TranscriptBody::Message { role: Role::System | Role::User, .. }
        | TranscriptBody::Thinking { .. }
        | TranscriptBody::Usage(_)
        | TranscriptBody::End { .. } => return None,
    };
    event["ts"] = entry.ts.to_string().into();
    Some(Shown { lines, event })
}

/// The argument that tells most about a call: its first line.
fn argument(arguments: &Object) -> String {
    let named = TELLING.iter().find_map(|name| arguments.get(*name)?.as_str());
    let any = || arguments.values().find_map(Value::as_str);
    cut(named.or_else(any).and_then(|text| text.lines().next()).unwrap_or_default(), MAX_ARGUMENT)
}

fn short_value(value: &Value) -> Value {
    match value {
        Value::String(text) => shorten(text).into(),
        Value::Array(_) | Value::Object(_) => shorten(&value.to_string()).into(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn shorten(text: &str) -> String {
    cut(text, MAX_TEXT)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(body: &Value) -> Option<Shown> {
        let mut entry = body.clone();
        entry["ts"] = "2026-01-01T00:00:00.000Z".into();
        translate(format!("{entry}\n").as_bytes())
    }

    fn lines(body: &Value) -> Vec<String> {
        shown(body).map(|shown| shown.lines).unwrap_or_default()
    }

    #[test]
    fn tool_calls_and_results_become_lines() {
        for (arguments, line) in [
            (json!({"path": "src/main.rs", "limit": 5}), "→ Read src/main.rs"),
            (json!({"file_path": "a\nb"}), "→ Read a"),
            (json!({"x": 1, "other": "y"}), "→ Read y"),
            (json!({}), "→ Read"),
        ] {
            let call = json!({"type": "tool_call", "id": "1", "name": "Read", "arguments": arguments});
            assert_eq!(lines(&call), [line]);
        }
        let result = |text: &str, is_error: bool| {
            lines(&json!({"type": "tool_result", "id": "1", "text": text, "is_error": is_error}))
        };
        assert_eq!(result("a\nb\nc\n", false), ["✓ 3 lines"]);
        assert_eq!(result("a", false), ["✓ 1 line"]);
        assert_eq!(result("", false), ["✓ 0 lines"]);
        assert_eq!(result("no such file\nx", true), ["✗ no such file"]);
        let message = json!({"type": "message", "role": "assistant", "text": "one\ntwo"});
        assert_eq!(lines(&message), ["one", "two"]);
    }

    #[test]
    fn events_have_no_content_of_files_and_no_thoughts() {
        let result = json!({"type": "tool_result", "id": "1", "text": "SECRET\n"});
        let event = shown(&result).unwrap().event;
        assert_eq!((&event["lines"], event.to_string().contains("SECRET")), (&json!(1), false), "{event}");
        let long = "x".repeat(10_000);
        let call = json!({"type": "tool_call", "id": "1", "name": "Write", "arguments": {"content": long, "list": [long], "n": 1}});
        let shown_call = shown(&call).unwrap();
        assert!(shown_call.event.to_string().len() < 2500 && shown_call.lines[0].chars().count() < 250);
        for hidden in [
            json!({"type": "thinking", "text": "hm"}),
            json!({"type": "message", "role": "user", "text": "the prompt"}),
            json!({"type": "end", "text": "done"}),
            json!({"type": "usage"}),
            json!({"type": "of a later version"}),
        ] {
            assert_eq!(shown(&hidden), None, "{hidden}");
        }
        for line in ["", "\n", "x", "{}", "[1]", "\u{0}"] {
            assert_eq!(translate(line.as_bytes()), None, "{line:?}");
        }
    }
}
