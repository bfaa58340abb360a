//! Several servers on one database (SPEC section 15): each run is had by one of them. A server that lives renews a lease; what one had whose
//! lease is over, another takes.
//!
//! Nothing rests on clocks of servers or on their being fast. A run is taken by a change of its row, so that one of several gets it; and what a
//! server stores that slept in the meantime is refused, because the row has changed.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use cliq_gateway::GatewayError;
use cliq_runs::{Change, Run, RunId, RunStore};
use serde_json::json;

use super::follower::{Begin, follow};
use super::{Shared, event};
use crate::options::ServerOptions;

/// How often the database is looked at: for runs to take, for changes that other servers made, for events of their runs that are read here.
const EVERY: Duration = Duration::from_millis(500);
/// What the leases of living servers begin with.
const LIVING: &str = "replica/";
/// The most events of one look.
const PAGE: u32 = 1000;

/// Something that one of several servers does for all of them. A server without others does everything.
#[derive(Debug)]
pub(crate) struct Duty {
    name: String,
    /// Until when this server need not ask again.
    sure: Option<Instant>,
}

impl Duty {
    pub(crate) fn new(name: &str) -> Self {
        Self { name: format!("duty/{name}"), sure: None }
    }

    /// Whether it is this server's now. To be asked again within the lease.
    pub(crate) async fn is_own(
        &mut self,
        store: &dyn RunStore,
        options: &ServerOptions,
    ) -> Result<bool, GatewayError> {
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

/// The runs of other servers that are read here: the number of the last event that was passed on.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    passed_on: HashMap<RunId, i64>,
}

/// Shares the work until the server stops.
pub(super) async fn run(shared: Arc<Shared>) {
    let mut foreign = Foreign::default();
    loop {
        tokio::select! {
            () = shared.stopping.cancelled() => break,
            () = tokio::time::sleep(EVERY) => {}
        }
        if let Err(error) = round(&shared, &mut foreign).await {
            tracing::error!(%error, "the database cannot be used: other servers may take this one's runs over");
        }
    }
    // Others need not wait for the end of the lease, where they can go on with its runs.
    if shared.options.shared_workspaces {
        let name = format!("{LIVING}{}", shared.options.replica);
        let _ = shared.store.give_lease(&name, &shared.options.replica).await;
    }
}

/// Looks at the database once. Gives how many runs this server has.
pub(super) async fn round(shared: &Arc<Shared>, foreign: &mut Foreign) -> Result<usize, GatewayError> {
    let (store, replica) = (&shared.store, &shared.options.replica);
    store.take_lease(&format!("{LIVING}{replica}"), replica, shared.options.lease).await?;
    // A run that is given a place at this moment has its follower once the lock is free.
    let places = shared.places.lock().await;
    let active = store.active().await?;
    // Nobody asks who lives where all runs are one's own.
    let has_others = active.iter().any(|run| !shared.has(run));
    let living = if has_others { store.lease_holders(LIVING).await? } else { Vec::new() };
    let mut own = 0;
    for run in active {
        if shared.has(&run) {
            own += 1;
            tell_or_follow(shared, run);
        } else if run.replica.as_ref().is_none_or(|other| !living.contains(other)) {
            own += usize::from(take(shared, run).await?);
        }
    }
    drop(places);
    pass_on(shared, foreign).await?;
    Ok(own)
}

/// A run of this server: its follower is told of changes; one that nobody follows is followed.
fn tell_or_follow(shared: &Arc<Shared>, run: Run) {
    let followed = {
        let followers = shared.followers.lock().unwrap_or_else(PoisonError::into_inner);
        followers.get(&run.id).map(Arc::clone)
    };
    match followed {
        Some(followed) => {
            if followed.newest.fetch_max(run.version, Ordering::SeqCst) < run.version {
                followed.waker.notify_one();
            }
        }
        None => follow(shared, run, Begin::TakeUp),
    }
}

/// Takes a run whose server is gone. `false` where another was faster.
async fn take(shared: &Arc<Shared>, run: Run) -> Result<bool, GatewayError> {
    let mut change = Change::of(run);
    let before = change.run.replica.replace(shared.options.replica.clone());
    change.push(event("run_taken_over", &json!({"from": before, "to": shared.options.replica})));
    let Some(run) = shared.commit(&change).await? else { return Ok(false) };
    tracing::info!(run = %run.id, from = before, "a run is taken over: its server is silent");
    follow(shared, run, Begin::TakeUp);
    Ok(true)
}

/// Passes new events of other servers' runs on to those who read them here.
async fn pass_on(shared: &Arc<Shared>, foreign: &mut Foreign) -> Result<(), GatewayError> {
    let read = shared.hub.subscribed();
    foreign.passed_on.retain(|id, _| read.contains(id));
    for id in read {
        if shared.is_followed(&id) {
            foreign.passed_on.remove(&id);
            continue;
        }
        let Some(run) = shared.store.run(&id).await? else {
            shared.hub.remove(&id);
            continue;
        };
        // The newest event is passed on first: readers who lack some before it look into the store.
        let last = *foreign.passed_on.entry(id.clone()).or_insert((run.last_event - 1).max(0));
        if run.last_event > last {
            let rows = shared.store.run_events(&id, last, PAGE).await?;
            if let Some(newest) = rows.last() {
                foreign.passed_on.insert(id.clone(), newest.id);
                shared.hub.publish(&id, &rows);
            }
        }
        let all_passed_on = foreign.passed_on.get(&id).is_some_and(|last| *last >= run.last_event);
        if run.life.state.is_final() && all_passed_on {
            shared.hub.remove(&id);
        }
    }
    Ok(())
}
