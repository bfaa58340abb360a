//! Lines of a changed file as a table: one below the other, or side by side.

use cliq_review::{HunkLine, LineKind, Side, hunk_lines};
use maud::{Markup, html};

use super::highlight::{Highlighter, grammar, render};
use super::{Viewer, notes};
use crate::text::shown;

/// A line with its text for people.
struct Row<'a> {
    line: HunkLine<'a>,
    text: Markup,
}

fn class(kind: LineKind) -> &'static str {
    match kind {
        LineKind::Head => "hunk",
        LineKind::Same => "same",
        LineKind::Added => "add",
        LineKind::Removed => "del",
    }
}

/// Renders the hunks of a file.
pub(super) fn table(viewer: &Viewer<'_>, path: &str, hunks: &str) -> Markup {
    let rows = rows(path, hunks);
    if viewer.split { side_by_side(viewer, path, &rows) } else { unified(viewer, path, &rows) }
}

/// Maximum number of lines of a file that are coloured. More of them would delay the page.
const MAX_COLOURED: usize = 1500;

fn rows<'a>(path: &str, hunks: &'a str) -> Vec<Row<'a>> {
    let grammar = grammar(path);
    let mut left = MAX_COLOURED;
    let reader = || grammar.map(Highlighter::new);
    let (mut before, mut after) = (None, None);
    let row = |line: HunkLine<'a>| {
        let text = shown(line.text.as_bytes());
        let read = |reader: &mut Option<Highlighter>| reader.as_mut().map(|reader| reader.read(&text));
        left = left.saturating_sub(1);
        let parts = match line.kind {
            _ if left == 0 => None,
            LineKind::Head => {
                (before, after) = (reader(), reader());
                None
            }
            LineKind::Removed => read(&mut before),
            LineKind::Added => read(&mut after),
            LineKind::Same => {
                read(&mut before);
                read(&mut after)
            }
        };
        Row { line, text: render(&text, &parts.unwrap_or_default()) }
    };
    hunk_lines(hunks).into_iter().map(row).collect()
}

/// The number of a line, as the way to a comment on it.
fn number(viewer: &Viewer<'_>, path: &str, side: Side, line: Option<u64>, can_comment: bool) -> Markup {
    html! {
        td.line {
            @if let Some(number) = line {
                @if can_comment && viewer.form.is_some() {
                    @let word = if side == Side::New { "line" } else { "removed line" };
                    a href=(viewer.comment_address(path, side, number)) data-comment=(mark(side, number)) aria-label=(format!("Comment on {word} {number}")) { (number) }
                } @else { (number) }
            }
        }
    }
}

/// Mark of a line in addresses: `n12` for line 12, `o3` for the removed line 3.
pub(super) fn mark(side: Side, line: u64) -> String {
    format!("{}{line}", if side == Side::New { 'n' } else { 'o' })
}

/// Side and number of the line that a comment on this row is about.
fn place_of(line: &HunkLine<'_>) -> Option<(Side, u64)> {
    let side = if line.kind == LineKind::Removed { Side::Old } else { Side::New };
    Some((side, line.number(side)?))
}

fn unified(viewer: &Viewer<'_>, path: &str, rows: &[Row<'_>]) -> Markup {
    html! {
        table.diff {
            thead.hidden { tr { th { "Old line" } th { "New line" } th { "Change" } th { "Text" } } }
            tbody {
                @for row in rows {
                    @let line = &row.line;
                    @let sign = match line.kind { LineKind::Added => "+", LineKind::Removed => "−", LineKind::Head | LineKind::Same => " " };
                    tr class=(class(line.kind)) {
                        (number(viewer, path, Side::Old, line.old, line.kind == LineKind::Removed))
                        (number(viewer, path, Side::New, line.new, true))
                        td.sign { (sign) } td { (row.text) }
                    }
                    (notes::below(viewer, path, place_of(line), 4))
                }
            }
        }
    }
}

fn side_by_side(viewer: &Viewer<'_>, path: &str, rows: &[Row<'_>]) -> Markup {
    html! {
        table.diff.split {
            thead.hidden { tr { th { "Old line" } th { "Old text" } th { "New line" } th { "New text" } } }
            tbody {
                @for (left, right) in pairs(rows) {
                    @if let Some(head) = left.filter(|row| row.line.kind == LineKind::Head) {
                        tr.hunk { td colspan="4" { (head.text) } }
                    } @else {
                        tr {
                            (number(viewer, path, Side::Old, left.and_then(|row| row.line.old), left.is_some_and(|row| row.line.kind == LineKind::Removed)))
                            td class=[left.map(|row| class(row.line.kind))] { @if let Some(row) = left { (row.text) } }
                            (number(viewer, path, Side::New, right.and_then(|row| row.line.new), true))
                            td class=[right.map(|row| class(row.line.kind))] { @if let Some(row) = right { (row.text) } }
                        }
                        @let old = left.filter(|row| row.line.kind == LineKind::Removed).and_then(|row| place_of(&row.line));
                        (notes::below(viewer, path, old, 4))
                        (notes::below(viewer, path, right.and_then(|row| place_of(&row.line)), 4))
                    }
                }
            }
        }
    }
}

/// Lines side by side: removed ones beside those that came in their place.
fn pairs<'a, 'b>(rows: &'b [Row<'a>]) -> Vec<(Option<&'b Row<'a>>, Option<&'b Row<'a>>)> {
    let mut found = Vec::new();
    let mut rest = rows;
    while let Some((first, after)) = rest.split_first() {
        if matches!(first.line.kind, LineKind::Head | LineKind::Same) {
            found.push((Some(first), Some(first)));
            rest = after;
            continue;
        }
        let is_change = |row: &&Row<'_>| matches!(row.line.kind, LineKind::Added | LineKind::Removed);
        let (block, after) = rest.split_at(rest.iter().take_while(is_change).count());
        let of = |kind: LineKind| block.iter().filter(move |row| row.line.kind == kind).collect::<Vec<_>>();
        let (removed, added) = (of(LineKind::Removed), of(LineKind::Added));
        let rows = removed.len().max(added.len());
        found.extend((0..rows).map(|n| (removed.get(n).copied(), added.get(n).copied())));
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides() {
        let rows = rows("a.txt", "@@ -1,3 +1,2 @@ fn\n a\n-b\n-c\n+d\n@@ -9 +9,2 @@\n+x\n");
        let text = |row: Option<&Row<'_>>| row.map(|row| row.line.text.to_owned());
        let sides: Vec<_> = pairs(&rows).into_iter().map(|(l, r)| (text(l), text(r))).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(sides[2..4], [(some("b"), some("d")), (some("c"), None)]);
        assert_eq!(sides[5], (None, some("x")));
    }

    #[test]
    fn hostile_text_stays_text() {
        for path in ["a.html", "a.js", "a.txt"] {
            for split in [false, true] {
                let viewer = Viewer { split, ..Viewer::plain("/x") };
                let html = table(&viewer, path, "@@ -1 +1 @@\n-</td><script>x\n+<script>alert(1)</script>")
                    .into_string();
                assert!(!html.contains("<script") && html.contains("alert"), "{html}");
            }
        }
    }
}
