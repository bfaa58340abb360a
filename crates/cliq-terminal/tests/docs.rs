//! The page of the documentation: its pictures and its table of keys are made by the program.

use crossterm::event::KeyCode;

use crate::fixtures::Screen;

/// Replaces the part between two marks in the page, or checks that it is the same.
fn keep(page: &str, name: &str, content: &str) -> String {
    let (start, end) = (format!("<!-- {name}: made by the test -->\n"), format!("<!-- end of {name} -->"));
    let (before, rest) = page.split_once(&start).unwrap_or_else(|| panic!("the page has no mark {name}"));
    let (_, after) = rest.split_once(&end).unwrap_or_else(|| panic!("the page has no end of {name}"));
    [before, &start, content, &end, after].concat()
}

#[test]
fn page_has_the_pictures_and_keys_of_this_version() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal.md");
    let page = std::fs::read_to_string(path).unwrap();
    let picture = |prepare: &dyn Fn(&mut Screen), columns, rows| {
        let mut screen = Screen::new(columns, rows);
        prepare(&mut screen);
        format!("```text\n{}```\n", screen.text())
    };
    let made = keep(&page, "runs", &picture(&|_| {}, 100, 26));
    let made = keep(&made, "answer", &picture(&|screen| screen.keys("a"), 80, 24));
    let changes = |screen: &mut Screen| {
        screen.key(KeyCode::BackTab);
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Enter);
        screen.keys("jjjj");
    };
    let made = keep(&made, "changes", &picture(&changes, 80, 18));
    let made = keep(&made, "keys", &cliq_terminal::key_table());
    if std::env::var_os("UPDATE_PICTURES").is_some() {
        std::fs::write(path, &made).unwrap();
        return;
    }
    assert_eq!(page, made, "`UPDATE_PICTURES=1 cargo test -p cliq-terminal` makes them anew");
}
