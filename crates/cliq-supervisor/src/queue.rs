//! Queue of runs: at most `server.max_runs` slots, for woken and new runs in turns (docs/decisions/0034-parked-runs-are-rows.md).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_model::{Change, LifecycleEvent, Queue, Run, ServerEvent, StoreError};

use crate::change::event;
use crate::follower::{StartMode, follow};
use crate::shared::Shared;

/// Polling interval of the queue. A project may become free without a notification.
const POLL: Duration = Duration::from_secs(1);
/// Polling interval while runs are parked: a decision of another process wakes them in the store.
const POLL_PARKED: Duration = Duration::from_millis(100);
/// Slots beyond the limit for parked runs that are cancelled: their orchestrators only record the end.
const CANCELLATIONS: usize = 4;
/// Maximum number of queued runs of each kind considered at once. Runs whose project is busy are skipped.
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
            () = tokio::time::sleep(poll(&shared)) => {}
        }
    }
}

fn poll(shared: &Shared) -> Duration {
    if shared.has_parked.load(Ordering::SeqCst) { POLL_PARKED } else { POLL }
}

/// Stores a new run. The run gets a slot in the same transaction if one is free and no other run is queued. Returns `None` if
/// nothing was stored because the message of a delegated run has already created one.
pub(super) async fn enqueue(shared: &Arc<Shared>, mut change: Change) -> Result<Option<Run>, StoreError> {
    let _slots = shared.slots.lock().await;
    let begins =
        has_slot(shared, &change.run).await? && change.run.life.step(LifecycleEvent::Dispatched).is_ok();
    if begins {
        change.run.replica = shared.replica();
        change.push(event(&ServerEvent::RunDispatched { workspace: change.run.workspace.clone() }));
    }
    let Some(run) = shared.commit(&change).await? else { return Ok(None) };
    if !begins {
        shared.has_queued();
        return Ok(Some(run));
    }
    follow(shared, run.clone(), StartMode::Start);
    Ok(Some(run))
}

/// Whether a new run can start immediately.
async fn has_slot(shared: &Shared, run: &Run) -> Result<bool, StoreError> {
    if shared.stopping.is_cancelled() || shared.may_wait.load(Ordering::SeqCst) {
        return Ok(false);
    }
    let active = shared.store.active().await?;
    let own = active.iter().filter(|run| run.origin.is_started_by_server() && shared.owns(run)).count();
    let is_busy = active.iter().any(|other| other.workspace == run.workspace);
    Ok(own < shared.options.max_runs && !is_busy && can_start(shared, run).await)
}

async fn dispatch(shared: &Arc<Shared>) -> Result<(), StoreError> {
    let mut turns = shared.slots.lock().await;
    let mut queue = shared.store.queue(WINDOW).await?;
    // The lock excludes new runs. A run that is resumed or requeued at this moment sets the flag again.
    shared.may_wait.store(!queue.is_empty(), Ordering::SeqCst);
    if queue.is_empty() {
        return Ok(());
    }
    let active = shared.store.active().await?;
    let mut own = active.iter().filter(|run| run.origin.is_started_by_server() && shared.owns(run)).count();
    let mut busy: HashSet<_> = active.into_iter().map(|run| run.workspace).collect();
    while !shared.stopping.is_cancelled() {
        skip(shared, &mut queue, &busy).await;
        let is_cancelled = queue.woken.front().is_some_and(|run| run.life.cancel_requested);
        if own >= shared.options.max_runs + if is_cancelled { CANCELLATIONS } else { 0 } {
            break;
        }
        let next = if is_cancelled { queue.woken.pop_front() } else { turns.next(&mut queue) };
        let Some(run) = next else { break };
        let mut change = Change::of(run);
        if change.run.life.step(LifecycleEvent::Dispatched).is_err() {
            continue;
        }
        change.run.replica = shared.replica();
        change.push(event(&ServerEvent::RunDispatched { workspace: change.run.workspace.clone() }));
        // `None`: cancelled at this moment.
        if let Some(run) = shared.commit(&change).await? {
            own += 1;
            busy.insert(run.workspace.clone());
            follow(shared, run, StartMode::Start);
        }
    }
    Ok(())
}

/// Removes the runs that cannot start now from the heads of the queue.
async fn skip(shared: &Shared, queue: &mut Queue, busy: &HashSet<Utf8PathBuf>) {
    let (mut free, mut blocked) = (HashSet::new(), HashSet::new());
    loop {
        let is_known_as_busy = |run: &Run| busy.contains(&run.workspace) || shared.is_followed(&run.id);
        queue.skip(|run| is_known_as_busy(run) || blocked.contains(&run.id));
        let heads = [queue.woken.front(), queue.new.front()].into_iter().flatten();
        let unknown: Vec<Run> = heads.filter(|run| !free.contains(&run.id)).cloned().collect();
        if unknown.is_empty() {
            return;
        }
        for run in unknown {
            let known = if can_start(shared, &run).await { &mut free } else { &mut blocked };
            known.insert(run.id);
        }
    }
}

