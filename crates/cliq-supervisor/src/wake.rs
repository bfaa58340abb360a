//! Parked runs whose time has come: reminders and deadlines (docs/decisions/0034-parked-runs-are-rows.md). A decision wakes its run in the store.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cliq_model::{Cause, StoreError, wake};

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
async fn wake_due(shared: &Shared) -> Result<Duration, StoreError> {
    loop {
        let due = shared.store.due(BATCH).await?;
        if due.is_empty() {
            break;
        }
        for run in due {
            if let Ok(change) = wake(run, Cause::Time, clock::now()) {
                // `None`: decided, cancelled, or woken by another replica at this moment.
                shared.commit(&change).await?;
            }
        }
        shared.has_queued();
    }
    let next = shared.store.next_wake().await?;
    shared.has_parked.store(next.is_some(), Ordering::SeqCst);
    let left = next.map_or(LONGEST, |at| at.since(clock::now()));
    Ok(left.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use cliq_model::{Change, RunState, park};
    use cliq_protocol::Timestamp;

    use super::*;
    use crate::test_support::{AT, TestSupervisor};

    async fn parked(test: &TestSupervisor, reviews: &[&str], until: Timestamp) -> cliq_protocol::RunId {
        let run = test.add(&test.running(None)).await;
        let mut change = Change::of(run);
        let reviews: Vec<String> = reviews.iter().map(|id| (*id).to_owned()).collect();
        park(&mut change, &reviews, until, AT).unwrap();
        test.apply(&change).await;
        change.run.id
    }

    #[tokio::test]
    async fn due_runs_are_queued_and_others_are_slept_for() {
        let test = TestSupervisor::new();
        let due = parked(&test, &[], AT.after(Duration::from_secs(1))).await;
        let soon = clock::after(Duration::from_secs(2));
        let later = parked(&test, &[], soon).await;
        let pause = wake_due(&test.shared).await.unwrap();
        assert!(pause > Duration::ZERO && pause <= Duration::from_secs(2), "{pause:?}");
        assert_eq!(test.run(&due).await.life.state, RunState::Queued);
        assert_eq!(test.events(&due).await, ["run_waiting", "run_woken"]);
        assert_eq!(test.run(&later).await.life.state, RunState::Waiting);
        assert!(test.shared.has_parked.load(Ordering::SeqCst));
    }

    #[tokio::test]
    async fn end_of_a_review_wakes_the_run_that_waits_for_it() {
        let test = TestSupervisor::new();
        let far = Timestamp::MAX;
        test.store.add_pending_review("r1");
        let run = parked(&test, &["r1"], far).await;
        assert_eq!(wake_due(&test.shared).await.unwrap(), LONGEST, "the clock may be set");
        assert_eq!(test.run(&run).await.life.state, RunState::Waiting);
        test.store.end_review("r1");
        assert_eq!(test.run(&run).await.life.state, RunState::Queued);
        let late = parked(&test, &["r1"], far).await;
        assert_eq!(test.run(&late).await.life.state, RunState::Queued, "it was over before");
    }
}
