//! Comments on a review: they are kept, and decide nothing. Those on lines go along with a request for changes (docs/reviews.md).

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::place::{Place, Side};
use crate::via::Via;
use cliq_protocol::Timestamp;

/// Words of a person or program beside the answers. They decide nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Id by the sender. One that comes twice counts once.
    pub id: String,
    /// Author: the user of the machine, or the label of a token.
    pub actor: String,
    /// The way by which it came.
    pub via: Via,
    /// The words.
    pub text: String,
    /// Line that the comment is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// A comment that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedComment {
    /// Time of arrival.
    pub at: Timestamp,
    /// The comment.
    #[serde(flatten)]
    pub comment: Comment,
}

/// Returns comments on lines as instructions for an agent: numbered, each with path, line, the text of the line and the words.
#[must_use]
pub(crate) fn instructions<'a>(comments: impl IntoIterator<Item = (&'a Place, &'a str)>) -> String {
    let mut text = "Comments on lines:\n".to_owned();
    for (n, (place, words)) in comments.into_iter().enumerate() {
        let _ = write!(text, "\n[{}] ", n + 1);
        text.push_str(&guidance(place, words));
    }
    text.push_str(
        "\nAnswer each of them in your result, on a line that begins with its number, such as `[1]`.",
    );
    text
}

/// Returns a comment on a line as guidance for an agent at work: path, line, the text of the line and the words.
#[must_use]
pub fn guidance(place: &Place, words: &str) -> String {
    let mut text = format!("{place}\n    > {}\n", place.text().trim_end());
    for line in words.trim().lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// Returns comments on lines for programs: `number`, `path`, `side`, `line`, `line_text`, `text`.
pub(crate) fn documents<'a>(comments: impl IntoIterator<Item = (&'a Place, &'a str)>) -> Value {
    let document = |(n, (place, words)): (usize, (&Place, &str))| json!({"number": n + 1, "path": place.path(), "side": place.side(), "line": place.line(), "line_text": place.text(), "text": words});
    comments.into_iter().enumerate().map(document).collect()
}

/// Returns the answer of an agent to the comment with a number: the lines of its result from `[N]` on, up to a blank line or the next number.
#[must_use]
pub fn answer_to(number: usize, result: &str) -> Option<String> {
    let mut found: Option<String> = None;
    let mut is_open = false;
    for line in result.lines() {
        let said = match numbered(line) {
            Some((numbers, rest)) => {
                is_open = numbers.contains(&number);
                rest
            }
            None => {
                // A blank line or a fence of code ends an answer.
                is_open &= !line.trim().is_empty() && !line.trim_start().starts_with("```");
                line.trim()
            }
        };
        if is_open {
            let answer = found.get_or_insert_default();
            if !answer.is_empty() {
                answer.push('\n');
            }
            answer.push_str(said);
        }
    }
    let answer = found?.trim().chars().take(MAX_ANSWER).collect::<String>();
    (!answer.is_empty()).then_some(answer)
}

/// The most characters of an answer.
const MAX_ANSWER: usize = 2000;

/// The numbers and the text of a line such as `- **[2]**, [3]: Done`.
fn numbered(line: &str) -> Option<(Vec<usize>, &str)> {
    let mut rest = line.trim_start().trim_start_matches(['-', '*', '>', '#', ' ', '`']);
    let mut numbers = Vec::new();
    while let Some((number, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let Ok(number) = number.trim().parse() else { break };
        numbers.push(number);
        rest = after.trim_start_matches(['*', ':', '`', ' ']);
        let next = rest.trim_start_matches([',', '&', '*', '`', ' ']);
        let next = next.strip_prefix("and ").unwrap_or(next).trim_start_matches(['*', '`', ' ']);
        if next.starts_with('[') {
            rest = next;
        }
    }
    (!numbers.is_empty()).then_some((numbers, rest))
}

/// A comment of the round before, and what became of its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierComment {
    /// Number in the request for changes, 1-based.
    pub number: u64,
    /// Author.
    pub actor: String,
    /// The words.
    pub text: String,
    /// The line.
    pub place: Place,
    /// State of the line now.
    pub fate: Fate,
    /// Path of the file now, if it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renamed: Option<String>,
    /// Answer of the phase that worked again, if its result has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// State of a line in the round after the comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fate", rename_all = "snake_case")]
pub enum Fate {
    /// The line is in the file as it was. A removed line is there again.
    Kept {
        /// Number of the line now, 1-based.
        now: u64,
    },
    /// Other lines are in its place.
    Changed {
        /// Number of the first of them, 1-based.
        now: u64,
        /// The lines.
        lines: Vec<String>,
    },
    /// The line is gone from its place, or still removed, and lines like it are elsewhere in the file.
    Elsewhere {
        /// Numbers of the first of them, 1-based.
        lines: Vec<u64>,
    },
    /// The line is not in its place, and none with its words is in the file. A removed line is still removed.
    Gone,
    /// The file is not there.
    FileGone,
    /// Unknown state.
    Unknown {
        /// Reason.
        why: String,
    },
}

impl EarlierComment {
    /// Returns in a sentence what became of the line.
    #[must_use]
    pub fn sentence(&self) -> String {
        let fate = self.fate_in_words();
        match &self.renamed {
            Some(path) => format!("{fate}, in {path}"),
            None => fate,
        }
    }

    fn fate_in_words(&self) -> String {
        match (&self.fate, self.place.side()) {
            (Fate::Kept { now }, Side::New) if *now == self.place.line() => {
                "the line is as it was".to_owned()
            }
            (Fate::Kept { now }, Side::New) => format!("the line is as it was, now line {now}"),
            (Fate::Kept { now }, Side::Old) => format!("the line is there again, as line {now}"),
            (Fate::Changed { now, .. }, _) => format!("changed, now line {now}"),
            (Fate::Elsewhere { lines }, side) => {
                let lines: Vec<String> = lines.iter().map(u64::to_string).collect();
                let (still, word) = (
                    if side == Side::Old { "still " } else { "" },
                    if lines.len() == 1 { "line" } else { "lines" },
                );
                format!("{still}gone from its place; like it: {word} {}", lines.join(", "))
            }
            (Fate::Gone, Side::New) => "the line was removed".to_owned(),
            (Fate::Gone, Side::Old) => "the line is still removed".to_owned(),
            (Fate::FileGone, Side::New) => "there is no file of this name any more".to_owned(),
            (Fate::FileGone, Side::Old) => "there is still no file of this name".to_owned(),
            (Fate::Unknown { why }, _) => format!("unknown: {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_by_number() {
        let result =
            "Did it all.\n\n[1] Uses let now.\n- **[2]**: Kept,\n  because of the test.\n[3]\n\n[10] no\n";
        assert_eq!(answer_to(1, result).as_deref(), Some("Uses let now."));
        assert_eq!(answer_to(2, result).as_deref(), Some("Kept,\nbecause of the test."));
        assert_eq!(answer_to(3, result), None);
        assert_eq!(answer_to(10, result).as_deref(), Some("no"));
        let result = "[7], [8] and **[9]**: both\n\n[1] one\n[1] two\n```\n[3] code\n```\nend\n[4] [link](x)";
        for (number, answer) in
            [(7, "both"), (8, "both"), (9, "both"), (1, "one\ntwo"), (3, "code"), (4, "[link](x)")]
        {
            assert_eq!(answer_to(number, result).as_deref(), Some(answer), "{number}");
        }
        for strange in ["[", "[]", "[1", "1]", "[x] y", "[99999999999999999999999] y", ""] {
            assert_eq!(answer_to(1, strange), None);
        }
    }
}
