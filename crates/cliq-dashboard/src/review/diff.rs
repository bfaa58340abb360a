//! Changes, unified or side by side. Large ones are folded.

use cliq_review::{Diff, FileDiff};
use maud::{Markup, html};

use crate::text::shown;

/// Files with more lines than this are folded, and all files where there are more lines in all.
const OPEN_LINES: usize = 150;
const OPEN_ALL: usize = 1500;

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Line<'a> {
    sign: LineMark,
    old: Option<u64>,
    new: Option<u64>,
    text: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LineMark {
    Head,
    Same,
    Added,
    Removed,
}

impl LineMark {
    fn class(self) -> &'static str {
        match self {
            Self::Head => "hunk",
            Self::Same => "same",
            Self::Added => "add",
            Self::Removed => "del",
        }
    }
}

/// The changes of all repositories.
pub(super) fn changes(diffs: &[Diff], path: &str, split: bool) -> Markup {
    let lines: usize = diffs.iter().flat_map(|diff| &diff.files).map(|file| file.hunks.lines().count()).sum();
    html! {
        @if !diffs.is_empty() {
            section #changes aria-labelledby="changes-title" {
                h2 #changes-title { "Changes" }
                p.filters {
                    a href=(format!("{path}#changes")) aria-current=[(!split).then_some("true")] { "Unified" }
                    a href=(format!("{path}?view=split#changes")) aria-current=[split.then_some("true")] { "Side by side" }
                }
                @for diff in diffs {
                    @if diffs.len() > 1 || diff.repo != "." { h3 { code { (shown(diff.repo.as_bytes())) } } }
                    @for file in &diff.files { (one(file, split, lines <= OPEN_ALL)) }
                    @if diff.more_files > 0 { p.warning { (diff.more_files) " more files changed and are not shown." } }
                }
            }
        }
    }
}

fn one(file: &FileDiff, split: bool, may_open: bool) -> Markup {
    let lines = lines(&file.hunks);
    let (path, old) = (shown(file.path.as_bytes()), file.old_path.as_ref().map(|old| shown(old.as_bytes())));
    html! {
        details.card open[may_open && lines.len() <= OPEN_LINES] {
            summary {
                code { @if let Some(old) = &old { (old) " → " } (path) }
                " " span.quiet { (file.change) }
                " " span.plus { "+" (file.added) } " " span.minus { "−" (file.removed) }
            }
            @if file.binary {
                p.empty { "It is not text." }
            } @else if lines.is_empty() && file.lines_left_out == 0 {
                p.empty { "Its content did not change." }
            } @else if !lines.is_empty() {
                div.scroll tabindex="0" role="region" aria-label=(format!("Changes in {path}")) {
                    @if split { (side_by_side(&lines)) } @else { (unified(&lines)) }
                }
            }
            @if file.lines_left_out > 0 { p.warning { (file.lines_left_out) " more lines are not shown." } }
        }
    }
}

/// The lines of hunks with their numbers.
fn lines(hunks: &str) -> Vec<Line<'_>> {
    let (mut old, mut new) = (0, 0);
    let mut lines = Vec::new();
    for line in hunks.lines() {
        let (sign, text) = match line.as_bytes().first() {
            Some(b'@') => (LineMark::Head, line),
            Some(b'+') => (LineMark::Added, &line[1..]),
            Some(b'-') => (LineMark::Removed, &line[1..]),
            // "\ No newline at end of file"
            Some(b'\\') => continue,
            _ => (LineMark::Same, line.get(1..).unwrap_or_default()),
        };
        if sign == LineMark::Head {
            (old, new) = numbers(line).unwrap_or((old, new));
            lines.push(Line { sign, old: None, new: None, text });
            continue;
        }
        let (has_old, has_new) = (sign != LineMark::Added, sign != LineMark::Removed);
        lines.push(Line { sign, old: has_old.then_some(old), new: has_new.then_some(new), text });
        old += u64::from(has_old);
        new += u64::from(has_new);
    }
    lines
}

/// The first line numbers of a hunk: `@@ -1,3 +1,4 @@`.
fn numbers(head: &str) -> Option<(u64, u64)> {
    let mut words = head.split(' ');
    let mut number = |sign: char| {
        let word = words.find(|word| word.starts_with(sign))?;
        word[1..].split(',').next()?.parse().ok()
    };
    Some((number('-')?, number('+')?))
}

