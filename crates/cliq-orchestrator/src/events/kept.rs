//! Phases that a run keeps from an earlier one.

use cliq_protocol::{CommandResult, PhaseKind, PhaseName, RunId};
use cliq_workflow::ValidatedWorkflow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::{Kept, KeptOutcome};

/// Status of a phase that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeptStatus {
    /// The phase completed.
    Completed,
    /// The phase was skipped.
    Skipped,
}

/// Item that failed, and without which its phase went on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FailedItem {
    /// Index of the item, 0-based.
    pub index: u32,
    /// Reason why it failed, for people.
    pub reason: String,
}

/// A phase that is not run again, with its outcome in an earlier run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KeptPhase {
    /// The phase.
    pub phase: PhaseName,
    /// Type of the phase.
    pub kind: PhaseKind,
    /// Run in which it worked.
    pub run_id: RunId,
    /// Status of the phase.
    pub status: KeptStatus,
    /// Items of a phase with `for_each`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items: Vec<Value>,
    /// Items whose condition was false.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<u32>,
    /// Items that failed, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<FailedItem>,
    /// For a gate: results of its commands in the last evaluation. For another phase: those of its commands and of the commands of its items that
    /// failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<CommandResult>,
    /// For a gate: answer of its agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// Failure of an agent after it had reported that it was complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contradicted: Option<String>,
    /// Parts of the work of its items that their merge left apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<String>,
}

impl KeptPhase {
    /// A phase without details.
    pub(crate) fn new(phase: PhaseName, kind: PhaseKind, run_id: RunId, status: KeptStatus) -> Self {
        let (items, skipped, failed, results, losses) = Default::default();
        let (answer, contradicted) = (None, None);
        Self { phase, kind, run_id, status, items, skipped, failed, results, answer, contradicted, losses }
    }

    /// Reason why an item failed; `None` if it did not.
    pub(crate) fn failure(&self, item: u32) -> Option<&str> {
        self.failed.iter().find(|failed| failed.index == item).map(|failed| failed.reason.as_str())
    }

    /// Records that an item failed, or that it did not after all.
    pub(crate) fn set_failure(&mut self, index: u32, reason: Option<String>) {
        self.failed.retain(|failed| failed.index != index);
        self.failed.extend(reason.map(|reason| FailedItem { index, reason }));
    }

    /// Returns the outcome for the machine; `None` if the team has no such phase.
    pub(crate) fn as_input(&self, workflow: &ValidatedWorkflow) -> Option<Kept> {
        let phase = workflow.find(self.phase.as_str())?;
        let spec = workflow.phase(phase);
        let outcome = match self.status {
            KeptStatus::Skipped => KeptOutcome::Skipped,
            KeptStatus::Completed if spec.kind.is_gate() => {
                KeptOutcome::Passed { results: self.results.clone(), answer: self.answer.clone() }
            }
            KeptStatus::Completed if spec.for_each.is_some() => KeptOutcome::Items {
                values: self.items.clone(),
                skipped: self.skipped.clone(),
                failed: self.failed.iter().map(|failed| (failed.index, failed.reason.clone())).collect(),
            },
            KeptStatus::Completed => KeptOutcome::Completed,
        };
        Some(Kept { phase, outcome })
    }
}
