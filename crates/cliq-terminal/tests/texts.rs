//! Text of others never reaches the terminal as a control sequence.

use crossterm::event::KeyCode;
use proptest::prelude::*;

use crate::fixtures::{Screen, run};

/// Whether the screen has a character that a terminal would obey, or that hides or turns text.
fn is_safe(text: &str) -> bool {
    text.chars().all(|c| c == '\n' || !(c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')))
}

#[test]
fn hostile_texts_are_shown_as_text() {
    let mut screen = Screen::new(150, 40);
    while !screen.text().contains("red") {
        screen.key(KeyCode::Down);
    }
    let text = screen.text();
    assert!(is_safe(&text), "{text:?}");
    assert!(text.contains("red ·evil· title"), "{text}");
    screen.key(KeyCode::Enter);
    screen.key(KeyCode::Enter);
    let log = screen.text();
    assert!(is_safe(&log) && log.contains("ok plain  end") && log.contains("    indented"), "{log}");
    screen.key(KeyCode::BackTab);
    let changes = screen.text();
    assert!(is_safe(&changes) && changes.contains("-hostile"), "{changes}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_safe(title in "\\PC*|.*", words in any::<String>(), columns in 24u16..160, rows in 8u16..50) {
        let mut list = crate::fixtures::runs();
        let mut own = run("x", &title, cliq_terminal::RunStatus::Working, 0);
        own.words = Some(words.clone());
        own.needs = Some(words);
        list.runs.insert(0, own);
        let screen = Screen::with(columns, rows, list);
        prop_assert!(is_safe(&screen.text()));
    }
}
