//! Deadline of an agent or a command that holds across suspensions of the orchestrator. Pure.
//!
//! While the orchestrator is stopped (SIGSTOP, Ctrl-Z, a frozen container), processes may end in time unseen, and others may have
//! been stopped with it. When its timer expires, it therefore looks at the process first; and if the timer
//! expired late, a process that is still active gets a grace period.

#![deny(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use tokio::time::Instant;

/// Delay of a timer from which on the orchestrator counts as suspended in the meantime.
const SUSPENDED: Duration = Duration::from_secs(1);
/// Grace period after a suspension for a process that is still active.
const GRACE: Duration = Duration::from_secs(5);
/// Time for a process that has ended to be noticed when the timer expires.
pub(super) const NOTICE: Duration = Duration::from_millis(100);

/// Point in time at which a process has to have ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    due: Instant,
}

/// Decision about a process whose timer has expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TimeoutDecision {
    /// The process has ended: its exit counts, not the time.
    Ended,
    /// The process goes on until the new deadline, because the orchestrator was suspended.
    Wait,
    /// The process did not end in time.
    TimedOut,
}

impl Deadline {
    pub(super) fn new(due: Instant) -> Self {
        Self { due }
    }

    /// Time for which the timer is to be set.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Postpones the deadline.
    pub(super) fn extend(&mut self, time: Duration) {
        self.due += time;
    }

    /// Decides when the timer has expired, at `now`.
    pub(super) fn expired(&mut self, now: Instant, has_ended: bool) -> TimeoutDecision {
        if has_ended {
            return TimeoutDecision::Ended;
        }
        if now.saturating_duration_since(self.due) >= SUSPENDED {
            self.due = now + GRACE;
            return TimeoutDecision::Wait;
        }
        TimeoutDecision::TimedOut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn active_process_times_out_when_the_timer_expires() {
        let due = Instant::now();
        assert_eq!(Deadline::new(due).expired(due, false), TimeoutDecision::TimedOut);
        assert_eq!(Deadline::new(due).expired(due + SUSPENDED - MS, false), TimeoutDecision::TimedOut);
    }

    #[test]
    fn ended_process_never_times_out() {
        let due = Instant::now();
        for late in [Duration::ZERO, SUSPENDED, Duration::from_secs(3600)] {
            assert_eq!(Deadline::new(due).expired(due + late, true), TimeoutDecision::Ended);
        }
    }

    #[test]
    fn active_process_gets_a_grace_period_after_a_suspension() {
        let due = Instant::now();
        let mut deadline = Deadline::new(due);
        let wake = due + Duration::from_secs(3600);
        assert_eq!(deadline.expired(wake, false), TimeoutDecision::Wait);
        assert_eq!(deadline.due(), wake + GRACE);
        // Awake since then: the time is over.
        assert_eq!(deadline.expired(deadline.due() + MS, false), TimeoutDecision::TimedOut);
        // Suspended once more: the same again.
        let again = deadline.due() + SUSPENDED;
        assert_eq!(deadline.expired(again, false), TimeoutDecision::Wait);
        assert_eq!(deadline.expired(again + GRACE, true), TimeoutDecision::Ended);
    }
}
