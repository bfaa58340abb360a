//! Caveats of runs: what keeps an end from being a plain success. Pure.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::collections::HashSet;

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
    /// An exec phase completed although commands failed: `escalate_on_fail: false`.
    FailedCommands,
    /// A phase completed although items of it failed: `on_item_failure: continue`.
    FailedItems,
    /// An agent reported that it was complete, and failed after that.
    Contradicted,
    /// A merge of items left parts of their work apart.
    MergeLosses,
    /// The run is a trial of an evaluation, and a check failed.
    FailedTrial,
}

impl Caveat {
    /// All caveats.
    pub const ALL: [Self; 7] = [
        Self::Limit,
        Self::PassWithFailures,
        Self::FailedCommands,
        Self::FailedItems,
        Self::Contradicted,
        Self::MergeLosses,
        Self::FailedTrial,
    ];

    /// Returns the word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Limit => "limit",
            Self::PassWithFailures => "pass_with_failures",
            Self::FailedCommands => "failed_commands",
            Self::FailedItems => "failed_items",
            Self::Contradicted => "contradicted",
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
            Self::FailedCommands => "failed commands",
            Self::FailedItems => "failed items",
            Self::Contradicted => "failed after it completed",
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
            Self::FailedCommands => "A phase went on although commands failed.",
            Self::FailedItems => "A phase completed although items of it failed.",
            Self::Contradicted => "An agent reported that it was complete, and failed after that.",
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
    let rows = || phases.as_array().into_iter().flatten();
    let is_completed = |phase: &&Value| text(phase, "status") == "completed";
    let completed: HashSet<&str> = rows().filter(is_completed).map(|phase| text(phase, "name")).collect();
    for phase in rows() {
        if is_completed(&phase) && text(phase, "type") == "exec" && has_failed(&phase["commands"]) {
            found.push(Caveat::FailedCommands);
        }
        // Items have the name of their phase and a number: `work.2`.
        if text(phase, "status") == "failed"
            && text(phase, "name").split_once('.').is_some_and(|(whole, _)| completed.contains(whole))
        {
            found.push(Caveat::FailedItems);
        }
        if phase.get("limited").is_some_and(|limited| !limited.is_null()) {
            found.push(Caveat::Limit);
        }
        if is_list(&phase["failing"]) {
            found.push(Caveat::PassWithFailures);
        }
        if phase["contradicted"].is_string() {
            found.push(Caveat::Contradicted);
        }
        if is_list(&phase["losses"]) {
            found.push(Caveat::MergeLosses);
        }
        collect(&phase["run"]["phases"], found);
    }
}

fn text<'document>(phase: &'document Value, field: &str) -> &'document str {
    phase[field].as_str().unwrap_or_default()
}

fn has_failed(commands: &Value) -> bool {
    commands.as_array().into_iter().flatten().any(|command| command["pass"] == false)
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
        assert_eq!(of(json!([{"contradicted": "exit status 1"}])), [Caveat::Contradicted]);
        let commands = json!([{"name": "lint", "pass": false}, {"name": "test", "pass": true}]);
        let row =
            |name: &str, kind: &str, status: &str| json!({"name": name, "type": kind, "status": status});
        let exec =
            |status: &str| json!([{"name": "a", "type": "exec", "status": status, "commands": commands}]);
        assert_eq!(of(exec("completed")), [Caveat::FailedCommands]);
        assert_eq!(of(exec("escalated")), [], "the run has not completed");
        let items = |whole: &str| {
            of(json!([
                row("a", "standard", whole),
                row("a.0", "standard", "failed"),
                row("b", "exec", "completed")
            ]))
        };
        assert_eq!((items("completed"), items("escalated")), (vec![Caveat::FailedItems], vec![]));
        let inner = json!([{"run": {"phases": [{"failing": ["test"]}]}}, {"limited": {"limit": "budget"}}]);
        assert_eq!(of(inner), [Caveat::Limit, Caveat::PassWithFailures], "also of the runs of team phases");
        for odd in [json!(null), json!("x"), json!([1, "a", {"failing": 3, "run": []}])] {
            assert_eq!(of(odd), []);
        }
    }

    #[test]
    fn words_of_caveats_are_fixed() {
        let words = [
            "limit",
            "pass_with_failures",
            "failed_commands",
            "failed_items",
            "contradicted",
            "merge_losses",
            "failed_trial",
        ];
        for (caveat, word) in Caveat::ALL.into_iter().zip(words) {
            assert_eq!((caveat.as_str(), Caveat::parse(word)), (word, Some(caveat)));
            assert_eq!(json!(caveat), word);
        }
    }
}
