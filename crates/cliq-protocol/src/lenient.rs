//! JSON from outside whose text is not valid Unicode.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeOwned, Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::shorten;

/// Maximum number of values in a JSON document from a caller of the server: items of lists and members of objects, at any depth.
///
/// The memory of a parsed document depends on its values more than on its bytes: an object of 7 bytes takes about 600.
pub const MAX_JSON_VALUES: usize = 50_000;

/// Whether a JSON document has more than [`MAX_JSON_VALUES`] values. Linear time, no memory. The answer for text that is not JSON has no
/// meaning.
#[must_use]
pub fn has_too_many_values(bytes: &[u8]) -> bool {
    let (mut values, mut in_text, mut is_escaped) = (1_usize, false, false);
    for byte in bytes {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_text => is_escaped = true,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values > MAX_JSON_VALUES
}

/// Parses JSON from outside. Invalid UTF-8 and escapes of lone surrogates (half an emoji) are read as U+FFFD.
///
/// Text that is valid is parsed once and copied nowhere. Otherwise time and memory are linear in the size of the input.
///
/// # Errors
/// Returns the error of `serde_json` if the input is not JSON for another reason.
pub fn lenient_json(bytes: &[u8]) -> Result<Value, serde_json::Error> {
    read_json(bytes)
}

/// Parses JSON as [`lenient_json`] does, into any type.
///
/// # Errors
/// Returns the error of `serde_json` if the input is not JSON, or not of this type.
pub fn read_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, serde_json::Error> {
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(error) => match repaired(bytes) {
            Some(text) => serde_json::from_str(&text),
            None => Err(error),
        },
    }
}

/// Checks that no object of a JSON document has a key twice: which of the two values was meant is not clear. Time and memory are linear in
/// the size of the input.
///
/// # Errors
/// Names the key, with its position.
pub fn check_unique_keys(json: &[u8]) -> Result<(), serde_json::Error> {
    serde_json::from_slice::<UniqueKeys>(&lenient_bytes(json)).map(drop)
}

/// Value of which only the keys matter.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for UniqueKeys {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self, A::Error> {
        while items.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        let mut keys = HashSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if let Some(key) = keys.replace(key) {
                return Err(A::Error::custom(format_args!("the key `{}` is there twice", shorten(&key, 80))));
            }
            members.next_value::<Self>()?;
        }
        Ok(self)
    }
}

/// Returns JSON from outside with U+FFFD in place of invalid UTF-8 and of escapes of lone surrogates, for parsers of other libraries.
///
/// Bytes that are valid are not copied. Time and memory are linear in the size of the input.
#[must_use]
pub fn lenient_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    repaired(bytes).map_or(Cow::Borrowed(bytes), |text| Cow::Owned(text.into_bytes()))
}

/// Returns the text with U+FFFD in place of what is not Unicode, or `None` if there is no such place.
fn repaired(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let is_lossy = matches!(text, Cow::Owned(_));
    match (without_lone_surrogates(&text), is_lossy) {
        (Some(text), _) => Some(text),
        (None, true) => Some(text.into_owned()),
        (None, false) => None,
    }
}

/// Replaces escapes of lone surrogates. Returns `None` if there is none.
fn without_lone_surrogates(text: &str) -> Option<String> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find('\\') {
        let start = at + found;
        let Some(unit) = unit(text, start) else {
            // Another escape, of one character: `\\u` is a backslash and a letter.
            let next = text[start + 1..].chars().next().map_or(0, char::len_utf8);
            at = start + 1 + next;
            continue;
        };
        at = start + 6;
        match unit {
            0xD800..=0xDBFF if matches!(self::unit(text, at), Some(0xDC00..=0xDFFF)) => at += 6,
            0xD800..=0xDFFF => {
                out.push_str(&text[kept..start]);
                out.push_str("\\ufffd");
                kept = at;
            }
            _ => {}
        }
    }
    (kept > 0).then(|| {
        out.push_str(&text[kept..]);
        out
    })
}

