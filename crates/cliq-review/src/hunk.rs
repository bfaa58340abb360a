//! Lines of a change, as `git diff` prints them.

use crate::place::Side;

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    /// Head of a hunk: `@@ -1,3 +1,4 @@`.
    Head,
    /// Line that did not change.
    Same,
    /// New line.
    Added,
    /// Line that is gone.
    Removed,
}

/// Line of a hunk, with its numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkLine<'a> {
    /// Kind.
    pub kind: LineKind,
    /// Number before the change.
    pub old: Option<u64>,
    /// Number after the change.
    pub new: Option<u64>,
    /// Text without the sign.
    pub text: &'a str,
}

impl HunkLine<'_> {
    /// Number that the line has on a side of the change. On the old side only removed lines have one.
    #[must_use]
    pub fn number(&self, side: Side) -> Option<u64> {
        match side {
            Side::New => self.new,
            Side::Old => self.old.filter(|_| self.kind == LineKind::Removed),
        }
    }
}

/// Returns the lines of hunks with their numbers. Any text gives lines; what precedes the first head counts from 0.
#[must_use]
pub fn hunk_lines(hunks: &str) -> Vec<HunkLine<'_>> {
    let (mut old, mut new) = (0_u64, 0_u64);
    let mut lines = Vec::new();
    for line in hunks.lines() {
        let (kind, text) = match line.as_bytes().first() {
            Some(b'@') => (LineKind::Head, line),
            Some(b'+') => (LineKind::Added, &line[1..]),
            Some(b'-') => (LineKind::Removed, &line[1..]),
            // "\ No newline at end of file"
            Some(b'\\') => continue,
            _ => (LineKind::Same, line.get(1..).unwrap_or_default()),
        };
        if kind == LineKind::Head {
            (old, new) = numbers(line).unwrap_or((old, new));
            lines.push(HunkLine { kind, old: None, new: None, text });
            continue;
        }
        let (has_old, has_new) = (kind != LineKind::Added, kind != LineKind::Removed);
        lines.push(HunkLine { kind, old: has_old.then_some(old), new: has_new.then_some(new), text });
        old = old.saturating_add(u64::from(has_old));
        new = new.saturating_add(u64::from(has_new));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_lines() {
        let hunks = "@@ -1,3 +1,3 @@ fn\n a\n-b\n-c\n+d\n\\ No newline at end of file\n@@ -9 +9,2 @@\n+x\n";
        let read = hunk_lines(hunks);
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
        // A line that did not change has a number on the new side only: a comment on it is about the file as it is.
        assert_eq!((read[1].number(Side::Old), read[2].number(Side::Old)), (None, Some(2)));
    }

    #[test]
    fn hostile_hunks() {
        for hunks in
            ["", "@@", "@@ -x +y @@", "\u{e9}", "+", "-\n+\n \n\\", "@@ -99999999999999999999 +1 @@\n-a"]
        {
            let _ = hunk_lines(hunks);
        }
        let last = hunk_lines("@@ -18446744073709551615 +18446744073709551615 @@\n a\n b");
        assert_eq!(last.last().and_then(|line| line.new), Some(u64::MAX));
    }
}
