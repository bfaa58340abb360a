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
        self.units().filter(|(_, cell)| cell.state == PhaseState::Delayed).map(|(id, cell)| (id, cell.due_ms))
    }

    /// Number of the attempt of a phase or an item, 1-based.
    #[must_use]
    pub fn attempt(&self, id: PhaseId) -> u32 {
        self.cell(id).map_or(1, |cell| cell.failed_attempts + 1)
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
        let cell = self.cell_mut(phase);
        cell.failed_attempts = failed;
        cell.due_ms = None;
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
            self.cell_mut(phase).state = PhaseState::Delayed;
            self.delayed += 1;
            out.push(Effect::Delay { phase, delay_ms });
        }
        true
    }

    /// The time of the next attempt has come.
    pub(super) fn retry_due(&mut self, phase: PhaseId) {
        self.delayed -= 1;
        self.cell_mut(phase).due_ms = None;
        self.enqueue(Task::Retry(phase));
    }

    /// Whether the run may be parked until the next attempt of a phase.
    pub(super) fn waits_long(&self, phase: PhaseId) -> bool {
        let failed = self.cell(phase).map_or(0, |cell| cell.failed_attempts);
        self.workflow.phase(phase).retry.as_ref().is_some_and(|retry| retry.delay_after_ms(failed) >= LONG_MS)
    }
}
