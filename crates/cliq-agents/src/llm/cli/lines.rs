//! Reader for output lines of vendors' programs. Pure.
//!
//! Wrappers and shells print around the lines of a program: banners, a byte order mark, control sequences for the terminal's title. Text
//! that is not Unicode is read with U+FFFD.

use cliq_protocol::lenient_json;
use serde_json::Value;

/// Returns the objects in a line: one, or those of a list. Returns `None` for a line that is not from the program.
pub(super) fn objects(line: &[u8]) -> Option<Vec<Value>> {
    match lenient_json(without_prefix(line)).ok()? {
        value @ Value::Object(_) => Some(vec![value]),
        Value::Array(values) if !values.is_empty() && values.iter().all(Value::is_object) => Some(values),
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// Returns a line without a byte order mark, control sequences and white space at its beginning.
fn without_prefix(mut line: &[u8]) -> &[u8] {
    loop {
        line = line.trim_ascii_start();
        line = match line {
            [0xEF, 0xBB, 0xBF, rest @ ..] => rest,
            [0x1B, b']', rest @ ..] => after(rest, |rest| match rest {
                [0x07, ..] => Some(1),
                [0x1B, b'\\', ..] => Some(2),
                _ => None,
            }),
            [0x1B, b'[', rest @ ..] => {
                after(rest, |rest| rest.first().filter(|byte| (0x40..=0x7E).contains(*byte)).map(|_| 1))
            }
            _ => return line,
        };
    }
}

/// Returns the bytes after the first place at which `end` returns a length, or nothing.
fn after(line: &[u8], end: impl Fn(&[u8]) -> Option<usize>) -> &[u8] {
    let place = (0..line.len()).find_map(|at| Some(at + end(&line[at..])?));
    place.map_or(&[], |at| &line[at..])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_read_whatever_is_around_them() {
        for line in [
            &br#"{"a": "x"}"#[..],
            b"  {\"a\": \"x\"}\r",
            b"\xEF\xBB\xBF{\"a\": \"x\"}",
            b"\x1b]0;claude\x07{\"a\": \"x\"}",
            b"\x1b]0;claude\x1b\\\x1b[2K\x1b[?25h{\"a\": \"x\"}",
            br#"[{"a": "x"}]"#,
        ] {
            assert_eq!(objects(line), Some(vec![json!({"a": "x"})]), "{}", line.escape_ascii());
        }
        for (line, text) in [
            (&br#"{"a": "x \ud83d"}"#[..], "x \u{FFFD}"),
            (b"{\"a\": \"caf\xe9\"}", "caf\u{FFFD}"),
            (b"{\"a\": \"\xed\xa0\xbd\"}", "\u{FFFD}\u{FFFD}\u{FFFD}"),
        ] {
            assert_eq!(objects(line), Some(vec![json!({ "a": text })]), "{}", line.escape_ascii());
        }
        assert_eq!(objects(br#"[{"a": 1}, {"b": 2}]"#).map(|list| list.len()), Some(2));
        for noise in [
            &b""[..],
            b"Now using node v20.1.0",
            b"[MCP] {\"not\": json",
            b"12",
            b"null",
            b"\"text\"",
            b"[]",
            b"[1, {}]",
            b"{\"a\": 1} and more",
            b"caf\xe9",
            b"\x1b]0;never closed {\"a\": 1}",
        ] {
            assert_eq!(objects(noise), None, "{}", noise.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_noise(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = objects(&bytes);
        }
    }
}
