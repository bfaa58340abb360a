//! Waiting runs: nothing works, and the next event is a person's answer or a point in time (SPEC section 21).

use cliq_gate::GateState;
use cliq_protocol::{PhaseKind, Timestamp};
use cliq_workflow::PhaseId;

use super::machine::{PhaseState, Pipeline};

/// Cause of a phase's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseWait {
    /// Id of the review.
    pub review: String,
    /// Time at which the agent has to work again without an answer: the next reminder, or the deadline. UTC.
    pub due: Timestamp,
}

/// Cause of a run's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Ids of the reviews, in the order of the phases. An answer to any of them wakes the run.
    pub reviews: Vec<String>,
    /// Time at which the run wakes without an answer. UTC.
    pub until: Timestamp,
}

impl Pipeline {
    /// Returns the cause of the wait if the run waits: every phase that works has said what it waits for, and no other can start.
    #[must_use]
    pub fn waits(&self) -> Option<Wait> {
        // Asked after each event: what is looked at is a number, unless all that works has waited.
        let may_wait = self.working > 0 && self.busy() == 0 && self.queue.is_empty();
        if !may_wait || self.is_ending() || self.is_finished() || self.is_parked() {
            return None;
        }
        let working = self.phases.iter().filter(|cell| cell.state == PhaseState::Working);
        let waits: Vec<&PhaseWait> = working.map(|cell| cell.wait.as_ref()).collect::<Option<_>>()?;
        let until = waits.iter().map(|wait| &wait.due).min_by(|a, b| a.as_str().cmp(b.as_str()))?.clone();
        Some(Wait { reviews: waits.iter().map(|wait| wait.review.clone()).collect(), until })
    }

    /// Whether the run was parked and has not been resumed.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.parked
    }

    /// Number of phases that work and have not waited. Only these count against `max_parallel`.
    pub(super) fn busy(&self) -> usize {
        self.working - self.exempt
    }

    pub(super) fn phase_waits(&mut self, phase: PhaseId, wait: Option<PhaseWait>) {
        if !self.can_wait(phase) {
            return;
        }
        let cell = &mut self.phases[phase.index()];
        cell.wait = wait;
        if cell.wait.is_some() && !std::mem::replace(&mut cell.is_exempt, true) {
            self.exempt += 1;
        }
    }

    /// Whether the agent of a phase can be ended and asked again without a loss: a human gate whose commands have run, and a team, whose
    /// run can be parked too.
    fn can_wait(&self, phase: PhaseId) -> bool {
        let cell = &self.phases[phase.index()];
        let judges = || cell.gate.as_ref().is_some_and(|gate| *gate.state() == GateState::Judging);
        cell.state == PhaseState::Working
            && match self.workflow.phase(phase).kind {
                PhaseKind::Hug => judges(),
                PhaseKind::Team => true,
                _ => false,
            }
    }
}
