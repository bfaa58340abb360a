//! State of a line after a phase worked again: the file as it was, or the lines around it as they were shown, compared with the file as it is now.

use similar::{Algorithm, DiffOp, capture_diff_slices};

use crate::comment::Fate;
use crate::content::FileDiff;
use crate::hunk::{LineKind, hunk_lines};
use crate::place::{Place, Side};

/// The most lines that are kept of what is in the place of a line, and the most characters of each.
const MAX_LINES: usize = 8;
const MAX_CHARS: usize = 200;
/// The most lines elsewhere that are named.
const MAX_ELSEWHERE: usize = 5;

/// Knowledge of a file from the round of a comment.
#[derive(Debug, Clone, Copy, Default)]
pub struct FileBefore<'a> {
    /// The change that was shown with the comment.
    pub change: Option<&'a FileDiff>,
    /// The whole file, if it is known. Counts only if it has the line.
    pub text: Option<&'a str>,
}

/// Returns what became of a line. `now` is the file as it is; `None` if it is not there.
#[must_use]
pub fn fate_of(place: &Place, before: FileBefore<'_>, now: Option<&str>) -> Fate {
    let Some(now) = now else { return Fate::FileGone };
    let Some(known) = Known::of(place, before) else {
        let all: Vec<&str> = now.lines().collect();
        return match elsewhere(place.text(), &all) {
            Fate::Gone if place.side() == Side::New => Fate::Gone,
            found @ Fate::Elsewhere { .. } => found,
            _ => Fate::Unknown { why: "the line is not among the changes that were shown".to_owned() },
        };
    };
    // A file as git shows it has lines without their ends.
    let all: Vec<&str> = if known.is_whole { lines_of(now) } else { now.lines().collect() };
    let own = known.line;
    if !known.is_whole {
        // All lines as they were: at their place, or at one other place only. A removed line is not among them.
        let same = all
            .windows(known.lines.len().max(1))
            .enumerate()
            .filter(|(_, lines)| *lines == known.lines.as_slice());
        let same: Vec<usize> = same.map(|(index, _)| index).collect();
        let first = match same.as_slice() {
            many if many.contains(&known.first) => Some(known.first),
            [only] => Some(*only),
            [] => None,
            _ => return Fate::Unknown { why: "several places are like it".to_owned() },
        };
        match (first, place.side()) {
            (Some(first), Side::New) => return Fate::Kept { now: number(first + known.at) },
            // Its neighbours, or the begin or end of the file, are next to each other.
            (Some(first), Side::Old)
                if (known.at > 0 || first == 0)
                    && (known.at < known.lines.len() || first + known.at == all.len()) =>
            {
                return elsewhere(own, &all);
            }
            (Some(_) | None, Side::New | Side::Old) => {}
        }
    }
    // What is the same on both sides; all else lies between.
    let ops = capture_diff_slices(Algorithm::Patience, &known.lines, &all);
    let same: Vec<Same> = ops.iter().filter_map(Same::of).collect();
    match place.side() {
        Side::Old => removed(&known, &same, &all),
        Side::New => match same.iter().find(|same| (same.old..same.old + same.len).contains(&known.at)) {
            Some(found) if known.is_whole || found.len > 1 || is_told_apart(own, &known.lines, &all) => {
                Fate::Kept { now: number(found.new + known.at - found.old) }
            }
            // A brace, say, with other lines around it.
            Some(_) => Fate::Unknown { why: "the lines around it changed, and it is like others".to_owned() },
            None => match between(&same, &known, all.len()) {
                Some((from, to)) => {
                    let cut = |line: &&str| line.trim_end_matches('\r').chars().take(MAX_CHARS).collect();
                    let lines: Vec<String> =
                        all.iter().take(to).skip(from).take(MAX_LINES).map(cut).collect();
                    Fate::Changed { now: number(from), lines }
                }
                None => elsewhere(own, &all),
            },
        },
    }
}

/// Lines with what belongs to their ends but the line break.
fn lines_of(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.split('\n').collect();
    // Nothing follows the last line break.
    if lines.last() == Some(&"") {
        lines.pop();
    }
    lines
}

fn number(index: usize) -> u64 {
    index as u64 + 1
}

