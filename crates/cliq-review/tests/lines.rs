//! Comments on lines: which lines there are, what a request for changes says, and what becomes of a line.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

use std::fmt::Write as _;

use cliq_protocol::{Object, Outcome, PhaseName, ReviewSpec, RunId, Timestamp};
use cliq_review::{
    Answer, Choice, Comment, Content, Diff, Event, Fate, FileBefore, FileDiff, NewReview, Place, PlaceError,
    Refusal, Review, Side, Via, fate_of, fill_in, numstat,
};
use proptest::prelude::*;
use serde_json::json;
use similar::TextDiff;

fn file(path: &str, hunks: &str) -> FileDiff {
    FileDiff {
        path: path.to_owned(),
        old_path: None,
        change: "modified".to_owned(),
        added: 1,
        removed: 1,
        binary: false,
        hunks: hunks.to_owned(),
        lines_left_out: 0,
    }
}

/// The change from one text to another, as git shows it.
fn change(old: &str, new: &str) -> FileDiff {
    let diff = TextDiff::from_lines(old, new);
    let mut hunks = String::new();
    for group in diff.grouped_ops(3) {
        // The place of an empty range is of no use.
        let range = |ranges: Vec<std::ops::Range<usize>>| {
            let full = || ranges.iter().filter(|range| !range.is_empty());
            let begin = full().map(|range| range.start).min().map_or(0, |begin| begin + 1);
            format!("{begin},{}", full().map(ExactSizeIterator::len).sum::<usize>())
        };
        let old = range(group.iter().map(similar::DiffOp::old_range).collect());
        let new = range(group.iter().map(similar::DiffOp::new_range).collect());
        let _ = writeln!(hunks, "@@ -{old} +{new} @@");
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let _ = write!(hunks, "{}{change}", change.tag());
        }
    }
    file("a.txt", &hunks)
}

fn content(files: Vec<FileDiff>) -> Content {
    Content { diffs: vec![Diff { repo: ".".into(), files, more_files: 0 }], ..Content::default() }
}

fn place(file: &FileDiff, side: Side, line: u64) -> Place {
    content(vec![file.clone()]).place("a.txt", side, line).unwrap()
}

#[test]
fn places_are_lines_that_are_shown() {
    let mut shown =
        content(vec![file("src/a.rs", "@@ -1,2 +1,2 @@\n same\n-old\n+new\n@@ -20 +20 @@\n-x\n+y\n")]);
    shown.diffs.push(Diff {
        repo: "lib".into(),
        files: vec![file("b.rs", "@@ -0,0 +1 @@\n+one\n")],
        more_files: 0,
    });
    let text = |path: &str, side, line| shown.place(path, side, line).map(|place| place.text().to_owned());
    assert_eq!(text("src/a.rs", Side::New, 1).as_deref(), Ok("same"));
    assert_eq!(text("src/a.rs", Side::New, 2).as_deref(), Ok("new"));
    assert_eq!(text("src/a.rs", Side::Old, 2).as_deref(), Ok("old"));
    assert_eq!(text("lib/b.rs", Side::New, 1).as_deref(), Ok("one"));
    let said = |path: &str, side, line| shown.place(path, side, line).unwrap_err().to_string();
    // A line that did not change is commented on as it is.
    assert_eq!(
        said("src/a.rs", Side::Old, 1),
        "the changes of src/a.rs show no removed line 1; they show 2, 20"
    );
    assert_eq!(said("src/a.rs", Side::New, 9), "the changes of src/a.rs show no line 9; they show 1-2, 20");
    assert_eq!(
        said("b.rs", Side::New, 1),
        "b.rs is not among the changes; changed files are: src/a.rs, lib/b.rs"
    );
    assert_eq!(shown.place("src/a.rs", Side::New, 0), Err(PlaceError::Line));
    assert!(matches!(shown.place("a\nb", Side::New, 1), Err(PlaceError::Path(_))));
    assert_eq!(
        Content::default().place("a", Side::New, 1).unwrap_err().to_string(),
        "a is not among the changes; changed files are: none"
    );
}

