//! The run supervisor (SPEC section 15): it starts orchestrators as processes that outlive the server, follows their journals,
//! and stores what they say, each event once.
//!
//! `queue.rs` gives free places to runs that wait; `replicas.rs` shares the work with other servers on the same database; `follower.rs` is with one run until it ends, and `journal.rs` reads its journal;
//! `orchestrator.rs` is the process; `workspace.rs` prepares where it works; `task.rs` is what callers of A2A get beside the
//! journal; `discovery.rs` finds runs that people start in registered projects; `retention.rs` removes what is old. Decisions are in [`cliq_runs::Life`].

mod change;
mod discovery;
mod follower;
mod journal;
mod orchestrator;
mod queue;
mod replicas;
mod repositories;
mod retention;
mod task;
mod workspace;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::CliqDir;
use cliq_gateway::GatewayError;
use cliq_orchestrator::{DirectoryWatch, RunView};
use cliq_runs::{
    Change, LifeEffect, LifeEvent, NotAllowed, PushRow, Run, RunId, RunOrigin, RunState, RunStore, TaskRow,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock;
use crate::hub::Hub;
use crate::metrics::Metrics;
use crate::options::ServerOptions;
use change::{event, update};
pub(crate) use journal::status_document;
pub(crate) use replicas::Duty;
pub(crate) use repositories::check_repository;

/// The run supervisor. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
}

/// What its tasks share.
#[derive(Debug)]
pub(crate) struct Shared {
    options: ServerOptions,
    store: Arc<dyn RunStore>,
    hub: Arc<Hub>,
    metrics: Arc<Metrics>,
    stopping: CancellationToken,
    tasks: TaskTracker,
    /// Woken when a run may have got a place.
    queue: Notify,
    /// Held while places are given away.
    places: tokio::sync::Mutex<()>,
    /// Whether runs may wait for a place: a new one then takes its turn. Spares a look into the store where none waits.
    may_wait: AtomicBool,
    /// Followers by run.
    followers: Mutex<HashMap<RunId, Arc<Followed>>>,
    /// Followers by the directory whose files tell of news.
    wakers: Arc<Mutex<HashMap<Utf8PathBuf, Arc<Notify>>>>,
    /// `None` where the system cannot watch: followers then poll.
    watch: Option<DirectoryWatch>,
}

/// What others know of a follower.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    waker: Arc<Notify>,
    /// The newest version of the run that is known: another server, or a request, may have changed it.
    newest: AtomicI64,
}

/// Why a run was not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChangeError {
    #[error("there is no such run")]
    NoRun,
    #[error("a task of A2A that is over stays over: its caller sends a new message")]
    TaskIsOver,
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    #[error(transparent)]
    Store(#[from] GatewayError),
}

