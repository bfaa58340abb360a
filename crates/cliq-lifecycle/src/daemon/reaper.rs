//! Schedule of the reaper, which makes signals pending again that a worker claimed and did not finish.

use std::time::Instant;

use cliq_gateway::{REAP_EVERY, STUCK_AFTER, Store};
use cliq_model::StoreError;

/// The schedule of the reaper.
#[derive(Debug, Default)]
pub(super) struct Reaper {
    last: Option<Instant>,
}

impl Reaper {
    /// Ends leases that have expired, where that is due. Gives the signals that are pending again.
    ///
    /// # Errors
    /// The queue cannot be written. The next attempt is made when it is due again.
    pub(super) async fn run(&mut self, store: &dyn Store) -> Result<Vec<i64>, StoreError> {
        if self.last.is_some_and(|at| at.elapsed() < REAP_EVERY) {
            return Ok(Vec::new());
        }
        self.last = Some(Instant::now());
        store.reset_stuck(STUCK_AFTER).await
    }
}
