//! Further attempts of a phase after a failure (docs/expressions.md).

use cliq_workflow::{FailureCause, PhaseId};

use super::machine::Pipeline;
use super::record::{PhaseState, Task};
use super::{Effect, Report};

/// Delay from which on a run is parked until the next attempt, in milliseconds.
const LONG_MS: u64 = 60_000;

impl Pipeline {
    /// Phases and items whose next attempt waits for its time, with the time in milliseconds since 1970 if it is known.
    pub fn delayed(&self) -> impl Iterator<Item = (PhaseId, Option<i64>)> {
        self.units().filter_map(|(id, unit)| match unit.state() {
            PhaseState::Delayed { due_ms } => Some((id, *due_ms)),
            _ => None,
        })
    }

    /// Number of the attempt of a phase or an item, 1-based.
    #[must_use]
    pub fn attempt(&self, id: PhaseId) -> u32 {
        self.phases.unit(id).map_or(1, |unit| unit.failed_attempts + 1)
    }

    /// Schedules another attempt. Returns `false` if there is none.
    pub(super) fn retries(
        &mut self,
        phase: PhaseId,
        reason: &str,
        cause: Option<FailureCause>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let failed = self.attempt(phase);
        let Some(retry) = &self.workflow.phase(phase).retry else { return false };
        if failed >= retry.attempts || !cause.is_some_and(|cause| retry.on.contains(&cause)) {
            return false;
        }
        // Nothing starts once the run ends: the next attempt is the first thing after it is resumed.
        let delay_ms = if self.is_ending() { 0 } else { retry.delay_after_ms(failed) };
        let attempts = retry.attempts;
        let Some(unit) = self.phases.unit_mut(phase) else { return false };
        unit.failed_attempts = failed;
        let reason = reason.to_owned();
        out.push(Effect::Report(Report::RetryScheduled {
            phase,
            attempt: failed + 1,
            attempts,
            delay_ms,
            reason,
        }));
        if delay_ms == 0 {
            self.enqueue(Task::Retry(phase));
        } else {
            self.phases.set_state(phase, PhaseState::Delayed { due_ms: None });
            out.push(Effect::Delay { phase, delay_ms });
        }
        true
    }

    /// Whether the run may be parked until the next attempt of a phase.
    pub(super) fn waits_long(&self, phase: PhaseId) -> bool {
        let failed = self.phases.unit(phase).map_or(0, |unit| unit.failed_attempts);
        self.workflow.phase(phase).retry.as_ref().is_some_and(|retry| retry.delay_after_ms(failed) >= LONG_MS)
    }
}
