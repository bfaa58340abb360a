//! Text of agents and commands, made harmless for people: escape sequences and control characters removed, long lines cut.

use std::fmt::Write;

/// The most characters of a line that are shown.
const MAX_LINE: usize = 2000;

/// Text as it can be shown. HTML in it is escaped where it is put into a page.
pub(super) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let stripped = anstream::adapter::strip_str(&text).to_string();
    let mut out = String::with_capacity(stripped.len());
    for line in stripped.replace("\r\n", "\n").replace('\r', "\n").split_inclusive('\n') {
        let (line, newline) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let mut characters = line.chars();
        out.extend(characters.by_ref().take(MAX_LINE).map(harmless));
        let more = characters.count();
        if more > 0 {
            let _ = write!(out, "… ({more} more characters)");
        }
        out.push_str(newline);
    }
    out
}

/// A character as it can be shown. Those that turn the direction of text could show another text than there is.
fn harmless(c: char) -> char {
    let turns = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    if (c.is_control() && c != '\t') || turns { '\u{fffd}' } else { c }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers() {
        assert_eq!(shown(b"\x1b[31mred\x1b[0m \x1b]0;title\x07ok\r\nnext\rlast\x08"), "red ok\nnext\nlast");
        assert_eq!(shown("a\u{202e}b".as_bytes()), "a\u{fffd}b");
        assert_eq!(shown("a\u{85}b".as_bytes()), "a\u{fffd}b");
        assert_eq!(shown(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        let long = "x".repeat(5000);
        let cut = shown(format!("{long}\ny").as_bytes());
        assert!(cut.contains("(3000 more characters)") && cut.ends_with("\ny"));
    }
}