impl Supervisor {
    /// Takes up the runs that go on, and starts those that wait.
    pub(crate) async fn start(
        options: ServerOptions,
        store: Arc<dyn RunStore>,
        hub: Arc<Hub>,
        metrics: Arc<Metrics>,
        stopping: CancellationToken,
    ) -> Result<Self, GatewayError> {
        let wakers: Arc<Mutex<HashMap<Utf8PathBuf, Arc<Notify>>>> = Arc::default();
        let watch = watch(&wakers)
            .inspect_err(
                |error| tracing::warn!(%error, "files cannot be watched: journals are read at intervals"),
            )
            .ok();
        let shared = Arc::new(Shared {
            options,
            store,
            hub,
            metrics,
            stopping,
            tasks: TaskTracker::new(),
            queue: Notify::new(),
            places: tokio::sync::Mutex::default(),
            may_wait: AtomicBool::new(true),
            followers: Mutex::default(),
            wakers,
            watch,
        });
        if shared.store.is_shared() {
            let runs = replicas::round(&shared, &mut replicas::Foreign::default()).await?;
            tracing::info!(runs, replica = shared.options.replica, "runs that go on are followed");
            shared.tasks.spawn(replicas::run(Arc::clone(&shared)));
        } else {
            let active = shared.store.active().await?;
            tracing::info!(runs = active.len(), "runs that go on are followed");
            for run in active {
                follower::follow(&shared, run, follower::Begin::TakeUp);
            }
        }
        shared.tasks.spawn(queue::run(Arc::clone(&shared)));
        shared.tasks.spawn(discovery::run(Arc::clone(&shared)));
        shared.tasks.spawn(retention::run(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    /// Puts a new run into the queue; it begins at once where a place is free.
    pub(crate) async fn submit(&self, run: Run) -> Result<Run, GatewayError> {
        let mut change = Change::of(run);
        change.push(event("run_queued", &json!({"run_id": change.run.id, "caller": change.run.caller})));
        let fallback = change.run.clone();
        // `None` cannot be: nothing else has the id.
        Ok(queue::enqueue(&self.shared, change).await?.unwrap_or(fallback))
    }

    /// The same for a new task. Nothing happens where its message has made a task before.
    pub(crate) async fn submit_task(
        &self,
        run: Run,
        task: TaskRow,
        push: Option<PushRow>,
    ) -> Result<(), GatewayError> {
        let mut change = Change::of(run);
        change.push(event("run_queued", &json!({"run_id": change.run.id, "caller": change.run.caller})));
        (change.task, change.push) = (Some(task), push);
        queue::enqueue(&self.shared, change).await.map(drop)
    }

    /// Cancels a run.
    pub(crate) async fn cancel(&self, id: &RunId, caller: &str) -> Result<Run, ChangeError> {
        let (run, effects) = update(&self.shared, id, |change| {
            let was_requested = change.run.life.cancel_requested;
            let effects = change.run.life.step(LifeEvent::CancelRequested)?;
            if !was_requested {
                change.push(event("cancel_requested_by_caller", &json!({"caller": caller})));
            }
            if change.run.life.state == RunState::Cancelled {
                change.run.ended_at = Some(clock::now());
                change.run.reason = Some(format!("cancelled by {caller} before it began"));
                change.push(event("run_finished", &json!({"status": "CANCELLED"})));
                if let Some(instance_id) = self.shared.options.task_instance(&change.run) {
                    let (host, view) = (&self.shared.options.host, RunView::empty());
                    change.push(task::finished(host, instance_id, &change.run, &view, &[]));
                }
            }
            Ok(effects)
        })
        .await?;
        if effects.contains(&LifeEffect::SendCancel) {
            orchestrator::send_cancel(&run.workspace);
        }
        if run.life.state.is_final() {
            // No follower does it: subscribers hear of the end.
            self.shared.hub.remove(id);
        }
        self.wake(id);
        Ok(run)
    }

    /// Puts a run that ended into the queue again: it goes on where it stopped, or from a phase.
    pub(crate) async fn resume(
        &self,
        id: &RunId,
        caller: &str,
        from: Option<String>,
        budget: cliq_protocol::Budget,
    ) -> Result<Run, ChangeError> {
        if self.shared.store.run(id).await?.is_some_and(|run| run.origin == RunOrigin::A2a) {
            return Err(ChangeError::TaskIsOver);
        }
        let (run, ()) = update(&self.shared, id, |change| {
            let is_complete = change.run.life.state == RunState::Completed;
            if is_complete && from.is_none() {
                return Err(NotAllowed { state: RunState::Completed });
            }
            change.run.life.step(LifeEvent::Resumed)?;
            change.run.replica = None;
            change.run.request.from.clone_from(&from);
            change.run.request.budget = change.run.request.budget.overridden_by(budget);
            change.run.queued_at = clock::now();
            change.run.ended_at = None;
            change.run.reason = None;
            change.run.phase = None;
            change.push(event(
                "run_queued",
                &json!({"run_id": id, "caller": caller, "resume": true, "from": from}),
            ));
            Ok(())
        })
        .await?;
        self.shared.has_waiting();
        Ok(run)
    }

    /// Ends what the server does for runs. Their orchestrators go on.
    pub(crate) async fn stop(&self) {
        self.shared.tasks.close();
        self.shared.tasks.wait().await;
    }

    fn wake(&self, id: &RunId) {
        let followers = self.shared.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(followed) = followers.get(id) {
            followed.waker.notify_one();
        }
    }
}

impl Shared {
    /// A run waits for a place.
    fn has_waiting(&self) {
        self.may_wait.store(true, Ordering::SeqCst);
        self.queue.notify_one();
    }

    /// Wakes `waker` when files of a directory change.
    fn watch(&self, dir: &Utf8Path, waker: &Arc<Notify>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.insert(dir.to_owned(), Arc::clone(waker));
        drop(wakers);
        if let Some(watch) = &self.watch
            && let Err(error) = watch.add(dir)
        {
            tracing::debug!(%error, %dir, "it is not watched");
        }
    }

    /// Wakes `waker` no more. The next run of the project may watch the directory already, and goes on to.
    fn unwatch(&self, dir: &Utf8Path, waker: &Arc<Notify>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.get(dir).is_some_and(|known| Arc::ptr_eq(known, waker)) {
            return;
        }
        wakers.remove(dir);
        if let Some(watch) = &self.watch {
            watch.remove(dir);
        }
    }

    /// The name under which this server has runs; `None` where no other can.
    fn replica(&self) -> Option<String> {
        self.store.is_shared().then(|| self.options.replica.clone())
    }

    /// Whether this server has a run.
    fn has(&self, run: &Run) -> bool {
        !self.store.is_shared() || run.replica.as_ref() == Some(&self.options.replica)
    }

    /// Whether a follower is with the run.
    fn is_followed(&self, id: &RunId) -> bool {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }

    /// The log of a run's orchestrator. Its lock is held for as long as the orchestrator lives.
    fn log_file(&self, id: &RunId) -> Utf8PathBuf {
        self.options.log_dir().join(format!("{id}.log"))
    }
}

/// Wakes followers when journals change. Runs write other files beside them, far more often.
fn watch(wakers: &Arc<Mutex<HashMap<Utf8PathBuf, Arc<Notify>>>>) -> std::io::Result<DirectoryWatch> {
    let wakers = Arc::clone(wakers);
    DirectoryWatch::new(move |file| {
        let wakers = wakers.lock().unwrap_or_else(PoisonError::into_inner);
        match file {
            Some(file) if file.file_name() == Some(CliqDir::JOURNAL) => {
                file.parent()
                    .and_then(|dir| wakers.get(dir))
                    .into_iter()
                    .for_each(|waker| waker.notify_one());
            }
            Some(_) => {}
            None => wakers.values().for_each(|waker| waker.notify_one()),
        }
    })
}
