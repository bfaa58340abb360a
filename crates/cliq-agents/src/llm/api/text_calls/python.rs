//! Reader for calls and literals in the syntax of Python: `search(pattern="x", ignore_case=True)`. Pure.
//!
//! Time is linear in the size of the text, and the depth of values is at most [`DEPTH`].

use cliq_protocol::Object;
use serde_json::{Number, Value};

/// Maximum depth of a value.
const DEPTH: usize = 64;

/// Reads a call at the start of a text. Returns its name, its arguments, and the position after it. Positional arguments are not
/// supported: the names of parameters are not known.
pub(super) fn call(text: &str) -> Option<(&str, Object, usize)> {
    let name_end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-')))?;
    let name = &text[..name_end];
    if name.is_empty() || !text[name_end..].starts_with('(') {
        return None;
    }
    let mut reader = Reader { text, at: name_end + 1 };
    let mut arguments = Object::new();
    loop {
        reader.skip_space();
        if reader.take(')') {
            return Some((name, arguments, reader.at));
        }
        let rest = reader.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
        let key = &rest[..end];
        reader.at += end;
        reader.skip_space();
        if key.is_empty() || !reader.take('=') {
            return None;
        }
        let value = reader.value(0)?;
        arguments.insert(key.to_owned(), value);
        reader.skip_space();
        if !reader.take(',') && !reader.rest().starts_with(')') {
            return None;
        }
    }
}

/// Reads a literal at the start of a text, of Python or JSON. Returns it with the position after it.
pub(super) fn literal(text: &str) -> Option<(Value, usize)> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    Some((value, reader.at))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn take(&mut self, c: char) -> bool {
        let is_next = self.rest().starts_with(c);
        if is_next {
            self.at += c.len_utf8();
        }
        is_next
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH {
            return None;
        }
        self.skip_space();
        match self.rest().chars().next()? {
            '[' | '(' => self.list(depth),
            '{' => self.map(depth),
            '"' | '\'' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        let close = if self.rest().starts_with('[') { ']' } else { ')' };
        self.at += 1;
        let mut items = Vec::new();
        loop {
            self.skip_space();
            if self.take(close) {
                return Some(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_space();
            if !self.take(',') && !self.rest().starts_with(close) {
                return None;
            }
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.at += 1;
        let mut map = Object::new();
        loop {
            self.skip_space();
            if self.take('}') {
                return Some(Value::Object(map));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.skip_space();
            if !self.take(',') && !self.rest().starts_with('}') {
                return None;
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let rest = self.rest();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let triple = if quote == '"' { "\"\"\"" } else { "'''" };
        let mark = if rest.starts_with(triple) { triple } else { &triple[..1] };
        self.at += mark.len();
        let mut out = String::new();
        loop {
            let rest = self.rest();
            if rest.starts_with(mark) {
                self.at += mark.len();
                return Some(out);
            }
            let c = rest.chars().next()?;
            self.at += c.len_utf8();
            if c != '\\' {
                out.push(c);
                continue;
            }
            let escape = self.rest().chars().next()?;
            self.at += escape.len_utf8();
            match escape {
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'r' => out.push('\r'),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                '0' => out.push('\0'),
                '\n' => {}
                'x' => out.push(self.code(2)?),
                'u' => {
                    let unit = self.unit(4)?;
                    let low = self
                        .rest()
                        .strip_prefix("\\u")
                        .and_then(|rest| u32::from_str_radix(rest.get(..4)?, 16).ok());
                    match (unit, low) {
                        (0xD800..=0xDBFF, Some(low @ 0xDC00..=0xDFFF)) => {
                            self.at += 6;
                            out.push(
                                char::from_u32(0x1_0000 + ((unit - 0xD800) << 10) + (low - 0xDC00))
                                    .unwrap_or('\u{fffd}'),
                            );
                        }
                        _ => out.push(char::from_u32(unit).unwrap_or('\u{fffd}')),
                    }
                }
                'U' => out.push(self.code(8)?),
                '\\' | '"' | '\'' | '/' => out.push(escape),
                other => out.extend(['\\', other]),
            }
        }
    }

    fn unit(&mut self, digits: usize) -> Option<u32> {
        let unit = u32::from_str_radix(self.rest().get(..digits)?, 16).ok()?;
        self.at += digits;
        Some(unit)
    }

    fn code(&mut self, digits: usize) -> Option<char> {
        self.unit(digits).map(|unit| char::from_u32(unit).unwrap_or('\u{fffd}'))
    }

    fn word(&mut self) -> Option<Value> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        self.at += end;
        match word {
            "True" | "true" => Some(Value::Bool(true)),
            "False" | "false" => Some(Value::Bool(false)),
            "None" | "null" => Some(Value::Null),
            number if number.len() <= 40 => number.parse::<Number>().ok().map(Value::Number),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn calls_and_literals_are_read() {
        let (name, arguments, end) =
            call("edit_file(path='a.rs', old=\"x\\n\", n=3, f=-1.5, all=True, none=None, list=[1, (2,)], map={'k': \"v\"}) rest").expect("a call");
        assert_eq!(name, "edit_file");
        assert_eq!(
            Value::Object(arguments),
            json!({"path": "a.rs", "old": "x\n", "n": 3, "f": -1.5, "all": true, "none": null, "list": [1, [2]], "map": {"k": "v"}})
        );
        assert_eq!(end, 99);
        assert_eq!(call("f()").map(|(_, arguments, end)| (arguments.len(), end)), Some((0, 3)));
        assert_eq!(literal("'''a'b\n'''").map(|(value, _)| value), Some(json!("a'b\n")));
        assert_eq!(
            literal("{\"a\": 'raw\nline \\ud83d\\ude00 \\ud83d'}").map(|(value, _)| value),
            Some(json!({"a": "raw\nline \u{1f600} \u{fffd}"}))
        );
        for bad in ["f", "f(", "f(1)", "f(a=)", "f(a=1", "f(a='x)", "(a=1)", "f(a=b)", "f(a=1 b=2)"] {
            assert_eq!(call(bad), None, "{bad}");
        }
        assert_eq!(literal(&"[".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "(?s)[a-f(){}\\[\\]'\"=,:0-9 .\\\\uxnä]{0,60}") {
            let _ = call(&text);
            if let Some((_, end)) = literal(&text) {
                prop_assert!(text.is_char_boundary(end));
            }
        }

        #[test]
        fn json_is_a_literal(text in ".{0,30}", number: i64) {
            let value = json!({"text": text, "list": [number, null, true]});
            prop_assert_eq!(literal(&value.to_string()).map(|(value, _)| value), Some(value));
        }
    }
}
