//! The queue of runs: first in, first out, a place for at most `server.max_runs`.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cliq_gateway::GatewayError;
use cliq_runs::{Change, LifeEvent, Run};
use serde_json::json;

use super::follower::{Begin, follow};
use super::{Shared, event, orchestrator};

/// How often the queue is looked at without a reason: a project may have become free.
const POLL: Duration = Duration::from_secs(1);
/// How many of the queue are looked at: runs whose project is busy are passed over.
const LOOK_AT: u32 = 200;

/// Gives free places to runs until the server stops.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = dispatch(&shared).await {
            tracing::error!(%error, "the queue cannot be read; it is tried again");
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = shared.queue.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Stores a new run. Where a place is free and no other run waits, it gets the place in the same transaction. `None` where nothing was
/// stored: the message of a task has made a task before.
pub(super) async fn enqueue(shared: &Arc<Shared>, mut change: Change) -> Result<Option<Run>, GatewayError> {
    let places = shared.places.lock().await;
    let begins = has_place(shared, &change.run).await? && change.run.life.step(LifeEvent::Dispatched).is_ok();
    if begins {
        change.run.replica = shared.replica();
        change.push(event("run_dispatched", &json!({"workspace": change.run.workspace})));
    }
    let Some(run) = shared.commit(&change).await? else { return Ok(None) };
    if !begins {
        shared.has_waiting();
        return Ok(Some(run));
    }
    follow(shared, run.clone(), Begin::Start);
    drop(places);
    // The run begins before its caller hears of it, not after.
    tokio::task::yield_now().await;
    Ok(Some(run))
}

/// Whether a new run can begin at once.
async fn has_place(shared: &Shared, run: &Run) -> Result<bool, GatewayError> {
    if shared.stopping.is_cancelled() || shared.may_wait.load(Ordering::SeqCst) {
        return Ok(false);
    }
    let active = shared.store.active().await?;
    let own = active.iter().filter(|run| run.origin.is_ours() && shared.has(run)).count();
    let is_busy = active.iter().any(|other| other.workspace == run.workspace)
        || orchestrator::is_project_busy(&run.workspace);
    Ok(own < shared.options.max_runs && !is_busy)
}

async fn dispatch(shared: &Arc<Shared>) -> Result<(), GatewayError> {
    let _places = shared.places.lock().await;
    let waiting = shared.store.queue(LOOK_AT).await?;
    // The lock is held: no new run comes in between. One that is resumed or given back at this moment is found by the next look.
    shared.may_wait.store(!waiting.is_empty(), Ordering::SeqCst);
    if waiting.is_empty() {
        return Ok(());
    }
    let active = shared.store.active().await?;
    let own = active.iter().filter(|run| run.origin.is_ours() && shared.has(run)).count();
    let mut free = shared.options.max_runs.saturating_sub(own);
    let mut busy: HashSet<_> = active.into_iter().map(|run| run.workspace).collect();
    for run in waiting {
        if free == 0 || shared.stopping.is_cancelled() {
            break;
        }
        if busy.contains(&run.workspace)
            || shared.is_followed(&run.id)
            || orchestrator::is_project_busy(&run.workspace)
            // A project of another machine: the server there takes it.
            || (shared.store.is_shared() && run.instance.is_some() && !run.workspace.is_dir())
        {
            continue;
        }
        let mut change = Change::of(run);
        if change.run.life.step(LifeEvent::Dispatched).is_err() {
            continue;
        }
        change.run.replica = shared.replica();
        change.push(event("run_dispatched", &json!({"workspace": change.run.workspace})));
        // `None`: it was cancelled at this moment.
        if let Some(run) = shared.commit(&change).await? {
            free -= 1;
            busy.insert(run.workspace.clone());
            follow(shared, run, Begin::Start);
        }
    }
    Ok(())
}
