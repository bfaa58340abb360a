//! Lines of changed files that comments are about.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::hunk::hunk_lines;

/// The most bytes of a path.
const MAX_PATH: usize = 4096;
/// The most characters of a line that are kept.
const MAX_LINE: usize = 400;

/// Side of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// Lines as they are after the change.
    #[default]
    New,
    /// Lines as they were before it: removed ones.
    Old,
}

/// Line of a changed file. Paths have no control characters, and numbers begin with 1.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawPlace")]
pub struct Place {
    path: String,
    side: Side,
    line: u64,
    text: String,
}

#[derive(Deserialize)]
struct RawPlace {
    path: String,
    #[serde(default)]
    side: Side,
    line: u64,
    #[serde(default)]
    text: String,
}

/// Reason why something is not a line that a comment can be about.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// The path is empty, too long, or has control characters.
    #[error("{0:?} is not the path of a file")]
    Path(String),
    /// Lines begin with 1.
    #[error("lines are counted from 1")]
    Line,
    /// The file is not among the changes.
    #[error("{path} is not among the changes; changed files are: {known}")]
    NoFile {
        /// The path.
        path: String,
        /// Some of the changed files.
        known: String,
    },
    /// The line is not among those that the changes show.
    #[error("the changes of {path} show no {} {line}; they show {shown}", side_word(*side))]
    NoLine {
        /// The path.
        path: String,
        /// Side.
        side: Side,
        /// The number.
        line: u64,
        /// Ranges of lines that are shown.
        shown: String,
    },
}

fn side_word(side: Side) -> &'static str {
    match side {
        Side::New => "line",
        Side::Old => "removed line",
    }
}

impl TryFrom<RawPlace> for Place {
    type Error = PlaceError;

    fn try_from(raw: RawPlace) -> Result<Self, PlaceError> {
        Self::new(&raw.path, raw.side, raw.line, &raw.text)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {} {}", self.path, side_word(self.side), self.line)
    }
}

impl Place {
    /// A line of a file. `path` is relative to the workspace, `text` the line as it is shown.
    ///
    /// # Errors
    /// Returns an error if the path is empty, longer than 4,096 bytes or has control characters, or the number is 0.
    pub fn new(path: &str, side: Side, line: u64, text: &str) -> Result<Self, PlaceError> {
        if path.is_empty() || path.len() > MAX_PATH || path.chars().any(char::is_control) {
            return Err(PlaceError::Path(path.chars().take(80).collect()));
        }
        if line == 0 {
            return Err(PlaceError::Line);
        }
        let harmless = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
        let text = text.trim_end_matches(['\r', '\n']).chars().take(MAX_LINE).map(harmless).collect();
        Ok(Self { path: path.to_owned(), side, line, text })
    }

    /// Path relative to the workspace.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Side of the change.
    #[must_use]
    pub fn side(&self) -> Side {
        self.side
    }

    /// Number of the line on its side, 1-based.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.line
    }

    /// The line as it was when the comment was made; at most 400 characters.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl Content {
    /// Returns a line of the changes, for a comment.
    ///
    /// # Errors
    /// Returns an error if the changes do not show this line.
    pub fn place(&self, path: &str, side: Side, line: u64) -> Result<Place, PlaceError> {
        // Names the errors of the path and the number first.
        Place::new(path, side, line, "")?;
        let files = || self.diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
        let Some((_, file)) = files().find(|(diff, file)| diff.path_of(file) == path) else {
            let mut known: Vec<String> = files().map(|(diff, file)| diff.path_of(file)).take(8).collect();
            if files().nth(8).is_some() {
                known.push("…".to_owned());
            }
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            return Err(PlaceError::NoFile { path: path.to_owned(), known });
        };
        place_in(path, &file.hunks, side, line)
    }
}

/// Returns a line of the hunks of a file, for a comment.
///
/// # Errors
/// Returns an error if the hunks do not show this line.
pub fn place_in(path: &str, hunks: &str, side: Side, line: u64) -> Result<Place, PlaceError> {
    let lines = hunk_lines(hunks);
    let found = lines.iter().find(|shown| shown.number(side) == Some(line));
    match found {
        Some(shown) => Place::new(path, side, line, shown.text),
        None => {
            let of = |side| ranges(lines.iter().filter_map(|shown| shown.number(side)));
            let (mut shown, other) = match side {
                Side::New => (of(Side::New), of(Side::Old)),
                Side::Old => (of(Side::Old), of(Side::New)),
            };
            if shown == NONE && other != NONE {
                let word = if side == Side::New { "removed lines" } else { "lines that are not removed" };
                shown = format!("only {word}: {other}");
            }
            let path = path.to_owned();
            Err(PlaceError::NoLine { path, side, line, shown })
        }
    }
}

/// Numbers in ascending order as ranges: `1-4, 9`.
fn ranges(numbers: impl Iterator<Item = u64>) -> String {
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    for n in numbers {
        match ranges.last_mut() {
            Some((_, end)) if end.checked_add(1) == Some(n) => *end = n,
            _ => ranges.push((n, n)),
        }
    }
    let mut texts: Vec<String> =
        ranges.iter().take(8).map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") }).collect();
    if ranges.len() > 8 {
        texts.push("…".to_owned());
    }
    if texts.is_empty() { NONE.to_owned() } else { texts.join(", ") }
}

/// The word for no lines.
const NONE: &str = "none";
