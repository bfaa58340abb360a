//! Small values of the wire: names, kinds, times, durations, usage, lines.

use std::collections::HashMap;
use std::time::Duration;

use cliq_protocol::{
    Budget, ChannelBody, ChannelMessage, CommandResult, Envelope, EnvelopeType, Line, LineFault,
    MAX_LINE_BYTES, PhaseKind, PhaseName, StreamDecoder, Timestamp, Usage, WireTime, format_duration,
    parse_duration,
};
use serde_json::json;

#[test]
fn phase_names_compare_with_texts() {
    let name = PhaseName::parse("dev").unwrap();
    assert_eq!((name.as_str(), AsRef::<str>::as_ref(&name)), ("dev", "dev"));
    assert!(name == *"dev" && name == "dev" && name != *"qa" && name != "qa");
    assert_eq!(format!("{name} {name:?}"), "dev \"dev\"");
    let map = HashMap::from([(name, 1)]);
    assert_eq!((map.get("dev"), map.get("qa")), (Some(&1), None));
}

#[test]
fn kinds_have_fixed_words() {
    let words = ["standard", "gate", "hug", "exec", "pull", "push", "team"];
    for (kind, word) in PhaseKind::ALL.into_iter().zip(words) {
        assert_eq!((kind.as_str(), kind.to_string(), format!("{kind:>9}").len()), (word, word.to_owned(), 9));
        assert_eq!(serde_json::to_value(kind).unwrap(), word);
        assert_eq!(kind.is_gate(), ["gate", "hug"].contains(&word));
        let written = match word {
            "gate" | "hug" => EnvelopeType::Gate,
            "team" => EnvelopeType::Team,
            _ => EnvelopeType::Standard,
        };
        assert_eq!(kind.envelope_type(), written);
    }
}

#[test]
fn times_are_read_and_written() {
    for (millis, text) in [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_500, "1970-01-01T00:00:01.500Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
    ] {
        let time = Timestamp::from_unix_millis(millis);
        assert_eq!(text.parse(), Ok(time));
        assert_eq!(WireTime::from_text(text).time(), Some(time));
        assert_eq!((time.to_string(), format!("{time:>30}").len()), (text.to_owned(), 30));
    }
    assert!(Timestamp::from_unix_millis(i64::MIN).to_string().starts_with("-00"));
    assert!(Timestamp::from_unix_millis(i64::MAX).to_string().starts_with("9999-"));
    assert_eq!(WireTime::from_text("soon").time(), None);
}

#[test]
fn durations_use_the_largest_unit() {
    for (seconds, text) in [
        (1, "1s"),
        (61, "61s"),
        (60, "1m"),
        (2700, "45m"),
        (3600, "1h"),
        (5400, "90m"),
        (28_800, "8h"),
        (172_800, "2d"),
    ] {
        assert_eq!(format_duration(Duration::from_secs(seconds)), text);
        assert_eq!(parse_duration(text), Ok(Duration::from_secs(seconds)));
    }
    assert_eq!(format_duration(Duration::from_millis(999)), "0s");
    for wrong in ["", "s", "1", "1x", "-1s", "1.5h", "0s", "a1s", "1 s", "99999999999999999999s", "3651d"] {
        assert!(parse_duration(wrong).is_err(), "{wrong}");
    }
    assert_eq!(parse_duration("3650d"), Ok(Duration::from_secs(3650 * 86_400)));
}

#[test]
fn budgets_override_each_other_by_part() {
    let (none, tokens, usd) =
        (Budget::default(), Budget { tokens: Some(7), usd: None }, Budget { tokens: None, usd: Some(0.5) });
    let both = Budget { tokens: Some(7), usd: Some(0.5) };
    assert!(none.is_unlimited());
    assert!([tokens, usd, both].iter().all(|budget| !budget.is_unlimited()));
    assert_eq!(tokens.overridden_by(usd), both);
    assert_eq!(both.overridden_by(none), both);
    assert_eq!(
        both.overridden_by(Budget { tokens: Some(9), usd: None }),
        Budget { tokens: Some(9), usd: Some(0.5) }
    );
}

#[test]
fn usage_is_read_from_json() {
    let usage: Usage =
        serde_json::from_value(json!({"tokens_in": 3, "tokens_out": 4, "model": "m"})).unwrap();
    assert_eq!((usage.tokens_in, usage.tokens_out, usage.model.as_deref()), (3, 4, Some("m")));
    assert!(serde_json::from_value::<Usage>(json!({"tokens_in": -3})).is_err());
}

#[test]
fn commands_are_labelled_with_their_repository() {
    let mut result = CommandResult::new("test", false);
    assert_eq!((result.label(), result.was_skipped()), ("test".to_owned(), false));
    result.extra.insert("repo".to_owned(), "web".into());
    result.skipped = Some(false);
    assert_eq!((result.label(), result.was_skipped()), ("test in web".to_owned(), false));
    result.skipped = Some(true);
    assert!(result.was_skipped());
}

