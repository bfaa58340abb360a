//! Replicas: several supervisors on one database (docs/server.md). Each run has one owner. A live replica renews its lease; another
//! replica takes over the runs of one whose lease has expired.
//!
//! Correctness depends neither on clocks of machines nor on their speed. A run is taken over by a change of its row, so only one
//! replica succeeds. A replica that slept in the meantime cannot store anything, because the row has a newer version.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cliq_model::{Change, Run, RunStore, ServerEvent, StoreError};
use cliq_protocol::RunId;

use crate::change::event;
use crate::follower::{StartMode, follow};
use crate::options::SupervisorOptions;
use crate::shared::Shared;

/// Polling interval of the database: runs to take over, changes by other replicas, events of their runs with subscribers here.
const EVERY: Duration = Duration::from_millis(500);
/// Name prefix of the leases of live replicas.
const LIVE_PREFIX: &str = "replica/";
/// Maximum number of events read at once.
const PAGE: u32 = 1000;

/// Duty that one replica performs for all of them. A supervisor without replicas always holds it.
#[derive(Debug)]
pub struct Duty {
    name: String,
    /// Time until which the lease need not be checked again.
    sure: Option<Instant>,
}

impl Duty {
    /// Creates a duty with a name that is unique among duties.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: format!("duty/{name}"), sure: None }
    }

    /// Acquires or renews the lease of the duty. Returns whether this replica holds it. Call again within the lease duration.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    pub async fn is_own(
        &mut self,
        store: &dyn RunStore,
        options: &SupervisorOptions,
    ) -> Result<bool, StoreError> {
        if !store.is_shared() {
            return Ok(true);
        }
        let now = Instant::now();
        if self.sure.is_some_and(|sure| now < sure) {
            return Ok(true);
        }
        let taken = store.take_lease(&self.name, &options.replica, options.lease).await?;
        self.sure = taken.then(|| now + options.lease / 3);
        Ok(taken)
    }
}

/// Runs of other replicas with subscribers here: number of the last published event by run.
#[derive(Debug, Default)]
pub(super) struct ForeignRuns {
    published: HashMap<RunId, i64>,
}

/// Shares runs with other replicas until the supervisor stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut foreign = ForeignRuns::default();
    loop {
        tokio::select! {
            () = shared.stopping.cancelled() => break,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = round(&shared, &mut foreign).await {
            tracing::error!(%error, "cannot use the database: other replicas may take over the runs of this one");
        }
    }
    // With shared workspaces, other replicas can continue its runs without waiting for the end of the lease.
    if shared.options.shared_workspaces {
        let name = format!("{LIVE_PREFIX}{}", shared.options.replica);
        let _ = shared.store.give_lease(&name, &shared.options.replica).await;
    }
}

/// Reads the database once. Returns the number of runs that this replica owns.
pub(super) async fn round(shared: &Arc<Shared>, foreign: &mut ForeignRuns) -> Result<usize, StoreError> {
    let (store, replica) = (&shared.store, &shared.options.replica);
    store.take_lease(&format!("{LIVE_PREFIX}{replica}"), replica, shared.options.lease).await?;
    // A run that gets a slot at this moment has its follower once the lock is free.
    let slots = shared.slots.lock().await;
    let active = store.active().await?;
    // The query is not needed if all runs are owned here.
    let has_others = active.iter().any(|run| !shared.owns(run));
    let live = if has_others { store.lease_holders(LIVE_PREFIX).await? } else { Vec::new() };
    let mut own = 0;
    for run in active {
        if shared.owns(&run) {
            own += 1;
            notify_or_follow(shared, run);
        } else if run.replica.as_ref().is_none_or(|other| !live.contains(other)) {
            own += usize::from(take(shared, run).await?);
        }
    }
    drop(slots);
    publish_foreign(shared, foreign).await?;
    Ok(own)
}

/// Notifies the follower of an own run about a change, or starts a follower if there is none.
fn notify_or_follow(shared: &Arc<Shared>, run: Run) {
    let handle = {
        let followers = shared.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.get(&run.id).map(Arc::clone)
    };
    match handle {
        Some(handle) => {
            if handle.newest.fetch_max(run.version, Ordering::SeqCst) < run.version {
                handle.waker.notify_one();
            }
        }
        None => follow(shared, run, StartMode::Adopt),
    }
}

