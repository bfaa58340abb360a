//! Phases that a new run keeps from an earlier one (docs/changed.md): they are done when it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cliq_gate::{Gate, GateEvent, GateState};
use cliq_protocol::CommandResult;
use cliq_workflow::{PhaseId, ValidatedWorkflow};
use serde_json::Value;

use super::Effect;
use super::machine::{Pipeline, gate_spec};
use super::phases::Done;
use super::record::PhaseState;

/// A phase that is not run again.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The phase, one of the main phases.
    pub phase: PhaseId,
    /// Outcome of the phase in the earlier run.
    pub outcome: KeptOutcome,
}

/// Outcome of a phase that is kept.
#[derive(Debug, Clone, PartialEq)]
pub enum KeptOutcome {
    /// The phase was skipped.
    Skipped,
    /// The phase completed.
    Completed,
    /// The gate passed.
    Passed {
        /// Results of its commands in the last evaluation.
        results: Vec<CommandResult>,
        /// Answer of its agent.
        answer: Option<Value>,
    },
    /// All items of the phase ended.
    Items {
        /// The items.
        values: Vec<Value>,
        /// Items whose condition was false.
        skipped: Vec<u32>,
        /// Items that failed, with the reason.
        failed: BTreeMap<u32, String>,
    },
}

impl Kept {
    /// Whether the outcome is one that the phase can have: a gate that did not pass cannot be kept.
    #[must_use]
    pub fn fits(&self, workflow: &ValidatedWorkflow) -> bool {
        let phase = workflow.phase(self.phase);
        match &self.outcome {
            KeptOutcome::Skipped => true,
            KeptOutcome::Completed => !phase.kind.is_gate() && phase.for_each.is_none(),
            KeptOutcome::Passed { results, answer } => {
                phase.kind.is_gate() && passed(workflow, self.phase, results, answer.as_ref()).is_some()
            }
            KeptOutcome::Items { .. } => phase.for_each.is_some(),
        }
    }
}

/// Returns a gate that has passed with these results and this answer; `None` if they do not pass it.
fn passed(
    workflow: &ValidatedWorkflow,
    gate: PhaseId,
    results: &[CommandResult],
    answer: Option<&Value>,
) -> Option<Gate> {
    let mut passed = Gate::new(gate_spec(workflow, workflow.phase(gate)));
    passed.step(GateEvent::Start);
    passed.step(GateEvent::CommandsFinished(results.to_vec()));
    passed.step(GateEvent::AgentAnswered(answer.cloned()));
    (*passed.state() == GateState::Passed).then_some(passed)
}

impl Pipeline {
    /// Starts the phases that are not kept and whose dependencies are. A phase whose kept outcome does not fit it runs.
    pub(super) fn start_with(&mut self, kept: Vec<Kept>, out: &mut Vec<Effect>) {
        let workflow = Arc::clone(&self.workflow);
        let known = |kept: &Kept| kept.phase.index() < self.phases.len() && kept.phase.item().is_none();
        let kept: Vec<Kept> = kept.into_iter().filter(known).collect();
        for kept in kept.into_iter().filter(|kept| kept.fits(&workflow)) {
            self.keep(kept);
        }
        let all: BTreeSet<PhaseId> = workflow.phases().map(|(id, _)| id).collect();
        self.count_anew(&all, out);
    }

    fn keep(&mut self, kept: Kept) {
        let workflow = Arc::clone(&self.workflow);
        let spec = workflow.phase(kept.phase);
        if spec.support {
            return;
        }
        let (done, state) = match kept.outcome {
            KeptOutcome::Skipped => (Done::Skipped, PhaseState::Skipped),
            KeptOutcome::Completed | KeptOutcome::Passed { .. } | KeptOutcome::Items { .. } => {
                (Done::Completed, PhaseState::Completed)
            }
        };
        self.phases.set_state(kept.phase, state);
        let record = self.phases.phase_mut(kept.phase);
        record.done = Some(done);
        record.is_decided = spec.when.is_some() || spec.for_each.is_some();
        match kept.outcome {
            KeptOutcome::Skipped | KeptOutcome::Completed => {}
            KeptOutcome::Passed { results, answer } => {
                let machine = passed(&workflow, kept.phase, &results, answer.as_ref());
                if let (Some(gate), Some(machine)) = (record.gate.as_mut(), machine) {
                    gate.machine = machine;
                }
            }
            KeptOutcome::Items { values, skipped, mut failed } => {
                let state = |item: u32| match failed.remove(&item) {
                    Some(reason) => PhaseState::Failed(reason),
                    None if skipped.contains(&item) => PhaseState::Skipped,
                    None => PhaseState::Completed,
                };
                let states: Vec<PhaseState> = (0u32..).take(values.len()).map(state).collect();
                self.phases.set_items(kept.phase, values.into_iter().zip(states).collect());
            }
        }
    }
}
