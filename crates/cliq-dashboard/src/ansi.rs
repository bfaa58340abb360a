//! Colours of terminals as elements. What else an escape sequence does is left out.

use cansi::v3::{CategorisedSlice, categorise_text};
use cansi::{Color, Intensity};
use maud::{Markup, html};

use crate::text::shown;

/// A line with the colours that it sets.
pub(super) fn colored(bytes: &[u8]) -> Markup {
    let text = String::from_utf8_lossy(bytes);
    let line = text.trim_end_matches('\r');
    if !line.contains('\u{1b}') {
        return html! { (shown(line.as_bytes())) };
    }
    html! {
        @for slice in categorise_text(line) {
            @match class(&slice) {
                Some(class) => span class=(class) { (shown(slice.text.as_bytes())) },
                None => (shown(slice.text.as_bytes())),
            }
        }
    }
}

/// Classes of the style sheet for a piece of text. `None` for usual text.
fn class(slice: &CategorisedSlice<'_>) -> Option<String> {
    let mut classes = Vec::new();
    if let Some(color) = slice.fg {
        classes.push(format!("fg-{}", name(color)));
    }
    match slice.intensity {
        Some(Intensity::Bold) => classes.push("bold".to_owned()),
        Some(Intensity::Faint) => classes.push("faint".to_owned()),
        Some(Intensity::Normal) | None => {}
    }
    if slice.underline == Some(true) {
        classes.push("underline".to_owned());
    }
    (!classes.is_empty()).then(|| classes.join(" "))
}

fn name(color: Color) -> &'static str {
    match color {
        Color::Black | Color::BrightBlack => "black",
        Color::Red | Color::BrightRed => "red",
        Color::Green | Color::BrightGreen => "green",
        Color::Yellow | Color::BrightYellow => "yellow",
        Color::Blue | Color::BrightBlue => "blue",
        Color::Magenta | Color::BrightMagenta => "magenta",
        Color::Cyan | Color::BrightCyan => "cyan",
        Color::White | Color::BrightWhite => "white",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_become_classes_and_nothing_else_remains() {
        let markup = colored(b"a \x1b[1;31mred <b>\x1b[0m z\r").into_string();
        assert_eq!(markup, "a <span class=\"fg-red bold\">red &lt;b&gt;</span> z");
        for hostile in [&b"\x1b]0;title\x07x"[..], b"\x1b[2Jx", b"\x1b[38;5;196mx", b"\x1b[", b"\xff\x1b[31m"]
        {
            let markup = colored(hostile).into_string();
            assert!(!markup.contains('\u{1b}') && !markup.contains('\u{7}'), "{markup:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_shown(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            let markup = colored(&bytes).into_string();
            assert!(!markup.contains('\u{1b}'));
        }
    }
}
