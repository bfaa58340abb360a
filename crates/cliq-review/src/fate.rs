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
            Fate::Gone => Fate::Unknown { why: "the line is not among the changes that were shown".to_owned() },
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
    let ops = capture_diff_slices(Algorithm::Patience, &shown, window);
    let number = |index: usize| (start + index + 1) as u64;
    let fate = ops.iter().find(|op| op.old_range().contains(&at)).map_or(Fate::Gone, |op| match *op {
        DiffOp::Equal { old_index, new_index, .. } => Fate::Kept { now: number(new_index + at - old_index) },
        DiffOp::Replace { old_index, old_len, new_index, new_len } => {
            // As many lines as before: each is in the place of its own.
            let (from, len) = if old_len == new_len { (new_index + at - old_index, 1) } else { (new_index, new_len) };
            let cut = |line: &&str| line.chars().take(MAX_CHARS).collect::<String>();
            let lines = window.iter().skip(from).take(len.min(MAX_LINES)).map(cut).collect();
            Fate::Changed { now: number(from), lines }
        }
        DiffOp::Delete { .. } | DiffOp::Insert { .. } => Fate::Gone,
    });
    match (fate, place.side()) {
        // Other lines near the place say nothing about a removed one.
        (Fate::Changed { .. }, Side::Old) => Fate::Gone,
        (Fate::Gone, Side::New) => moved(shown.get(at).copied().unwrap_or_default(), &all),
        (fate, _) => fate,
    }
}

/// A line that is gone from its place, and is now elsewhere: only if it is long enough to be told from others, and there once.
fn moved(line: &str, all: &[&str]) -> Fate {
    let is_distinct = line.chars().filter(|c| c.is_alphanumeric()).count() >= 12;
    let mut found = all.iter().enumerate().filter(|(_, other)| **other == line);
    match (found.next(), found.next()) {
        (Some((index, _)), None) if is_distinct => Fate::Kept { now: index as u64 + 1 },
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
    let begin = all[..position].iter().rposition(|line| line.kind == LineKind::Head).map_or(0, |head| head + 1);
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
