//! Queue of runs: first in, first out, at most `server.max_runs` slots.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use cliq_gateway::GatewayError;
use cliq_runs::{Change, LifecycleEvent, Run};
use serde_json::json;

use crate::change::event;
use crate::follower::{StartMode, follow};
use crate::shared::Shared;

/// Polling interval of the queue. A project may become free without a notification.
const POLL: Duration = Duration::from_secs(1);
/// Maximum number of queued runs considered at once. Runs whose project is busy are skipped.
const WINDOW: u32 = 200;

/// Assigns free slots to queued runs until the supervisor stops.
pub(super) async fn run(shared: Arc<Shared>) {
    loop {
        if let Err(error) = dispatch(&shared).await {
            tracing::error!(%error, "cannot read the queue; retrying");
        }
        tokio::select! {
            () = shared.stopping.cancelled() => return,
            () = shared.queue.notified() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Stores a new run. The run gets a slot in the same transaction if one is free and no other run is queued. Returns `None` if
/// nothing was stored because the message of the task has already created a task.
pub(super) async fn enqueue(shared: &Arc<Shared>, mut change: Change) -> Result<Option<Run>, GatewayError> {
    let slots = shared.slots.lock().await;
    let begins =
        has_slot(shared, &change.run).await? && change.run.life.step(LifecycleEvent::Dispatched).is_ok();
    if begins {
        change.run.replica = shared.replica();
        change.push(event("run_dispatched", &json!({"workspace": change.run.workspace})));
    }
    let Some(run) = shared.commit(&change).await? else { return Ok(None) };
    if !begins {
        shared.has_queued();
        return Ok(Some(run));
    }
    follow(shared, run.clone(), StartMode::Start);
    drop(slots);
    // Start the run before its caller gets the response.
    tokio::task::yield_now().await;
    Ok(Some(run))
}

/// Whether a new run can start immediately.
async fn has_slot(shared: &Shared, run: &Run) -> Result<bool, GatewayError> {
    if shared.stopping.is_cancelled() || shared.may_wait.load(Ordering::SeqCst) {
        return Ok(false);
    }
    let active = shared.store.active().await?;
    let own = active.iter().filter(|run| run.origin.is_ours() && shared.owns(run)).count();
    let is_busy = active.iter().any(|other| other.workspace == run.workspace)
        || cliq_backends::is_project_busy(&run.workspace);
    Ok(own < shared.options.max_runs && !is_busy)
}

async fn dispatch(shared: &Arc<Shared>) -> Result<(), GatewayError> {
    let _slots = shared.slots.lock().await;
    let waiting = shared.store.queue(WINDOW).await?;
    // The lock excludes new runs. A run that is resumed or requeued at this moment sets the flag again.
    shared.may_wait.store(!waiting.is_empty(), Ordering::SeqCst);
    if waiting.is_empty() {
        return Ok(());
    }
    let active = shared.store.active().await?;
    let own = active.iter().filter(|run| run.origin.is_ours() && shared.owns(run)).count();
    let mut free = shared.options.max_runs.saturating_sub(own);
    let mut busy: HashSet<_> = active.into_iter().map(|run| run.workspace).collect();
    for run in waiting {
        if free == 0 || shared.stopping.is_cancelled() {
            break;
        }
        if busy.contains(&run.workspace)
            || shared.is_followed(&run.id)
            || cliq_backends::is_project_busy(&run.workspace)
            // A project of another machine: the replica there starts the run.
            || (shared.store.is_shared() && run.instance.is_some() && !run.workspace.is_dir())
        {
            continue;
        }
        let mut change = Change::of(run);
        if change.run.life.step(LifecycleEvent::Dispatched).is_err() {
            continue;
        }
        change.run.replica = shared.replica();
        change.push(event("run_dispatched", &json!({"workspace": change.run.workspace})));
        // `None`: cancelled at this moment.
        if let Some(run) = shared.commit(&change).await? {
            free -= 1;
            busy.insert(run.workspace.clone());
            follow(shared, run, StartMode::Start);
        }
    }
    Ok(())
}
