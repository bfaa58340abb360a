//! Counters of a supervisor, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters of a supervisor since its start.
#[derive(Debug, Default)]
pub struct Counters {
    runs_started: AtomicU64,
    events_stored: AtomicU64,
}

impl Counters {
    /// Number of orchestrators that were started.
    #[must_use]
    pub fn runs_started(&self) -> u64 {
        self.runs_started.load(Ordering::Relaxed)
    }

    /// Number of events that were stored.
    #[must_use]
    pub fn events_stored(&self) -> u64 {
        self.events_stored.load(Ordering::Relaxed)
    }

    pub(crate) fn count_start(&self) {
        self.runs_started.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn count_events(&self, count: usize) {
        self.events_stored.fetch_add(count as u64, Ordering::Relaxed);
    }
}