/// Returns the code unit of the escape at a byte offset: `\u` and four hexadecimal digits.
fn unit(text: &str, at: usize) -> Option<u16> {
    let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u16::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn key_that_is_there_twice_is_named() {
        for (text, key) in [
            (&br#"{"a": 1, "b": {"a": [1, {"a": null}]}, "c": 1.5e3, "d": -7, "e": true}"#[..], None),
            (br#"{"a": 1, "a": 1}"#, Some("the key `a` is there twice at line 1")),
            (br#"[{"b": [{"c": {}, "\u0063": {}}]}]"#, Some("`c` is there twice")),
            (b"{\"\xff\": 1, \"\xfe\": 2}", Some("`\u{fffd}` is there twice")),
            (b"{\"a\"", Some("EOF")),
        ] {
            let error = check_unique_keys(text).err().map(|error| error.to_string());
            assert_eq!(error.is_some(), key.is_some(), "{error:?}");
            assert!(error.unwrap_or_default().contains(key.unwrap_or_default()), "{text:?}");
        }
    }

    #[test]
    fn halves_of_characters_become_the_replacement_character() {
        for (text, expected) in [
            (&br#"{"a": "x \ud83d y"}"#[..], "x \u{fffd} y"),
            (br#"{"a": "\udE00"}"#, "\u{fffd}"),
            (br#"{"a": "\ud83d\ud83d\ude00"}"#, "\u{fffd}\u{1f600}"),
            (br#"{"a": "\ude00\ud83d"}"#, "\u{fffd}\u{fffd}"),
            (br#"{"a": "\\ud83d"}"#, "\\ud83d"),
            (br#"{"a": "\\\ud83d"}"#, "\\\u{fffd}"),
            (b"{\"a\": \"b\xff\"}", "b\u{fffd}"),
            (b"{\"a\": \"\xed\xa0\xbd\"}", "\u{fffd}\u{fffd}\u{fffd}"),
            (br#"{"a": "\ud83d\ude00"}"#, "\u{1f600}"),
        ] {
            let value = lenient_json(text).unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii()));
            assert_eq!(value, json!({ "a": expected }), "{}", text.escape_ascii());
        }
        assert_eq!(lenient_json(br#"{"\ud800": 1}"#).expect("a key"), json!({ "\u{fffd}": 1 }));
    }

    #[test]
    fn bytes_for_other_parsers_are_repaired() {
        for (text, expected) in [
            (&br#"{"a": "\ud83d"}"#[..], &br#"{"a": "\ud83d"}"#[..]),
            (br#"{"a": "\ud83d\ude00"}"#, br#"{"a": "\ud83d\ude00"}"#),
            (b"not JSON", b"not JSON"),
            (b"caf\xe9", "caf\u{fffd}".as_bytes()),
        ] {
            let text = lenient_bytes(text);
            let expected = String::from_utf8_lossy(expected).replace("\"\\ud83d\"", "\"\\ufffd\"");
            assert_eq!(String::from_utf8_lossy(&text), expected);
        }
        assert!(matches!(lenient_bytes(b"{}"), Cow::Borrowed(_)));
    }

    #[test]
    fn values_are_counted_without_parsing() {
        let list = |item: &str, count: usize| format!("[{}]", vec![item; count].join(","));
        for (item, each) in [("0", 1), ("[]", 2), ("{\"a\": 1}", 2), (r#""a,[{\",b""#, 1), (r#""\\""#, 1)] {
            let most = (MAX_JSON_VALUES - 1) / each;
            assert!(!has_too_many_values(list(item, most).as_bytes()), "{item}");
            assert!(has_too_many_values(list(item, most + 2).as_bytes()), "{item}");
        }
        assert!(!has_too_many_values(format!("\"{}\"", ",".repeat(4 << 20)).as_bytes()), "text is one value");
    }

    #[test]
    fn other_faults_stay_errors() {
        for text in
            [&br#"{"a": "\ud83d"#[..], br#"{"a": \ud83d}"#, b"\xff", br#"{"a": "\uzzzz"}"#, b"{", b"\\"]
        {
            assert!(lenient_json(text).is_err(), "{}", text.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn valid_json_is_read_as_it_is(text in ".{0,60}", raw in "(\\\\u[dD][89abcABC][0-9a-f]{2}|\\\\u00e4|\\\\\\\\|x|é){0,12}") {
            let valid = json!({ "text": text });
            prop_assert_eq!(lenient_json(valid.to_string().as_bytes()).ok(), Some(valid));
            let list = format!("[\"{raw}\"]");
            let is_read = lenient_json(list.as_bytes()).is_ok();
            prop_assert!(is_read);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = lenient_json(&bytes);
        }
    }
}
