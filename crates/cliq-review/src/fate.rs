//! State of a line after a phase worked again: the lines around it, as they were shown, are found in the file as it is now.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::comment::Fate;
use crate::content::FileDiff;
use crate::hunk::{LineKind, hunk_lines};
use crate::place::{Place, Side};

/// Files with more lines are searched near the place only.
const WHOLE: usize = 4000;
/// Lines before and after the place that are searched in a larger file.
const NEAR: usize = 1000;
/// The most lines that are kept of what is in the place of a line, and the most characters of each.
const MAX_LINES: usize = 8;
const MAX_CHARS: usize = 200;

/// Returns what became of a line. `file` is the change that was shown with the comment, `now` the file as it is; `None` if it is not there. Without
/// the change, only a line that is there once and is told from others is found.
#[must_use]
pub fn fate_of(place: &Place, file: Option<&FileDiff>, now: Option<&str>) -> Fate {
    let Some(now) = now else { return Fate::FileGone };
    let all: Vec<&str> = now.lines().collect();
    let Some(Shown { lines: shown, at, first }) = file.and_then(|file| shown(place, file)) else {
        return match moved(place.text(), &all) {
            Fate::Gone => {
                Fate::Unknown { why: "the line is not among the changes that were shown".to_owned() }
            }
            found => found,
        };
    };
    let start = if all.len() <= WHOLE { 0 } else { first.saturating_sub(NEAR).min(all.len()) };
    let end = if all.len() <= WHOLE { all.len() } else { (first + shown.len() + NEAR).min(all.len()) };
    let window = all.get(start..end).unwrap_or_default();
    // All of them as they were, perhaps elsewhere: no search for what is most alike can be wrong about it.
    let same = window.windows(shown.len().max(1)).enumerate().filter(|(_, lines)| *lines == shown.as_slice());
    if let Some((index, _)) = same.min_by_key(|(index, _)| (start + index).abs_diff(first)) {
        return Fate::Kept { now: (start + index + at + 1) as u64 };
    }
    // What is the same on both sides; all else lies between.
    let ops = capture_diff_slices(Algorithm::Patience, &shown, window);
    let same: Vec<Same> = ops.iter().filter_map(Same::of).collect();
    let number = |index: usize| (start + index + 1) as u64;
    let fate = match same.iter().find(|same| (same.old..same.old + same.len).contains(&at)) {
        Some(own) if own.len > 1 || is_told_apart(shown[at], &shown, window) => {
            Fate::Kept { now: number(own.new + at - own.old) }
        }
        // A brace, say, with other lines around it.
        Some(_) => Fate::Unknown { why: "the lines around it changed, and it is like others".to_owned() },
        None => match between(&same, at, shown.len(), window.len()) {
            Some((from, to)) => {
                let cut = |line: &&str| line.chars().take(MAX_CHARS).collect::<String>();
                let lines = window.iter().take(to).skip(from).take(MAX_LINES).map(cut).collect();
                Fate::Changed { now: number(from), lines }
            }
            None => Fate::Gone,
        },
    };
    match (fate, place.side()) {
        // Other lines near the place say nothing about a removed one.
        (Fate::Changed { .. }, Side::Old) => Fate::Gone,
        (Fate::Gone, Side::New) => moved(shown.get(at).copied().unwrap_or_default(), &all),
        (fate, _) => fate,
    }
}

/// Lines that are on both sides.
struct Same {
    old: usize,
    new: usize,
    len: usize,
}

impl Same {
    fn of(op: &DiffOp) -> Option<Self> {
        match *op {
            DiffOp::Equal { old_index, new_index, len } => Some(Self { old: old_index, new: new_index, len }),
            DiffOp::Delete { .. } | DiffOp::Insert { .. } | DiffOp::Replace { .. } => None,
        }
    }
}

/// The lines that are in the place of a line, as a range of the window: those between what is the same before and after it. `None` if there are none.
fn between(same: &[Same], at: usize, shown: usize, window: usize) -> Option<(usize, usize)> {
    let before = same.iter().rev().find(|same| same.old + same.len <= at);
    let after = same.iter().find(|same| same.old > at);
    let begin = before.map_or(0, |same| same.old + same.len);
    let end = after.map_or(shown, |same| same.old);
    let (from, to) = match (before, after) {
        (Some(before), Some(after)) => (before.new + before.len, after.new),
        // At an end of what was shown, as many lines as there were.
        (Some(before), None) => {
            let from = before.new + before.len;
            (from, window.min(from + (end - begin)))
        }
        (None, Some(after)) => (after.new.saturating_sub(end - begin), after.new),
        (None, None) => return None,
    };
    if from >= to {
        return None;
    }
    // As many lines as before: each is in the place of its own.
    if to - from == end - begin { Some((from + at - begin, from + at - begin + 1)) } else { Some((from, to)) }
}

/// Whether a line alone says which it is: it is long, or there once before and after.
fn is_told_apart(line: &str, shown: &[&str], window: &[&str]) -> bool {
    let is_once = |lines: &[&str]| lines.iter().filter(|other| **other == line).count() == 1;
    is_long(line) || line.contains(char::is_alphanumeric) && is_once(shown) && is_once(window)
}

fn is_long(line: &str) -> bool {
    line.chars().filter(|c| c.is_alphanumeric()).count() >= 12
}

/// A line that is gone from its place, and is now elsewhere: only if it is long enough to be told from others, and there once.
fn moved(line: &str, all: &[&str]) -> Fate {
    let mut found = all.iter().enumerate().filter(|(_, other)| **other == line);
    match (found.next(), found.next()) {
        (Some((index, _)), None) if is_long(line) => Fate::Kept { now: index as u64 + 1 },
        _ => Fate::Gone,
    }
}

/// Lines of the hunk around a place, as they were after the change.
struct Shown<'a> {
    lines: Vec<&'a str>,
    /// Index of the line among them.
    at: usize,
    /// Index of the first of them in the file.
    first: usize,
}

fn shown<'a>(place: &Place, file: &'a FileDiff) -> Option<Shown<'a>> {
    let all = hunk_lines(&file.hunks);
    let position = all.iter().position(|line| line.number(place.side()) == Some(place.line()))?;
    let begin =
        all[..position].iter().rposition(|line| line.kind == LineKind::Head).map_or(0, |head| head + 1);
    let (mut lines, mut at, mut first) = (Vec::new(), 0, None);
    for (n, line) in all.iter().enumerate().skip(begin).take_while(|(_, line)| line.kind != LineKind::Head) {
        if n == position {
            at = lines.len();
        } else if line.kind == LineKind::Removed {
            continue;
        }
        first = first.or(line.new);
        lines.push(line.text);
    }
    let first = usize::try_from(first.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
    Some(Shown { lines, at, first })
}
