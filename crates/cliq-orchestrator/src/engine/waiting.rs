//! Waiting runs: nothing works, and the next event is a person's answer or a point in time (docs/decisions/0033-waiting-is-a-state.md).

use cliq_gate::GateState;
use cliq_protocol::PhaseKind;
use cliq_workflow::PhaseId;

use super::machine::Pipeline;
use super::record::{Activity, PhaseState};

/// Cause of a phase's wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseWait {
    /// Ids of the reviews: one, or several for a team phase. An answer to any of them ends the wait.
    pub reviews: Vec<String>,
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
        let counts = self.phases.counts();
        let may_wait =
            (counts.working > 0 || counts.delayed > 0) && self.busy() == 0 && self.queue.is_empty();
        if !may_wait || self.is_ending() || self.is_finished() || self.is_parked() {
            return None;
        }
        let mut waits: Vec<(&[String], i64)> = Vec::new();
        for (id, unit) in self.units() {
            match unit.state() {
                PhaseState::Working(Activity::Waits(wait)) => waits.push((&wait.reviews, wait.due_ms)),
                PhaseState::Working(Activity::Busy | Activity::Resumed)
                | PhaseState::Deciding
                | PhaseState::Merging => return None,
                // A short delay is not worth a restart.
                PhaseState::Delayed { .. } if !self.waits_long(id) => return None,
                PhaseState::Delayed { due_ms } => waits.push((&[], (*due_ms)?)),
                PhaseState::Waiting
                | PhaseState::Queued
                | PhaseState::Items
                | PhaseState::Routed(_)
                | PhaseState::Completed
                | PhaseState::Skipped
                | PhaseState::Failed(_)
                | PhaseState::Escalated(_)
                | PhaseState::Stopped => {}
            }
        }
        let until_ms = waits.iter().map(|(_, due_ms)| *due_ms).min()?;
        Some(Wait { reviews: waits.iter().flat_map(|(reviews, _)| reviews.to_vec()).collect(), until_ms })
    }

    /// Whether the run was parked and has not been resumed.
    #[must_use]
    pub fn is_parked(&self) -> bool {
        self.parked
    }

    /// Number of phases that work and have not waited. Only these count against `max_parallel`.
    pub(super) fn busy(&self) -> usize {
        let counts = self.phases.counts();
        counts.working - counts.exempt
    }

    /// Whether a phase that works can wait: its agent can be ended and asked again without a loss. That is so for a gate whose commands have
    /// run, for a team phase, whose run parks, and for an agent at work that asks people and continues its conversation.
    fn can_wait(&self, phase: PhaseId) -> bool {
        let judges = self.gate(phase).is_none_or(|gate| *gate.state() == GateState::Judging);
        let has_agent = match self.workflow.phase(phase).kind {
            PhaseKind::Standard | PhaseKind::Gate | PhaseKind::HumanGate | PhaseKind::Team => true,
            PhaseKind::Exec | PhaseKind::Pull | PhaseKind::Push => false,
        };
        has_agent && judges && self.is_working(phase)
    }

    /// Whether the agent of a phase waits for people, who may take days: that of a human gate, or one that asks.
    pub(super) fn waits_for_people(&self, phase: PhaseId) -> bool {
        let is_team = self.workflow.phase(phase).kind == PhaseKind::Team;
        let is_idle = matches!(self.state(phase), PhaseState::Working(Activity::Waits(_)));
        self.waits_for_person(phase) || is_idle && !is_team
    }

    /// Records the wait of a phase. Phases that cannot wait keep their process.
    pub(super) fn phase_waits(&mut self, phase: PhaseId, wait: Option<PhaseWait>) {
        if !self.can_wait(phase) {
            return;
        }
        match wait {
            Some(wait) => {
                self.phases.set_state(phase, PhaseState::Working(Activity::Waits(wait)));
            }
            None => self.ends_wait(phase),
        }
    }

    /// The agent of a phase works again, if it waited.
    pub(super) fn ends_wait(&mut self, phase: PhaseId) {
        if matches!(self.state(phase), PhaseState::Working(Activity::Waits(_))) {
            self.phases.set_state(phase, PhaseState::Working(Activity::Resumed));
        }
    }
}