#[test]
fn envelopes_have_data_of_their_type() {
    let value =
        json!({"version": 1, "phase_type": "standard", "phase": "dev", "agent": "a", "data": {"x": 1}});
    let envelope = Envelope::from_value(value.clone()).unwrap();
    assert_eq!(envelope.data().unwrap()["x"], 1);
    assert_eq!(envelope.to_value(), value);
    let without = json!({"version": 1, "phase_type": "team", "phase": "dev", "agent": "a"});
    assert_eq!(Envelope::from_value(without).unwrap().data(), None);
}

fn progress(version: u32, message: &str) -> Result<ChannelMessage, String> {
    let line =
        json!({"ts": "t", "version": version, "type": "phase", "status": "progress", "message": message});
    ChannelMessage::decode(line.to_string().as_bytes()).map_err(|error| error.to_string())
}

#[test]
fn progress_lines_keep_their_message_and_version() {
    let decoded = progress(1, "half").unwrap();
    assert!(matches!(&decoded.body, ChannelBody::Progress { message: Some(text), .. } if text == "half"));
    assert!(!decoded.body.is_terminal());
    let refused = progress(2, "half").unwrap_err();
    assert!(refused.contains("version"), "{refused}");
    for (status, is_terminal) in [("ok", false), ("complete", true)] {
        let line = json!({"ts": "t", "version": 1, "type": "phase", "status": status}).to_string();
        assert_eq!(ChannelMessage::decode(line.as_bytes()).unwrap().body.is_terminal(), is_terminal);
    }
}

/// A limit that cannot be read must not hide the error that it belongs to; in a handoff it is an error itself.
#[test]
fn limit_is_read_from_errors_and_handoffs() {
    for (limited, is_read) in [
        (json!({"limit": "max_turns", "value": 3}), true),
        (json!({"limit": "error_max_turns"}), true),
        (json!({"value": 3}), false),
        (json!(true), false),
    ] {
        let line = json!({"ts": "t", "version": 1, "type": "phase", "status": "error", "error": "no", "limited": limited});
        let decoded = ChannelMessage::from_value(line.clone()).unwrap();
        assert_eq!(decoded.to_value(), line);
        let ChannelBody::Error { error, limited: read, .. } = &decoded.body else { panic!("{decoded:?}") };
        assert_eq!((error.as_str(), read.is_some()), ("no", is_read));
        let handoff =
            json!({"version": 1, "phase_type": "standard", "phase": "a", "agent": "x", "limited": limited});
        match Envelope::from_value(handoff.clone()) {
            Ok(envelope) => assert_eq!((envelope.to_value(), is_read), (handoff, true)),
            Err(error) => assert!(!is_read && error.to_string().contains("limited"), "{error}"),
        }
    }
}

/// A result without a usage stays as it is, also if it is empty.
#[test]
fn result_of_an_error_is_kept() {
    for (result, has_usage) in [
        (json!({}), false),
        (json!({"a": 1}), false),
        (json!({"usage": {"tokens_in": 1, "tokens_out": 2}}), true),
    ] {
        let line = json!({"ts": "t", "version": 1, "type": "phase", "status": "error", "error": "no", "result": result});
        let decoded = ChannelMessage::from_value(line.clone()).unwrap();
        assert_eq!(decoded.to_value(), line);
        let ChannelBody::Error { usage, .. } = &decoded.body else { panic!("{decoded:?}") };
        assert_eq!(usage.is_some(), has_usage);
    }
}

fn lines(decoder: &mut StreamDecoder, bytes: &[u8]) -> Vec<Line> {
    let mut lines = Vec::new();
    decoder.feed(bytes, |line| lines.push(line));
    lines
}

#[test]
fn lines_over_the_limit_are_reported_once_and_not_kept() {
    assert_eq!(MAX_LINE_BYTES, 16_777_216);
    let text = json!({"ts": "t", "version": 1, "type": "phase", "status": "ok"}).to_string();
    let limit = text.len();
    for (line, is_read) in [(text.clone(), true), (format!("{text}\r"), true), (format!("{text} "), false)] {
        for cut in [1, 2, limit - 1, limit, limit + 1] {
            let mut decoder = StreamDecoder::with_limit(limit);
            let whole = format!("{line}\n{text}\n");
            let mut read = Vec::new();
            for chunk in whole.as_bytes().chunks(cut) {
                read.extend(lines(&mut decoder, chunk));
            }
            assert_eq!(read.len(), 2, "{cut}: {read:?}");
            assert_eq!(read[0].message.is_ok(), is_read, "{cut}: {line:?}");
            assert!(is_read || read[0].message == Err(LineFault::TooLong { limit }));
            assert!(read[1].message.is_ok() && read[1].offset == line.len() as u64 + 1);
            assert_eq!(decoder.offset(), whole.len() as u64);
        }
    }
    // The rest of a line that is already too long needs no memory.
    let mut decoder = StreamDecoder::with_limit(10);
    for _ in 0..100 {
        assert!(lines(&mut decoder, &[b'x'; 1000]).is_empty());
        assert!(format!("{decoder:?}").len() < 200, "it is kept: {decoder:?}");
    }
    assert_eq!(lines(&mut decoder, b"\n").len(), 1);
}
