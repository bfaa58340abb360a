//! Rows of changed files, with comments at their lines and a cursor.

use cliq_review::{LineKind, Side, hunk_lines};

use crate::model::{ChangedPart, Changes};
use crate::text::{StyledLine, Tone};

/// Line to which a comment can be attached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinePlace {
    pub(crate) path: String,
    pub(crate) side: Side,
    pub(crate) line: u64,
    /// Numbers of repository and file.
    file: (usize, usize),
}

/// Row of the display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChangeRow {
    pub(crate) line: StyledLine,
    /// Place of the line, if comments can be made on it.
    pub(crate) place: Option<LinePlace>,
    /// Whether a file begins here.
    pub(crate) is_file: bool,
}

/// Changed files.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChangesView {
    pub(crate) changes: Option<Changes>,
    pub(crate) rows: Vec<ChangeRow>,
    pub(crate) cursor: usize,
    pub(crate) top: usize,
    pub(crate) left: usize,
    /// Problem of the last request.
    pub(crate) problem: Option<String>,
}

impl ChangesView {
    /// Takes changes. The cursor stays where it is if there are rows.
    pub(crate) fn take(&mut self, reply: Result<Changes, String>, height: usize) {
        match reply {
            Ok(changes) => {
                self.problem = None;
                if self.changes.as_ref() == Some(&changes) {
                    return;
                }
                let at = self.rows.get(self.cursor).and_then(|row| row.place.clone());
                self.rows = rows(&changes);
                self.changes = Some(changes);
                let found =
                    at.and_then(|place| self.rows.iter().position(|row| row.place.as_ref() == Some(&place)));
                self.cursor = found.unwrap_or(self.cursor);
            }
            Err(problem) => *self = Self { problem: Some(problem), ..Self::default() },
        }
        self.clamp(height);
    }

    pub(crate) fn go_by(&mut self, lines: isize, height: usize) {
        self.cursor = self.cursor.saturating_add_signed(lines);
        self.clamp(height);
    }

    /// Moves the cursor to the next or previous row that has a text, ignoring case. Returns whether there is one.
    pub(crate) fn find(&mut self, text: &str, forward: bool, height: usize) -> bool {
        let text = text.to_lowercase();
        let has = |at: &usize| self.rows[*at].line.text().to_lowercase().contains(&text);
        let found = if forward {
            (self.cursor + 1..self.rows.len()).find(has)
        } else {
            (0..self.cursor.min(self.rows.len())).rev().find(has)
        };
        self.cursor = found.unwrap_or(self.cursor);
        self.clamp(height);
        found.is_some()
    }

    /// Moves the cursor to the next or previous file.
    pub(crate) fn go_to_file(&mut self, forward: bool, height: usize) {
        let files = || self.rows.iter().enumerate().filter(|(_, row)| row.is_file).map(|(at, _)| at);
        let found = if forward {
            files().find(|at| *at > self.cursor)
        } else {
            files().rfind(|at| *at < self.cursor)
        };
        self.cursor = found.unwrap_or(self.cursor);
        self.clamp(height);
    }

    pub(crate) fn clamp(&mut self, height: usize) {
        let height = height.max(1);
        self.cursor = self.cursor.min(self.rows.len().saturating_sub(1));
        if self.cursor < self.top {
            self.top = self.cursor;
        }
        if self.cursor >= self.top + height {
            self.top = self.cursor + 1 - height;
        }
        self.top = self.top.min(self.rows.len().saturating_sub(height));
    }

    /// Place of the line at the cursor.
    pub(crate) fn place(&self) -> Option<&LinePlace> {
        self.rows.get(self.cursor)?.place.as_ref()
    }

    /// Hunks of the file of a place.
    pub(crate) fn hunks(&self, place: &LinePlace) -> Option<&str> {
        let (diff, file) = place.file;
        Some(&self.changes.as_ref()?.parts.get(diff)?.diff.files.get(file)?.hunks)
    }
}

