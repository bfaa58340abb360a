//! Text of agents within a line of cliq. Pure.

use std::borrow::Cow;

/// Makes a text a part of one line, of the log or of a terminal: further lines are indented, control characters, and so escape sequences, and
/// characters that turn the direction of text are replaced. Nothing in it can look like a line of cliq.
#[must_use]
pub fn within_line(text: &str) -> Cow<'_, str> {
    // Nearly all lines have no other characters.
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Cow::Borrowed(text);
    }
    let turns =
        |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut line = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\n' => line.push_str("\n    "),
            '\t' => line.push(c),
            c if c.is_control() || turns(c) => line.push('·'),
            c => line.push(c),
        }
    }
    Cow::Owned(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_within_a_line_makes_no_line_of_its_own() {
        for (text, shown) in [
            ("work: done", "work: done"),
            ("work: done\nCOMPLETED in 1s", "work: done\n    COMPLETED in 1s"),
            ("work: a\rCOMPLETED\tb", "work: a·COMPLETED\tb"),
            ("work: \u{1b}[2K\u{202e}a\u{85}b\u{2028}c", "work: ·[2K·a·b·c"),
            ("work: größer", "work: größer"),
        ] {
            assert_eq!(within_line(text), shown);
        }
    }
}