#[test]
fn places_are_read_strictly() {
    let read = |value| serde_json::from_value::<Place>(value);
    let place = read(json!({"path": "a", "line": 3, "text": "x\u{1b}[31m\n"})).unwrap();
    assert_eq!(json!(place), json!({"path": "a", "side": "new", "line": 3, "text": "x\u{fffd}[31m"}));
    for wrong in [
        json!({"path": "a", "line": 0}),
        json!({"path": "", "line": 1}),
        json!({"path": "a\u{0}", "line": 1}),
        json!({"path": "a", "line": 1, "side": "left"}),
        json!({"path": "a", "line": -1}),
    ] {
        assert!(read(wrong.clone()).is_err(), "{wrong}");
    }
}

fn shown_only(change: &FileDiff) -> FileBefore<'_> {
    FileBefore { change: Some(change), text: None }
}

#[test]
fn fates() {
    let old = "fn main() {\n    let a = 1;\n    let b = 2;\n    print(a, b);\n}\n";
    let same = "fn main() {\n    let a = 1;\n    let b = 3;\n    print(a, b);\n}\n";
    let shown = change(old, same);
    let lines = |lines: &[&str]| lines.iter().map(|&line| line.to_owned()).collect();
    // With the file as it was, and by the lines around the line alone.
    for text in [Some(same), None] {
        let before = FileBefore { change: Some(&shown), text };
        let fate = |side, line, now: Option<&str>| fate_of(&place(&shown, side, line), before, now);
        assert_eq!(fate(Side::New, 3, Some(same)), Fate::Kept { now: 3 });
        assert_eq!(fate(Side::Old, 3, Some(same)), Fate::Gone);
        assert_eq!(fate(Side::Old, 3, Some(old)), Fate::Kept { now: 3 });
        let moved = format!("// a\n// b\n{same}");
        assert_eq!(fate(Side::New, 3, Some(&moved)), Fate::Kept { now: 5 });
        let changed = same.replace("let b = 3;", "const B: u32 = 3;");
        let new = lines(&["    const B: u32 = 3;"]);
        assert_eq!(fate(Side::New, 3, Some(&changed)), Fate::Changed { now: 3, lines: new });
        let two = same.replace("    let b = 3;\n", "    let c = 3;\n    let b = c;\n");
        let new = lines(&["    let c = 3;", "    let b = c;"]);
        assert_eq!(fate(Side::New, 3, Some(&two)), Fate::Changed { now: 3, lines: new });
        let without = same.replace("    let b = 3;\n", "");
        assert_eq!(fate(Side::New, 3, Some(&without)), Fate::Gone);
        assert_eq!(fate(Side::New, 3, Some("")), Fate::Gone);
        assert_eq!(fate(Side::New, 3, None), Fate::FileGone);
        // The line below another one, and one like it at the end.
        let swapped = "fn main() {\n    let b = 3;\n    let a = 1;\n    print(a, b);\n}\n";
        let fates = [fate(Side::New, 2, Some(swapped)), fate(Side::New, 3, Some(swapped))];
        assert!(
            fates.contains(&Fate::Elsewhere { lines: vec![3] })
                || fates.contains(&Fate::Elsewhere { lines: vec![2] }),
            "{fates:?}"
        );
        let at_end = format!("{same}    let b = 2;\n");
        assert_eq!(fate(Side::Old, 3, Some(&at_end)), Fate::Elsewhere { lines: vec![6] });
    }
    // A brace is everywhere, and says nothing.
    let brace = place(&shown, Side::New, 5);
    assert!(matches!(fate_of(&brace, shown_only(&shown), Some("other {\n}\n}\n")), Fate::Unknown { .. }));
    let long = change("", "a long line of its own\nx\n");
    let at = place(&long, Side::New, 1);
    let elsewhere = |line| Fate::Elsewhere { lines: vec![line] };
    assert_eq!(fate_of(&at, FileBefore::default(), Some("1\na long line of its own\n")), elsewhere(2));
    assert_eq!(fate_of(&at, FileBefore::default(), Some("1\n")), Fate::Gone);
    assert_eq!(fate_of(&at, shown_only(&file("a.txt", "")), Some("1\n")), Fate::Gone);
}

