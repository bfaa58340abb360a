//! Filter and cursor of a list of runs.

use crate::lifecycle::RunState;
use crate::run::Run;
use cliq_protocol::{RunId, Timestamp};

/// Filter for runs. An unset field matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// In one of these states; empty for all.
    pub states: Vec<RunState>,
    /// Of the team of this name.
    pub team: Option<String>,
    /// In this registered project.
    pub instance: Option<String>,
    /// Of the caller with this label.
    pub caller: Option<String>,
    /// Requested at this time or later, UTC.
    pub since: Option<Timestamp>,
    /// Requested before this time, UTC.
    pub until: Option<Timestamp>,
    /// Words, each of which begins a word of the title, the team, the reason or the id.
    pub words: Vec<String>,
    /// Whether trials of evaluations are among them.
    pub with_trials: bool,
    /// Only runs after this place of the list.
    pub after: Option<RunCursor>,
    /// At most so many.
    pub limit: u32,
}

/// A place in a list of runs, newest first: the list goes on after this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunCursor(pub RunId);

impl RunFilter {
    /// Returns the words of a search text. Signs separate words.
    #[must_use]
    pub fn words_of(text: &str) -> Vec<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let short = |word: &str| word.to_lowercase().chars().take(MAX_LENGTH).collect();
        words.map(short).take(MAX_WORDS).collect()
    }
}

/// The most words of a search text that are looked for.
const MAX_WORDS: usize = 12;
/// The most words of a run that can be found, and the longest of them in characters.
const MAX_INDEXED: usize = 300;
const MAX_LENGTH: usize = 64;

impl Run {
    /// Returns the words by which the run is found, in lower case and apart from each other by spaces: those of the title, the id, the team and the
    /// reason.
    #[must_use]
    pub fn search_words(&self) -> String {
        let texts =
            [&self.title, self.id.as_str(), self.team.as_str(), self.reason.as_deref().unwrap_or_default()];
        let mut seen = std::collections::BTreeSet::new();
        let words = texts.into_iter().flat_map(|text| text.split(|c: char| !c.is_alphanumeric()));
        let words = words.filter(|word| !word.is_empty()).take(MAX_INDEXED);
        let words = words.map(|word| word.to_lowercase().chars().take(MAX_LENGTH).collect::<String>());
        words.filter(|word| seen.insert(word.clone())).collect::<Vec<_>>().join(" ")
    }
}