/// Takes over a run of a dead replica. Returns `false` if another replica was faster.
async fn take(shared: &Arc<Shared>, run: Run) -> Result<bool, StoreError> {
    let mut change = Change::of(run);
    let before = change.run.replica.replace(shared.options.replica.clone());
    let taken = ServerEvent::RunTakenOver { from: before.clone(), to: shared.options.replica.clone() };
    change.push(event(&taken));
    let Some(run) = shared.commit(&change).await? else { return Ok(false) };
    tracing::info!(run = %run.id, from = before, "taking over a run: its replica has not renewed its lease");
    follow(shared, run, StartMode::Adopt);
    Ok(true)
}

/// Publishes new events of other replicas' runs to subscribers here.
async fn publish_foreign(shared: &Arc<Shared>, foreign: &mut ForeignRuns) -> Result<(), StoreError> {
    let read = shared.hub.subscribed();
    foreign.published.retain(|id, _| read.contains(id));
    for id in read {
        if shared.is_followed(&id) {
            foreign.published.remove(&id);
            continue;
        }
        let Some(run) = shared.store.run(&id).await? else {
            shared.hub.remove(&id);
            continue;
        };
        // The newest event comes first. Subscribers that miss earlier ones read the store.
        let last = *foreign.published.entry(id.clone()).or_insert((run.last_event - 1).max(0));
        if run.last_event > last {
            let rows = shared.store.run_events(&id, last, PAGE).await?;
            if let Some(newest) = rows.last() {
                foreign.published.insert(id.clone(), newest.id);
                shared.hub.publish(&id, &rows);
            }
        }
        let is_complete = foreign.published.get(&id).is_some_and(|last| *last >= run.last_event);
        if run.life.state.is_final() && is_complete {
            shared.hub.remove(&id);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use cliq_model::MemoryStore;

    use super::*;
    use crate::test_support::TestSupervisor;

    fn shared_store() -> MemoryStore {
        let store = MemoryStore::default();
        store.share();
        store
    }

    #[tokio::test]
    async fn runs_are_taken_over_once_the_lease_has_expired() {
        let store = shared_store();
        let test = TestSupervisor::on(store.clone(), |_| {});
        let lease = test.shared.options.lease;
        assert!(store.take_lease("replica/other", "other", lease).await.unwrap());
        let run = test.add(&test.running(Some("other"))).await;
        let mut foreign = ForeignRuns::default();
        assert_eq!(round(&test.shared, &mut foreign).await.unwrap(), 0, "its owner lives");
        assert_eq!(test.run(&run.id).await.replica.as_deref(), Some("other"));
        store.advance(lease + Duration::from_secs(1));
        assert_eq!(round(&test.shared, &mut foreign).await.unwrap(), 1);
        let taken = test.run(&run.id).await;
        assert_eq!(taken.replica.as_ref(), Some(&test.shared.options.replica));
        assert_eq!(test.events(&run.id).await.first().map(String::as_str), Some("run_taken_over"));
        test.shared.stopping.cancel();
    }

    #[tokio::test]
    async fn one_of_two_replicas_takes_a_run() {
        let store = shared_store();
        let tests = [TestSupervisor::on(store.clone(), |_| {}), TestSupervisor::on(store.clone(), |_| {})];
        let run = tests[0].add(&tests[0].running(Some("dead"))).await;
        assert!(take(&tests[0].shared, run.clone()).await.unwrap());
        assert!(!take(&tests[1].shared, run).await.unwrap(), "its row has a newer version");
        tests.iter().for_each(|test| test.shared.stopping.cancel());
    }

    #[tokio::test]
    async fn duty_is_of_one_replica_until_its_lease_has_expired() {
        let store = shared_store();
        let tests = [TestSupervisor::on(store.clone(), |_| {}), TestSupervisor::on(store.clone(), |_| {})];
        let is_own =
            async |n: usize, duty: &mut Duty| duty.is_own(&store, &tests[n].shared.options).await.unwrap();
        let (mut first, mut second) = (Duty::new("retention"), Duty::new("retention"));
        assert!(is_own(0, &mut first).await && !is_own(1, &mut second).await);
        assert!(is_own(1, &mut Duty::new("other")).await, "another duty");
        store.advance(tests[0].shared.options.lease + Duration::from_secs(1));
        assert!(is_own(1, &mut second).await);
    }

    #[tokio::test]
    async fn supervisor_without_replicas_has_every_duty() {
        let test = TestSupervisor::new();
        assert!(Duty::new("retention").is_own(&test.store, &test.shared.options).await.unwrap());
        assert_eq!(test.store.lease_holders("duty/").await.unwrap(), Vec::<String>::new());
    }
}
