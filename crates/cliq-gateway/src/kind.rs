//! The types of signals there are (docs/signals.md).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Type of a signal: an event or a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalType {
    /// A plan is to be planned.
    PlanStart,
    /// The planner is done: the plan is ready.
    PlannerFinished,
    /// One of several planners has a draft. Payload: `planner_id`.
    PlannerDraftFinished,
    /// The architect is done: the first wave begins. No payload.
    ElaboratorFinished,
    /// A wave is to begin. Payload: `wave_number`.
    ImplementWave,
    /// A task of a wave is done. Payload: `wave_number`, `task_number`.
    ImplementTaskFinished,
    /// The coder or the fixer is done: the reviewer is next.
    ImplementFinished,
    /// The next wave is to begin although tasks of this one failed.
    AdvanceWave,
    /// Repeat the failed tasks of this wave.
    RetryWave,
    /// The reviewer approves.
    ReviewApproved,
    /// The reviewer requests changes.
    ReviewChangesRequested,
    /// The master agent approves: the plan is done.
    VerifyApproved,
    /// The master agent does not.
    VerifyFailed,
}

const NAMES: [(SignalType, &str); 13] = [
    (SignalType::PlanStart, "plan_start"),
    (SignalType::PlannerFinished, "planner_finished"),
    (SignalType::PlannerDraftFinished, "planner_draft_finished"),
    (SignalType::ElaboratorFinished, "elaborator_finished"),
    (SignalType::ImplementWave, "implement_wave"),
    (SignalType::ImplementTaskFinished, "implement_task_finished"),
    (SignalType::ImplementFinished, "implement_finished"),
    (SignalType::AdvanceWave, "advance_wave"),
    (SignalType::RetryWave, "retry_wave"),
    (SignalType::ReviewApproved, "review_approved"),
    (SignalType::ReviewChangesRequested, "review_changes_requested"),
    (SignalType::VerifyApproved, "verify_approved"),
    (SignalType::VerifyFailed, "verify_failed"),
];

/// Other names that are accepted, and what they mean.
const ALIASES: [(&str, SignalType); 6] = [
    ("architect_finished", SignalType::ElaboratorFinished),
    ("review_changes", SignalType::ReviewChangesRequested),
    ("readiness_approved", SignalType::VerifyApproved),
    ("master_approved", SignalType::VerifyApproved),
    ("readiness_changes", SignalType::VerifyFailed),
    ("readiness_changes_requested", SignalType::VerifyFailed),
];

/// Signal types that only a person may emit, by a command (docs/signals.md).
const COMMANDS: [(&str, &str); 5] = [
    ("start_over", "start-over"),
    ("reimplement", "reimplement"),
    ("request_review", "request-review"),
    ("cancel", "cancel"),
    ("reopen", "reopen"),
];

impl SignalType {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(kind, _)| *kind)
    }

    /// Every name and alias with its type.
    pub(crate) fn spellings() -> impl Iterator<Item = (&'static str, Self)> {
        let names = NAMES.iter().map(|(kind, name)| (*name, *kind));
        names.chain(ALIASES.iter().copied())
    }

    /// Name in the queue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        // The table is in the order of the enum; a test holds that.
        NAMES[self as usize].1
    }

    /// Reads a name or an alias; `-` and `_` are the same.
    ///
    /// # Errors
    /// The type does not exist. Says which there are, which one was probably meant, and for what only a person may do the
    /// command.
    pub fn parse(name: &str) -> Result<Self, String> {
        let plain = name.trim().replace('-', "_");
        let known = NAMES.iter().find(|(_, other)| *other == plain).map(|(kind, _)| *kind);
        let alias = || ALIASES.iter().find(|(other, _)| *other == plain).map(|(_, kind)| *kind);
        if let Some(kind) = known.or_else(alias) {
            return Ok(kind);
        }
        if let Some((_, command)) = COMMANDS.iter().find(|(other, _)| *other == plain) {
            return Err(format!(
                "`{name}` is not a signal: only a person may do that, with `cliq plan {command} PLAN`"
            ));
        }
        let nearest = NAMES
            .iter()
            .map(|(_, other)| (strsim::damerau_levenshtein(other, &plain), *other))
            .min()
            .filter(|(distance, _)| *distance <= 3);
        let meant = nearest.map_or(String::new(), |(_, other)| format!("; did you mean `{other}`?"));
        let names: Vec<&str> = NAMES.iter().map(|(_, other)| *other).collect();
        Err(format!("there is no signal type `{name}`{meant}; the types are: {}", names.join(", ")))
    }
}

impl fmt::Display for SignalType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_names_are_read_back() {
        assert!(SignalType::all().enumerate().all(|(at, kind)| kind as usize == at));
        for kind in SignalType::all() {
            assert_eq!(SignalType::parse(kind.as_str()), Ok(kind));
            assert_eq!(SignalType::parse(&kind.as_str().replace('_', "-")), Ok(kind));
        }
    }

    #[test]
    fn aliases_mean_what_the_specification_says() {
        for (alias, name) in [
            ("architect_finished", "elaborator_finished"),
            ("architect-finished", "elaborator_finished"),
            ("review-changes", "review_changes_requested"),
            ("readiness_approved", "verify_approved"),
            ("master_approved", "verify_approved"),
            ("readiness-changes", "verify_failed"),
            ("readiness-changes-requested", "verify_failed"),
        ] {
            assert_eq!(SignalType::parse(alias).map(SignalType::as_str), Ok(name));
        }
    }

    #[test]
    fn unknown_type_is_refused_with_a_suggestion() {
        let error = SignalType::parse("implement_finish").expect_err("a typo");
        assert!(
            error.contains("did you mean `implement_finished`?") && error.contains("verify_failed"),
            "{error}"
        );
        let error = SignalType::parse("start-over").expect_err("a person's");
        assert!(error.contains("`cliq plan start-over PLAN`"), "{error}");
        for name in ["", "IMPLEMENT_FINISHED", "implement finished", "done"] {
            assert!(SignalType::parse(name).is_err(), "{name:?}");
        }
    }
}
