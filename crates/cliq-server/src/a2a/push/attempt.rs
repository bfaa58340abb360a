//! Consequence of a delivery attempt. Pure: time comes in as a value.

use std::time::Duration;

use cliq_model::{PushRow, PushState};
use cliq_protocol::Timestamp;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Time for which deliveries may fail before a receiver is given up.
pub(super) const PATIENCE: Duration = Duration::from_secs(24 * 3600);

/// Result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attempt {
    /// The receiver has the update.
    Delivered,
    /// The delivery failed and can be retried.
    Failed(String),
    /// The receiver accepts no further deliveries (410).
    Gone(String),
}

/// The pause after the `n`th failure in a row, from 1.
pub(super) fn pause(n: i64) -> Duration {
    let doublings = u32::try_from((n - 1).clamp(0, 20)).unwrap_or(0);
    FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE)
}

/// Returns the receiver after an attempt at `now`. `is_last` is whether the update ended the task.
pub(super) fn after(mut push: PushRow, attempt: Attempt, is_last: bool, now: Timestamp) -> PushRow {
    match attempt {
        Attempt::Delivered => {
            push.part += 1;
            push.attempts = 0;
            push.failing_since = None;
            push.reason = None;
            if is_last {
                push.state = PushState::Done;
            }
        }
        Attempt::Failed(reason) => {
            push.attempts += 1;
            let since = *push.failing_since.get_or_insert(now);
            push.reason = Some(reason);
            push.next_at = now.after(pause(push.attempts));
            if now.since(since) >= PATIENCE {
                push.state = PushState::Dead;
            }
        }
        Attempt::Gone(reason) => {
            push.attempts += 1;
            push.reason = Some(reason);
            push.state = PushState::Dead;
        }
    }
    push
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push() -> PushRow {
        PushRow {
            task_id: cliq_fs::new_run_id(),
            id: "a".into(),
            protocol: "1.0".into(),
            url: "https://h/".into(),
            token: None,
            scheme: None,
            credentials: None,
            event: 3,
            part: 0,
            state: PushState::Active,
            attempts: 0,
            failing_since: None,
            next_at: Timestamp::UNIX_EPOCH,
            reason: None,
            version: 1,
        }
    }

    #[test]
    fn pauses_grow_from_a_second_to_five_minutes() {
        let seconds: Vec<u64> = (1..=11).map(|n| pause(n).as_secs()).collect();
        assert_eq!(seconds, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(pause(i64::MAX), LONGEST_PAUSE);
    }

    proptest! {
        /// A receiver moves on by one update for each success, and never otherwise; it stops only at the end, by 410 or after a day.
        #[test]
        fn receiver_advances_only_by_successes(attempts in proptest::collection::vec((0..3_u8, 0..90_000_u64), 1..60)) {
            let (mut push, mut now) = (push(), Timestamp::UNIX_EPOCH);
            for (kind, pause) in attempts {
                now = now.after(Duration::from_secs(pause));
                let before = push.clone();
                let attempt = match kind {
                    0 => Attempt::Delivered,
                    1 => Attempt::Failed("500".into()),
                    _ => Attempt::Gone("410".into()),
                };
                push = after(push, attempt.clone(), false, now);
                prop_assert_eq!(push.part - before.part, i64::from(attempt == Attempt::Delivered));
                prop_assert_eq!(push.event, before.event);
                let dies = match attempt {
                    Attempt::Delivered => false,
                    Attempt::Failed(_) => before.failing_since.is_some_and(|since| now.since(since) >= PATIENCE),
                    Attempt::Gone(_) => true,
                };
                prop_assert_eq!(push.state == PushState::Dead, dies);
                prop_assert_eq!(push.reason.is_some(), kind != 0);
                if push.state != PushState::Active { break; }
            }
        }
    }

    #[test]
    fn the_last_update_ends_it() {
        let done = after(push(), Attempt::Delivered, true, Timestamp::UNIX_EPOCH);
        assert_eq!(done.state, PushState::Done);
    }
}
