//! Waiting runs: nothing works, and the next event is a person's answer or a point in time (SPEC section 21).

use cliq_workflow::PhaseId;

use super::machine::{PhaseState, Pipeline};

/// Cause of a phase's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseWait {
    /// Id of the review.
    pub review: String,
    /// Time of the next reminder or of the deadline, in milliseconds since 1970: the agent then works without an answer.
    pub due_ms: i64,
}

/// Cause of a run's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wait {
    /// Ids of the reviews, in the order of the phases. An answer to any of them wakes the run.
    pub reviews: Vec<String>,
    /// Time at which the run wakes without an answer, in milliseconds since 1970.
    pub until_ms: i64,
}

impl Pipeline {
    /// Returns the cause of the wait if the run waits: every phase that works has said what it waits for, and no other can start.
    #[must_use]
    pub fn waits(&self) -> Option<Wait> {
        // Called after each event: phases are visited only if all that work have waited.
        let may_wait = self.working > 0 && self.busy() == 0 && self.queue.is_empty();
        if !may_wait || self.is_ending() || self.is_finished() || self.is_parked() {
            return None;
        }
        let working = self.phases.iter().filter(|cell| cell.state == PhaseState::Working);
        let waits: Vec<&PhaseWait> = working.map(|cell| cell.wait.as_ref()).collect::<Option<_>>()?;
        let until_ms = waits.iter().map(|wait| wait.due_ms).min()?;
        Some(Wait { reviews: waits.iter().map(|wait| wait.review.clone()).collect(), until_ms })
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

    /// Records the wait of a human gate whose commands have run: its agent can be ended and asked again without a loss. Others keep
    /// their process.
    pub(super) fn phase_waits(&mut self, phase: PhaseId, wait: Option<PhaseWait>) {
        if !self.waits_for_person(phase) {
            return;
        }
        let cell = &mut self.phases[phase.index()];
        cell.wait = wait;
        if cell.wait.is_some() && !std::mem::replace(&mut cell.is_exempt, true) {
            self.exempt += 1;
        }
    }
}