/// Whether the project of a run is free, and on this machine: otherwise the replica there starts the run. A project whose files do not
/// respond is not free; the queue goes on without it.
async fn can_start(shared: &Shared, run: &Run) -> bool {
    let may_be_elsewhere = shared.store.is_shared() && (run.instance.is_some() || run.life.resume);
    let workspace = run.workspace.clone();
    let check = move || {
        !cliq_backends::internals::is_project_busy(&workspace) && (!may_be_elsewhere || workspace.is_dir())
    };
    shared.io.probe(&run.workspace, check).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use cliq_model::{Cause, RunState, park, wake};
    use cliq_protocol::{RunId, Timestamp};

    use super::*;
    use crate::test_support::{AT, TestSupervisor};

    fn second(number: u64) -> Timestamp {
        AT.after(Duration::from_secs(number))
    }

    /// Stores a run that was parked and woken at a time.
    async fn woken(test: &TestSupervisor, at: Timestamp) -> RunId {
        let run = test.add(&test.running(None)).await;
        let mut parked = Change::of(run);
        park(&mut parked, &[], second(86_400), AT).unwrap();
        test.apply(&parked).await;
        let run = test.run(&parked.run.id).await;
        test.apply(&wake(run, Cause::Time, at).unwrap()).await;
        parked.run.id
    }

    async fn queued(test: &TestSupervisor, at: Timestamp) -> RunId {
        let mut run = test.new_run();
        run.queued_at = at;
        test.add(&run).await.id
    }

    async fn is_dispatched(test: &TestSupervisor, id: &RunId) -> bool {
        test.events(id).await.iter().any(|kind| kind == "run_dispatched")
    }

    /// Assigns one slot at a time and returns the runs in the order in which they got it.
    async fn order(test: &TestSupervisor, runs: &[RunId]) -> Vec<usize> {
        let mut order = Vec::new();
        for _ in runs {
            dispatch(&test.shared).await.unwrap();
            for (n, id) in runs.iter().enumerate() {
                if !order.contains(&n) && is_dispatched(test, id).await {
                    order.push(n);
                    // Its program does not exist.
                    test.wait(id, RunState::Failed).await;
                }
            }
        }
        order
    }

    #[tokio::test]
    async fn woken_and_new_runs_get_slots_in_turn() {
        let test = TestSupervisor::on(cliq_model::MemoryStore::default(), |options| options.max_runs = 1);
        let runs = [
            queued(&test, second(2)).await,
            queued(&test, second(1)).await,
            woken(&test, second(4)).await,
            woken(&test, second(3)).await,
        ];
        assert_eq!(order(&test, &runs).await, [3, 1, 2, 0], "oldest first, and no kind waits for the other");
    }

    #[tokio::test]
    async fn no_run_starts_without_a_slot() {
        let test = TestSupervisor::on(cliq_model::MemoryStore::default(), |options| options.max_runs = 1);
        test.add(&test.running(None)).await;
        let run = queued(&test, AT).await;
        dispatch(&test.shared).await.unwrap();
        assert!(!is_dispatched(&test, &run).await);
        assert!(!has_slot(&test.shared, &test.new_run()).await.unwrap());
    }

    #[tokio::test]
    async fn run_of_a_busy_workspace_lets_others_pass() {
        let test = TestSupervisor::new();
        let active = test.add(&test.running(None)).await;
        let mut blocked = test.new_run();
        blocked.workspace.clone_from(&active.workspace);
        let blocked = test.add(&blocked).await;
        let free = queued(&test, second(86_400)).await;
        dispatch(&test.shared).await.unwrap();
        assert!(is_dispatched(&test, &free).await && !is_dispatched(&test, &blocked.id).await);
        assert!(!has_slot(&test.shared, &blocked).await.unwrap());
    }

    #[tokio::test]
    async fn new_run_without_a_program_fails_with_the_reason() {
        let test = TestSupervisor::new();
        let change = Change::of(test.new_run());
        test.shared.may_wait.store(false, Ordering::SeqCst);
        let run = enqueue(&test.shared, change).await.unwrap().unwrap();
        assert_eq!(run.life.state, RunState::Starting, "it has its slot at once");
        let run = test.wait(&run.id, RunState::Failed).await;
        assert!(run.reason.unwrap().contains("no-such-program"));
        assert_eq!(test.events(&run.id).await, ["run_dispatched", "run_not_started", "run_finished"]);
    }

    #[tokio::test]
    async fn queue_reports_a_store_that_fails() {
        let test = TestSupervisor::new();
        test.store.fail(1);
        assert!(dispatch(&test.shared).await.is_err());
        assert!(dispatch(&test.shared).await.is_ok());
    }
}
