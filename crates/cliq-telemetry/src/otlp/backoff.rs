//! Pauses between attempts to reach a receiver.

use std::time::{Duration, Instant};

/// Maximum time between two attempts.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Failures in a row, and the time of the next attempt.
#[derive(Debug)]
pub(super) struct Backoff {
    failures: u32,
    next: Instant,
}

impl Backoff {
    pub(super) fn new() -> Self {
        Self { failures: 0, next: Instant::now() }
    }

    /// Whether the last attempt failed.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// Whether it is time for an attempt.
    pub(super) fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// Time until the next attempt.
    pub(super) fn pause(&self) -> Duration {
        self.next.saturating_duration_since(Instant::now())
    }

    /// Records a failure. `after` is the time after which the receiver wants the next request.
    pub(super) fn fail(&mut self, after: Option<Duration>) {
        self.failures += 1;
        let pause = Duration::from_millis(250) * 2_u32.saturating_pow(self.failures.min(8));
        self.next = Instant::now() + after.unwrap_or(pause).min(MAX_PAUSE);
    }

    /// Records a success.
    pub(super) fn succeed(&mut self) {
        self.failures = 0;
    }
}
