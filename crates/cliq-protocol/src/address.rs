//! Addresses without their passwords.

use std::borrow::Cow;

/// Replaces the user and password of every address in a text (`https://user:password@host`) by `***`, for messages and records.
///
/// Time and memory are linear in the size of the text.
#[must_use]
pub fn without_credentials(text: &str) -> Cow<'_, str> {
    let (mut out, mut kept, mut at) = (String::new(), 0, 0);
    while let Some(found) = text[at..].find("://") {
        let start = at + found + 3;
        let end = text[start..]
            .find(|c: char| {
                matches!(c, '/' | '?' | '#' | '"' | '\'' | '<' | '>' | '`' | '\\') || c.is_whitespace()
            })
            .map_or(text.len(), |end| start + end);
        // A password may contain an unescaped `@`: the host begins after the last one.
        if let Some(mark) = text[start..end].rfind('@') {
            out.push_str(&text[kept..start]);
            out.push_str("***");
            kept = start + mark;
        }
        at = end.max(start);
    }
    if kept == 0 {
        return text.into();
    }
    out.push_str(&text[kept..]);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_passwords_are_replaced() {
        for (text, expected) in [
            ("http://u:p@h:1/v1", "http://***@h:1/v1"),
            ("at https://token@h, then ftp://a:b@c/d?e=f@g", "at https://***@h, then ftp://***@c/d?e=f@g"),
            ("http://u:p@ss@h/", "http://***@h/"),
            ("http://h/path@v2", "http://h/path@v2"),
            ("http://u:p@", "http://***@"),
            ("no address: a@b", "no address: a@b"),
            ("\"http://u:p@h\"", "\"http://***@h\""),
            ("://", "://"),
        ] {
            assert_eq!(without_credentials(text), expected);
        }
    }
}