fn cell(number: Option<u64>) -> Markup {
    html! { td.line { @if let Some(number) = number { (number) } } }
}

fn unified(lines: &[Line<'_>]) -> Markup {
    html! {
        table.diff {
            thead.hidden { tr { th { "Old line" } th { "New line" } th { "Change" } th { "Text" } } }
            tbody {
                @for line in lines {
                    @let sign = match line.sign { LineMark::Added => "+", LineMark::Removed => "−", LineMark::Head | LineMark::Same => " " };
                    tr class=(line.sign.class()) {
                        (cell(line.old)) (cell(line.new)) td.sign { (sign) } td { (shown(line.text.as_bytes())) }
                    }
                }
            }
        }
    }
}

fn side_by_side(lines: &[Line<'_>]) -> Markup {
    html! {
        table.diff.split {
            thead.hidden { tr { th { "Old line" } th { "Old text" } th { "New line" } th { "New text" } } }
            tbody {
                @for (left, right) in pairs(lines) {
                    @if let Some(head) = left.filter(|line| line.sign == LineMark::Head) {
                        tr.hunk { td colspan="4" { (shown(head.text.as_bytes())) } }
                    } @else {
                        tr {
                            (cell(left.and_then(|line| line.old)))
                            td class=[left.map(|line| line.sign.class())] { @if let Some(line) = left { (shown(line.text.as_bytes())) } }
                            (cell(right.and_then(|line| line.new)))
                            td class=[right.map(|line| line.sign.class())] { @if let Some(line) = right { (shown(line.text.as_bytes())) } }
                        }
                    }
                }
            }
        }
    }
}

/// Lines side by side: removed ones beside those that came in their place.
fn pairs<'a, 'b>(lines: &'b [Line<'a>]) -> Vec<(Option<&'b Line<'a>>, Option<&'b Line<'a>>)> {
    let mut rows = Vec::new();
    let mut rest = lines;
    while let Some((first, after)) = rest.split_first() {
        if matches!(first.sign, LineMark::Head | LineMark::Same) {
            rows.push((Some(first), Some(first)));
            rest = after;
            continue;
        }
        let run =
            rest.iter().take_while(|line| matches!(line.sign, LineMark::Added | LineMark::Removed)).count();
        let (block, after) = rest.split_at(run);
        let of = |sign: LineMark| block.iter().filter(move |line| line.sign == sign).collect::<Vec<_>>();
        let (removed, added) = (of(LineMark::Removed), of(LineMark::Added));
        rows.extend(
            (0..removed.len().max(added.len())).map(|n| (removed.get(n).copied(), added.get(n).copied())),
        );
        rest = after;
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_sides() {
        let hunks = "@@ -1,3 +1,3 @@ fn\n a\n-b\n-c\n+d\n\\ No newline at end of file\n@@ -9 +9,2 @@\n+x\n";
        let read = lines(hunks);
        let told: Vec<_> = read.iter().map(|l| (l.old, l.new, l.text)).collect();
        assert_eq!(
            told,
            [
                (None, None, "@@ -1,3 +1,3 @@ fn"),
                (Some(1), Some(1), "a"),
                (Some(2), None, "b"),
                (Some(3), None, "c"),
                (None, Some(2), "d"),
                (None, None, "@@ -9 +9,2 @@"),
                (None, Some(9), "x"),
            ]
        );
        let sides: Vec<_> =
            pairs(&read).iter().map(|(l, r)| (l.map(|l| l.text), r.map(|r| r.text))).collect();
        assert_eq!(sides[2..4], [(Some("b"), Some("d")), (Some("c"), None)]);
        assert_eq!(sides[5], (None, Some("x")));
    }

    #[test]
    fn hostile_hunks() {
        for hunks in
            ["", "@@", "@@ -x +y @@", "\u{e9}", "+", "-\n+\n \n\\", "@@ -99999999999999999999 +1 @@\n-a"]
        {
            let read = lines(hunks);
            let _ = (unified(&read).into_string(), side_by_side(&read).into_string());
        }
        let html = unified(&lines("+<script>alert(1)</script>")).into_string();
        assert!(!html.contains("<script"), "{html}");
    }
}