/// Cases in which lines like the one that is meant are near.
#[test]
fn fates_among_lines_that_are_alike() {
    let block = "lock();\nwork();\nunlock();\n";
    let file = format!("{block}{block}{block}");
    let shown = change("", &file);
    let before = |text| FileBefore { change: Some(&shown), text };
    let third = place(&shown, Side::New, 8);
    let two = format!("{block}{block}");
    let gone = Fate::Elsewhere { lines: vec![2, 5] };
    assert_eq!(fate_of(&third, before(Some(&file)), Some(&two)), gone);
    assert!(!matches!(fate_of(&third, before(None), Some(&two)), Fate::Kept { .. }));
    // One of two equal lines is removed: the other one is not that line.
    let (old, new) = ("f {\n  unlock();\n}\ng {\n  unlock();\n}\n", "f {\n}\ng {\n  unlock();\n}\n");
    let shown = change(old, new);
    let at = place(&shown, Side::Old, 2);
    let now = format!("{new}// more\n");
    for text in [Some(new), None] {
        let fate = fate_of(&at, FileBefore { change: Some(&shown), text }, Some(&now));
        assert_eq!(fate, Fate::Elsewhere { lines: vec![4] });
    }
    // The last of five equal lines was replaced: four are not the five.
    let (old, new) = ("\n\n\n\n\n", "\n\n\n\na\n");
    let shown = change(old, new);
    let at = place(&shown, Side::Old, 5);
    for text in [Some(new), None] {
        assert_eq!(fate_of(&at, FileBefore { change: Some(&shown), text }, Some(new)), Fate::Gone);
    }
    // A line at the end of a file is there again, or still removed.
    let shown = change("a\nb\nc\n", "a\nb\n");
    let at = place(&shown, Side::Old, 3);
    for text in [Some("a\nb\n"), None] {
        let before = FileBefore { change: Some(&shown), text };
        assert_eq!(fate_of(&at, before, Some("a\nb\n")), Fate::Gone);
        assert!(!matches!(fate_of(&at, before, Some("a\nb\nc\n")), Fate::Gone | Fate::Elsewhere { .. }));
    }
    // Ends of lines are part of the file.
    let shown = change("", "a\nb\n");
    let at = place(&shown, Side::New, 2);
    let before = FileBefore { change: Some(&shown), text: Some("a\nb\n") };
    assert!(matches!(fate_of(&at, before, Some("a\r\nb\r\n")), Fate::Changed { now: 2, .. }));
    assert_eq!(fate_of(&at, before, Some("x\na\nb\n")), Fate::Kept { now: 3 });
}

#[test]
fn fates_in_large_files() {
    let line = |n: u64| format!("line {n}\n");
    let old: String = (1..=9000).map(line).collect();
    let new = old.replace("line 7000\n", "line seven thousand\n");
    let shown = change(&old, &new);
    let at = place(&shown, Side::New, 7000);
    let before: String = (1..=500).map(|n| format!("before {n}\n")).collect();
    let moved = format!("line seven thousand\n{old}");
    for text in [Some(new.as_str()), None] {
        let known = FileBefore { change: Some(&shown), text };
        assert_eq!(fate_of(&at, known, Some(&format!("{before}{new}"))), Fate::Kept { now: 7500 });
        assert!(matches!(fate_of(&at, known, Some(&moved)), Fate::Changed { .. } | Fate::Elsewhere { .. }));
    }
}

fn review() -> Review {
    let spec = ReviewSpec::from_value(json!({"reviewer": ["ann", "bob"]})).unwrap();
    Review::new(NewReview {
        id: "0123456789abcdef0123456789abcdef".parse().unwrap(),
        project: "/work".into(),
        team: "@shop/web".parse().unwrap(),
        title: None,
        run_id: RunId::parse("r1").unwrap(),
        phase: PhaseName::parse("approval").unwrap(),
        iteration: 1,
        max_iterations: 3,
        evaluation: 1,
        attempt: 1,
        reviewers: spec.reviewers.clone(),
        spec,
        route_targets: vec![PhaseName::parse("developer").unwrap()],
        channels: Vec::new(),
        links: Vec::new(),
        now: Timestamp::from_unix_millis(0),
    })
}

