//! Every view at three sizes.

use crossterm::event::KeyCode;

use crate::fixtures::Screen;

const SIZES: [(u16, u16); 3] = [(80, 24), (60, 16), (150, 40)];

/// Compares the view that `prepare` leads to with its snapshots.
fn compare(name: &str, prepare: impl Fn(&mut Screen)) {
    for (columns, rows) in SIZES {
        let mut screen = Screen::new(columns, rows);
        prepare(&mut screen);
        insta::assert_snapshot!(format!("{name}_{columns}x{rows}"), screen.text());
    }
}

#[test]
fn list_of_runs() {
    compare("list", |_| {});
}

#[test]
fn filtered_list() {
    compare("filter", |screen| screen.keys("/help"));
}

#[test]
fn phases_and_log() {
    compare("phases", |screen| screen.key(KeyCode::Enter));
}

#[test]
fn log() {
    compare("log", |screen| {
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Up);
    });
}

#[test]
fn transcript() {
    compare("transcript", |screen| {
        screen.key(KeyCode::Tab);
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Enter);
    });
}

#[test]
fn changes_under_review() {
    compare("changes", |screen| {
        screen.key(KeyCode::BackTab);
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Enter);
        screen.keys("jjj");
    });
}

#[test]
fn answer() {
    compare("answer", |screen| screen.keys("a"));
}

#[test]
fn refused_answer() {
    compare("answer_refused", |screen| {
        screen.keys("a");
        screen.submit();
    });
}

#[test]
fn request_for_changes() {
    compare("request_changes", |screen| {
        screen.keys("a");
        screen.key(KeyCode::Right);
    });
}

#[test]
fn comment() {
    compare("comment", |screen| {
        screen.key(KeyCode::BackTab);
        screen.key(KeyCode::Enter);
        screen.key(KeyCode::Enter);
        screen.keys("jjjjcUse `all`.");
    });
}

#[test]
fn guidance() {
    compare("guidance", |screen| screen.keys("s"));
}

#[test]
fn new_run() {
    compare("new_run", |screen| {
        screen.keys("n");
        screen.key(KeyCode::BackTab);
        screen.key(KeyCode::Right);
        screen.key(KeyCode::Right);
    });
}

#[test]
fn question_before_the_end() {
    compare("cancel", |screen| screen.keys("x"));
}

#[test]
fn help() {
    compare("help", |screen| screen.keys("?"));
}

#[test]
fn empty() {
    for (columns, rows) in SIZES {
        let screen = Screen::with(columns, rows, cliq_terminal::RunList::default());
        insta::assert_snapshot!(format!("empty_{columns}x{rows}"), screen.text());
    }
}