fn rows(changes: &Changes) -> Vec<ChangeRow> {
    let mut rows = Vec::new();
    let note = |rows: &mut Vec<ChangeRow>, tone, text: &str| {
        rows.push(ChangeRow { line: StyledLine::new(tone, text), place: None, is_file: false });
    };
    if let Some(remark) = &changes.remark {
        note(&mut rows, Tone::Dim, remark);
    }
    if let Some(detail) = &changes.review {
        for earlier in &detail.content.earlier_comments {
            let head =
                format!("[{}] {} on {}: {}", earlier.number, earlier.actor, earlier.place, earlier.text);
            note(&mut rows, Tone::Accent, &head);
            note(&mut rows, Tone::Dim, &format!("    {}", earlier.sentence()));
            if let Some(answer) = &earlier.answer {
                note(&mut rows, Tone::Good, &format!("    answer: {answer}"));
            }
        }
    }
    for (repo, ChangedPart { title, diff }) in changes.parts.iter().enumerate() {
        if let Some(title) = title {
            note(&mut rows, Tone::Strong, &format!("activation {title}"));
        }
        for (number, file) in diff.files.iter().enumerate() {
            let path = diff.path_of(file);
            let from = file.old_path.as_ref().map(|old| format!(" (was {old})")).unwrap_or_default();
            let line = StyledLine::new(Tone::Strong, &format!("{path}{from}"))
                .with(Tone::Dim, &format!("  {}", file.change))
                .with(Tone::Added, &format!("  +{}", file.added))
                .with(Tone::Removed, &format!(" −{}", file.removed));
            rows.push(ChangeRow { line, place: None, is_file: true });
            if file.binary {
                note(&mut rows, Tone::Dim, "  not text");
            } else if file.hunks.is_empty() && file.added + file.removed > 0 {
                note(
                    &mut rows,
                    Tone::Dim,
                    "  too large to be shown here: `o` opens the page, `cliq diff` prints it",
                );
            }
            for hunk in hunk_lines(&file.hunks) {
                let (sign, tone, side) = match hunk.kind {
                    LineKind::Head => {
                        note(&mut rows, Tone::Accent, hunk.text);
                        continue;
                    }
                    LineKind::Same => (' ', Tone::Plain, Side::New),
                    LineKind::Added => ('+', Tone::Added, Side::New),
                    LineKind::Removed => ('-', Tone::Removed, Side::Old),
                };
                let line = hunk.number(side);
                let shown = line.map_or(String::new(), |line| line.to_string());
                let place =
                    line.map(|line| LinePlace { path: path.clone(), side, line, file: (repo, number) });
                let styled = StyledLine::new(Tone::Dim, &format!("{shown:>5} "))
                    .with(tone, &format!("{sign}{}", hunk.text));
                let comments = comments(changes, place.as_ref());
                rows.push(ChangeRow { line: styled, place, is_file: false });
                for (by, text) in comments {
                    note(&mut rows, Tone::Accent, &format!("      └ {by}: {text}"));
                }
            }
            if file.lines_left_out > 0 {
                note(&mut rows, Tone::Dim, &format!("  … {} more lines", file.lines_left_out));
            }
        }
        if diff.more_files > 0 {
            note(&mut rows, Tone::Dim, &format!("… {} more files", diff.more_files));
        }
    }
    rows
}

/// Comments of the review on a line.
fn comments(changes: &Changes, place: Option<&LinePlace>) -> Vec<(String, String)> {
    let (Some(detail), Some(place)) = (&changes.review, place) else { return Vec::new() };
    let said = detail.review.comments.iter().filter(|said| {
        said.comment
            .place
            .as_ref()
            .is_some_and(|at| at.path() == place.path && at.side() == place.side && at.line() == place.line)
    });
    said.map(|said| (said.comment.actor.clone(), said.comment.text.clone())).collect()
}
