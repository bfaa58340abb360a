//! Caveats of runs: what keeps an end from being a plain success. Pure.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// Reason why a run is not a plain success, even if it completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Caveat {
    /// A phase stopped at a limit: turns, budget or context. Its handoff is partial.
    Limit,
    /// A gate passed although commands failed.
    PassWithFailures,
    /// A merge of items left parts of their work apart.
    MergeLosses,
    /// The run is a trial of an evaluation, and a check failed.
    FailedTrial,
}

impl Caveat {
    /// All caveats.
    pub const ALL: [Self; 4] = [Self::Limit, Self::PassWithFailures, Self::MergeLosses, Self::FailedTrial];

    /// Returns the word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::PassWithFailures => "pass_with_failures",
            Self::MergeLosses => "merge_losses",
            Self::FailedTrial => "failed_trial",
        }
    }

    /// Returns the caveat that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|caveat| caveat.as_str() == text)
    }

    /// Returns a short label for people.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Limit => "limit reached",
            Self::PassWithFailures => "passed with failures",
            Self::MergeLosses => "left apart by a merge",
            Self::FailedTrial => "failed trial",
        }
    }

    /// Returns an explanation for people, in a sentence.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Limit => "A phase stopped at a limit, and its handoff is partial.",
            Self::PassWithFailures => "A gate passed although commands failed.",
            Self::MergeLosses => "A merge left parts of the work of items apart: `cliq explain` names them.",
            Self::FailedTrial => "A check of the trial failed.",
        }
    }

    /// Returns the caveats of a run in order, from the document of its phases (`cliq status --json`). Runs of team phases count too.
    #[must_use]
    pub fn of_document(document: &Value) -> Vec<Self> {
        let mut found = Vec::new();
        collect(&document["phases"], &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Adds the caveats of phases. The documents are our own: their depth is that of team phases.
fn collect(phases: &Value, found: &mut Vec<Caveat>) {
    let is_list = |value: &Value| value.as_array().is_some_and(|items| !items.is_empty());
    for phase in phases.as_array().into_iter().flatten() {
        if phase.get("limited").is_some_and(|limited| !limited.is_null()) {
            found.push(Caveat::Limit);
        }
        if is_list(&phase["failing"]) {
            found.push(Caveat::PassWithFailures);
        }
        if is_list(&phase["losses"]) {
            found.push(Caveat::MergeLosses);
        }
        collect(&phase["run"]["phases"], found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_phase_with_an_unclear_end_gives_a_caveat() {
        let of = |phases: Value| Caveat::of_document(&json!({"phases": phases}));
        assert_eq!(of(json!([{"name": "a", "failing": [], "limited": null}])), []);
        assert_eq!(of(json!([{"limited": {"limit": "max_turns", "value": 3}}])), [Caveat::Limit]);
        assert_eq!(of(json!([{"failing": ["test"]}, {"failing": ["lint"]}])), [Caveat::PassWithFailures]);
        assert_eq!(of(json!([{"losses": ["a.txt"]}])), [Caveat::MergeLosses]);
        let inner = json!([{"run": {"phases": [{"failing": ["test"]}]}}, {"limited": {"limit": "budget"}}]);
        assert_eq!(of(inner), [Caveat::Limit, Caveat::PassWithFailures], "also of the runs of team phases");
        for odd in [json!(null), json!("x"), json!([1, "a", {"failing": 3, "run": []}])] {
            assert_eq!(of(odd), []);
        }
    }

    #[test]
    fn words_of_caveats_are_fixed() {
        let words = ["limit", "pass_with_failures", "merge_losses", "failed_trial"];
        for (caveat, word) in Caveat::ALL.into_iter().zip(words) {
            assert_eq!((caveat.as_str(), Caveat::parse(word)), (word, Some(caveat)));
            assert_eq!(json!(caveat), word);
        }
    }
}