/// A removed line: there again if it stands between the lines that it stood between.
fn removed(known: &Known<'_>, same: &[Same], all: &[&str]) -> Fate {
    let at = known.at;
    // Both neighbours are there, next to each other.
    if same.iter().any(|same| same.old < at && at < same.old + same.len) {
        return elsewhere(known.line, all);
    }
    let before = same.iter().rev().find(|same| same.old + same.len <= at);
    let after = same.iter().find(|same| same.old >= at);
    let is_begin = known.first == 0 && before.is_none();
    let from = before.map(|same| same.new + same.len).or(is_begin.then_some(0));
    let to = after.map(|same| same.new).or(known.is_whole.then_some(all.len()));
    let (Some(from), Some(to)) = (from, to) else {
        return match elsewhere(known.line, all) {
            Fate::Gone => Fate::Gone,
            _ => Fate::Unknown { why: "the lines around it changed, and there are lines like it".to_owned() },
        };
    };
    let is_it = |line: &&str| line.trim_end_matches('\r') == known.line.trim_end_matches('\r');
    match all.get(from..to).unwrap_or_default().iter().position(is_it) {
        Some(index) => Fate::Kept { now: number(from + index) },
        None => elsewhere(known.line, all),
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

/// The lines that are in the place of a line, as a range: those between what is the same before and after it. `None` if there are none.
fn between(same: &[Same], known: &Known<'_>, now_all: usize) -> Option<(usize, usize)> {
    let at = known.at;
    let before = same.iter().rev().find(|same| same.old + same.len <= at);
    let after = same.iter().find(|same| same.old > at);
    let begin = before.map_or(0, |same| same.old + same.len);
    let end = after.map_or(known.lines.len(), |same| same.old);
    let (from, to) = match (before, after) {
        (Some(before), Some(after)) => (before.new + before.len, after.new),
        // At an end of what is known, as many lines as there were.
        (Some(before), None) => {
            let from = before.new + before.len;
            (from, now_all.min(from + (end - begin)))
        }
        (None, Some(after)) => (after.new.saturating_sub(end - begin), after.new),
        (None, None) if known.is_whole => (0, now_all),
        (None, None) => return None,
    };
    if from >= to {
        return None;
    }
    // As many lines as before: each is in the place of its own.
    if to - from == end - begin { Some((from + at - begin, from + at - begin + 1)) } else { Some((from, to)) }
}

/// Whether a line alone says which it is: it has words, and is there once before and once now.
fn is_told_apart(line: &str, before: &[&str], now: &[&str]) -> bool {
    let is_once = |lines: &[&str]| lines.iter().filter(|other| **other == line).count() == 1;
    line.contains(char::is_alphanumeric) && is_once(before) && is_once(now)
}

/// A line that is gone from its place: lines that are like it, if it has words.
fn elsewhere(line: &str, all: &[&str]) -> Fate {
    let line = line.trim_end_matches('\r');
    if !line.contains(char::is_alphanumeric) {
        return Fate::Gone;
    }
    let like = all.iter().enumerate().filter(|(_, other)| other.trim_end_matches('\r') == line);
    let lines: Vec<u64> = like.map(|(index, _)| number(index)).take(MAX_ELSEWHERE).collect();
    if lines.is_empty() { Fate::Gone } else { Fate::Elsewhere { lines } }
}

/// Lines in the round of the comment.
struct Known<'a> {
    lines: Vec<&'a str>,
    /// Index of the line among them; of a removed line, that of the line after it.
    at: usize,
    /// The line.
    line: &'a str,
    /// Index of the first of them in the file.
    first: usize,
    /// Whether they are the whole file.
    is_whole: bool,
}

impl<'a> Known<'a> {
    fn of(place: &'a Place, before: FileBefore<'a>) -> Option<Self> {
        let shown = before.change.and_then(|change| Self::of_hunk(place, change));
        let Some(text) = before.text else { return shown };
        let lines = lines_of(text);
        match place.side() {
            Side::New => {
                let at = usize::try_from(place.line()).ok()?.checked_sub(1)?;
                let cut = |line: &str| {
                    Place::new(place.path(), Side::New, 1, line).is_ok_and(|cut| cut.text() == place.text())
                };
                match lines.get(at) {
                    Some(line) if cut(line) => Some(Self { line, at, first: 0, is_whole: true, lines }),
                    _ => shown,
                }
            }
            Side::Old => {
                let shown = shown?;
                let at = shown.first + shown.at;
                let is_it = lines.get(shown.first..).is_some_and(|rest| {
                    let same = rest
                        .iter()
                        .zip(&shown.lines)
                        .filter(|(line, shown)| line.trim_end_matches('\r') == **shown);
                    same.count() == shown.lines.len()
                });
                if is_it { Some(Self { at, first: 0, is_whole: true, lines, ..shown }) } else { Some(shown) }
            }
        }
    }

    /// Lines of the hunk around a place, as they were after the change.
    fn of_hunk(place: &Place, file: &'a FileDiff) -> Option<Self> {
        let all = hunk_lines(&file.hunks);
        let position = all.iter().position(|line| line.number(place.side()) == Some(place.line()))?;
        let head = all[..position].iter().rposition(|line| line.kind == LineKind::Head);
        let begin = head.map_or(0, |head| head + 1);
        let (mut lines, mut at, mut first) = (Vec::new(), 0, None);
        for (n, line) in
            all.iter().enumerate().skip(begin).take_while(|(_, line)| line.kind != LineKind::Head)
        {
            if n == position {
                at = lines.len();
            }
            if line.kind != LineKind::Removed {
                first = first.or(line.new);
                lines.push(line.text);
            }
        }
        // A hunk that only removes begins after the line that its head names.
        let first = first.or_else(|| after_head(all.get(head?)?.text)).unwrap_or(1).saturating_sub(1);
        let first = usize::try_from(first).unwrap_or(usize::MAX);
        Some(Self { line: all[position].text, lines, at, first, is_whole: false })
    }
}

/// Number of the first line after a hunk without new lines: `@@ -1,2 +7,0 @@` stands after line 7.
fn after_head(head: &str) -> Option<u64> {
    let new = head.split(' ').find_map(|word| word.strip_prefix('+'))?;
    new.split(',').next()?.parse::<u64>().ok()?.checked_add(1)
}
