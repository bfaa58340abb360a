//! Parked runs whose time has come: reminders and deadlines (docs/decisions/0034-parked-runs-are-rows.md). A decision wakes its run in the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cliq_gateway::GatewayError;
use cliq_model::{Cause, wake};

use crate::clock;
use crate::shared::Shared;

/// Longest sleep: the clock may be set, and another replica may have parked a run.
const LONGEST: Duration = Duration::from_secs(5);
/// Maximum number of runs woken between two looks at the clock.
const BATCH: u32 = 200;

/// Wakes runs that are due until the supervisor stops.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        let pause = match wake_due(&shared).await {
            Ok(pause) => pause,
            Err(error) => {
                tracing::error!(%error, "cannot look for parked runs that are due; retrying");
                LONGEST
            }
        };
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = shared.parked.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Queues the runs that are due. Returns the time until the next one is.
async fn wake_due(shared: &Shared) -> Result<Duration, GatewayError> {
    loop {
        let due = shared.store.due(BATCH).await?;
        if due.is_empty() {
            break;
        }
        for run in due {
            if let Ok(change) = wake(run, Cause::Time, &clock::now()) {
                // `None`: decided, cancelled, or woken by another replica at this moment.
                shared.commit(&change).await?;
            }
        }
        shared.has_queued();
    }
    let next = shared.store.next_wake().await?;
    shared.has_parked.store(next.is_some(), Ordering::SeqCst);
    let at = next.and_then(|next| clock::millis(&next));
    let left = at
        .map_or(LONGEST, |at| Duration::from_millis(u64::try_from(at - cliq_fs::now_millis()).unwrap_or(0)));
    Ok(left.min(LONGEST))
}