fn comment(n: usize, actor: &str, on_line: bool, text: &str) -> Event {
    let place = on_line.then(|| Place::new("src/a.js", Side::New, n as u64 + 1, "let x;").unwrap());
    Event::Comment(Comment {
        id: format!("c{n}"),
        actor: actor.into(),
        via: Via::Api,
        text: text.into(),
        place,
    })
}

fn request() -> Event {
    let choice = Choice::RequestChanges { to: None };
    let (reviewer, actor) = ("ann".to_owned(), "ann".to_owned());
    Event::Answer(Answer { reviewer, actor, via: Via::Api, choice, reason: None, inputs: Object::new() })
}

const NOW: Timestamp = Timestamp::from_unix_millis(5);

#[test]
fn a_request_for_changes_takes_comments_on_lines_along() {
    let review = review();
    assert_eq!(review.step(&request(), NOW), Err(Refusal::NoWords));
    let general = review.step(&comment(0, "ann", false, "Fine on the whole."), NOW).unwrap().unwrap();
    assert_eq!(general.step(&request(), NOW), Err(Refusal::NoWords));
    let said = general.step(&comment(1, "ann", true, "Why?\nTwo lines."), NOW).unwrap().unwrap();
    let over = said.step(&request(), NOW).unwrap().unwrap();
    let verdict = over.verdict().unwrap();
    insta::assert_snapshot!("request_with_comments", verdict.reason.clone().unwrap());
    insta::assert_json_snapshot!("request_with_comments_json", verdict.extra["comments"]);
}

#[test]
fn comments_on_lines_have_a_limit_together() {
    let mut review = review();
    for n in 0..8 {
        review = review.step(&comment(n, "ann", true, &"x".repeat(16 << 10)), NOW).unwrap().unwrap();
    }
    assert_eq!(review.step(&comment(9, "ann", true, "x"), NOW), Err(Refusal::CommentsTooLong));
    assert!(review.step(&comment(9, "ann", false, "x"), NOW).is_ok());
}

#[test]
fn a_patch_of_git_is_read() {
    let mut files = numstat("1\t1\ta.txt\x001\t0\t\x00old.txt\x00new.txt\x00-\t-\timage.png\x00");
    fill_in(
        &mut files,
        "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\ndiff --git a/old.txt b/new.txt\nsimilarity index 90%\nrename from old.txt\nrename to new.txt\n@@ -1 +1,2 @@\n a\n+b\ndiff --git a/image.png b/image.png\nnew file mode 100644\nBinary files differ\n",
    );
    let read: Vec<_> =
        files.iter().map(|f| (f.path.as_str(), f.change.as_str(), f.binary, f.hunks.as_str())).collect();
    assert_eq!(
        read,
        [
            ("a.txt", "modified", false, "@@ -1 +1 @@\n-a\n+b\n"),
            ("new.txt", "renamed", false, "@@ -1 +1,2 @@\n a\n+b\n"),
            ("image.png", "added", true, "")
        ]
    );
}

#[derive(Debug, Clone)]
enum Act {
    Comment { author: bool, on_line: bool, text: String },
    Withdraw { author: bool, n: usize },
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let text = "[a-z]{1,12}( [a-z]{1,12})?";
    let comment = (any::<bool>(), any::<bool>(), text).prop_map(|(author, on_line, text)| Act::Comment {
        author,
        on_line,
        text,
    });
    let withdraw = (any::<bool>(), 0_usize..12).prop_map(|(author, n)| Act::Withdraw { author, n });
    prop::collection::vec(prop_oneof![3 => comment, 1 => withdraw], 0..12)
}

proptest! {
    /// Comments are withdrawn by their authors alone, the request says each that is left, and nothing changes after it.
    #[test]
    fn comments_by_any_order_of_events(acts in acts()) {
        let name = |author: bool| if author { "ann" } else { "eve" };
        let mut review = review();
        for (n, act) in acts.iter().enumerate() {
            let event = match act {
                Act::Comment { author, on_line, text } => comment(n, name(*author), *on_line, text),
                Act::Withdraw { author, n } => Event::WithdrawComment { id: format!("c{n}"), actor: name(*author).into() },
            };
            let before = review.clone();
            match review.step(&event, NOW) {
                Ok(Some(next)) => review = next,
                Ok(None) => {
                    let Act::Withdraw { n, .. } = act else { panic!("{act:?} changes nothing") };
                    let is_there = before.comments.iter().any(|said| said.comment.id == format!("c{n}"));
                    prop_assert!(!is_there);
                }
                Err(Refusal::NotYourComment(by)) => {
                    let Act::Withdraw { author, .. } = act else { panic!("{act:?} withdraws nothing") };
                    prop_assert_ne!(by, name(*author));
                }
                Err(other) => panic!("{act:?}: {other}"),
            }
            prop_assert!(review.is_pending() && review.answers.is_empty());
        }
        let left = review.on_lines().count();
        let decided = review.step(&request(), NOW);
        if left == 0 {
            prop_assert_eq!(decided, Err(Refusal::NoWords));
            return Ok(());
        }
        let over = decided.unwrap().unwrap();
        let verdict = over.verdict().unwrap();
        prop_assert!(matches!(verdict.outcome, Outcome::Route(_)));
        prop_assert_eq!(verdict.extra["comments"].as_array().map(Vec::len), Some(left));
        let reason = verdict.reason.unwrap_or_default();
        for (place, words) in over.on_lines() {
            prop_assert!(reason.contains(words) && reason.contains(&place.to_string()));
        }
        for event in [comment(90, "ann", true, "x"), Event::WithdrawComment { id: over.comments[0].comment.id.clone(), actor: over.comments[0].comment.actor.clone() }] {
            prop_assert!(over.step(&event, NOW).is_err());
        }
    }

    /// A line that is said to be there is there, and so are the lines that are said to be in its place or like it.
    #[test]
    fn fates_are_true(old in prop::collection::vec("[ab]{0,2}", 0..12), new in prop::collection::vec("[abc]{0,2}", 1..12), now in prop::collection::vec("[abc]{0,2}", 0..12), is_whole in any::<bool>()) {
        let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (old, new_text, now_text) = (text(&old), text(&new), text(&now));
        let shown = change(&old, &new_text);
        let before = FileBefore { change: Some(&shown), text: is_whole.then_some(new_text.as_str()) };
        let line_at = |n: u64| now[n as usize - 1].as_str();
        for side in [Side::New, Side::Old] {
            for line in 1..=12 {
                let Ok(at) = content(vec![shown.clone()]).place("a.txt", side, line) else { continue };
                let unchanged = fate_of(&at, before, Some(&new_text));
                match side {
                    Side::New => prop_assert_eq!(unchanged, Fate::Kept { now: line }),
                    Side::Old => prop_assert!(!matches!(unchanged, Fate::Kept { .. } | Fate::Changed { .. }), "{:?}", unchanged),
                }
                match fate_of(&at, before, Some(&now_text)) {
                    Fate::Kept { now: n } => prop_assert_eq!(line_at(n), at.text()),
                    Fate::Changed { now: n, lines } => {
                        prop_assert!(!lines.is_empty());
                        // The text after the last line break is an empty line.
                        let found: Vec<&str> = now_text.split('\n').skip(n as usize - 1).take(lines.len()).collect();
                        prop_assert_eq!(found, lines);
                    }
                    Fate::Elsewhere { lines } => {
                        prop_assert!(!lines.is_empty());
                        for n in lines { prop_assert_eq!(line_at(n), at.text()) }
                    }
                    Fate::Gone | Fate::Unknown { .. } => {}
                    Fate::FileGone => prop_assert!(false),
                }
            }
        }
    }

    /// Any text is read as hunks without harm.
    #[test]
    fn hostile_hunks(hunks in ".{0,200}", line in any::<u64>(), now in ".{0,100}") {
        let shown = file("a.txt", &hunks);
        for side in [Side::New, Side::Old] {
            if let Ok(at) = content(vec![shown.clone()]).place("a.txt", side, line) {
                let _ = fate_of(&at, shown_only(&shown), Some(&now));
                let _ = fate_of(&at, FileBefore { change: Some(&shown), text: Some(&now) }, Some(&now));
            }
        }
    }
}
