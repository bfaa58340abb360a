//! Handle of the supervisor: start, check, submit, cancel, resume, stop.

use std::sync::Arc;
use std::time::Duration;

use cliq_fs::CliqDir;
use cliq_model::{
    Change, FiringStart, Instance, LifecycleEffect, LifecycleEvent, NotAllowed, PushRow, QueueRequest, Run,
    RunState, RunStore, RunTrigger, ServerEvent, Setback, StoreError, TaskRow,
};
use cliq_orchestrator::{PipelineStatus, RunView};
use cliq_protocol::RunId;
use cliq_review::ReviewStore;

use crate::change::{ChangeError, event, update};
use crate::counters::Counters;
use crate::hub::Hub;
use crate::journal::ended;
use crate::options::SupervisorOptions;
use crate::request::{self, CheckedRun, NewRun, RequestError, RunRules};
use crate::review_store::SupervisedReviews;
use crate::shared::Shared;
use crate::tail::EventTail;
use crate::workspace_io::{WorkspaceIo, WorkspaceIoError};
use crate::{
    clock, discovery, follower, last_run, leftovers, orchestrator, queue, replicas, retention, wake,
};

/// Time that tasks have to end after the stop.
const LAST_TASKS: Duration = Duration::from_secs(10);

/// Reason why a project is not registered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The files of the project cannot be read now.
    #[error(transparent)]
    Files(#[from] WorkspaceIoError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Handle of a supervisor. Clones share the same supervisor.
///
/// ```no_run
/// # async fn example(store: std::sync::Arc<dyn cliq_model::RunStore>) -> Result<(), Box<dyn std::error::Error>> {
/// use cliq_model::RunSpec;
/// use cliq_project::{Environment, Host, Settings};
/// use cliq_supervisor::{NewRun, RunRules, Supervisor, SupervisorOptions};
///
/// let host = Host::new(Environment::of_process(), "/usr/local/bin/cliq".into()).with_home("/var/lib/cliq");
/// let options = SupervisorOptions::new(host, "/var/lib/cliq".into(), &Settings::default());
/// let supervisor = Supervisor::start(options, store).await?;
///
/// let spec = RunSpec { team: Some("@cliq/code".to_owned()), ..RunSpec::default() };
/// let checked = supervisor.check(NewRun::new(spec), &RunRules::for_token()).await?;
/// let run = supervisor.submit(checked).await?;
/// println!("run {} is {}", run.id, run.life.state.as_str());
///
/// supervisor.stop().await;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Supervisor {
    shared: Arc<Shared>,
}

impl Supervisor {
    /// Starts a supervisor: follows the active runs of the store and starts the queued ones. Needs a tokio runtime with IO and time.
    ///
    /// The supervisor works until [`Supervisor::stop`], also if all handles are dropped. Runs continue after that.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read.
    pub async fn start(options: SupervisorOptions, store: Arc<dyn RunStore>) -> Result<Self, StoreError> {
        let shared = Arc::new(Shared::new(options, store));
        if shared.store.is_shared() {
            let runs = replicas::round(&shared, &mut replicas::ForeignRuns::default()).await?;
            tracing::info!(runs, replica = shared.options.replica, "following active runs");
            shared.tasks.spawn(replicas::run(Arc::clone(&shared)));
        } else {
            let active = shared.store.active().await?;
            tracing::info!(runs = active.len(), "following active runs");
            for run in active {
                follower::follow(&shared, run, follower::StartMode::Adopt);
            }
        }
        shared.tasks.spawn(queue::run(Arc::clone(&shared)));
        shared.tasks.spawn(wake::run(Arc::clone(&shared)));
        shared.tasks.spawn(discovery::run(Arc::clone(&shared)));
        shared.tasks.spawn(retention::run(Arc::clone(&shared)));
        shared.tasks.spawn(leftovers::remove(Arc::clone(&shared)));
        Ok(Self { shared })
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Checks a request for a run against the rules of an entry point.
    ///
    /// # Errors
    /// Returns each rule that the request breaks, or the reason why it cannot be checked now.
    pub async fn check(&self, new: NewRun, rules: &RunRules) -> Result<CheckedRun, RequestError> {
        let shared = &self.shared;
        request::check(&shared.options, &shared.io, shared.store.as_ref(), new, rules).await
    }

    /// Queues a run. The run starts immediately if a slot is free.
    ///
    /// # Errors
    /// Returns an error if the run cannot be stored.
    pub async fn submit(&self, checked: CheckedRun) -> Result<Run, StoreError> {
        let change = queued(checked.run);
        let fallback = change.run.clone();
        // `None` is impossible: the id is new.
        Ok(queue::enqueue(&self.shared, change).await?.unwrap_or(fallback))
    }

    /// Queues a delegated run with its row in the store. Does nothing if its message has already created a run.
    ///
    /// # Errors
    /// Returns an error if the run cannot be stored.
    #[doc(hidden)]
    pub async fn submit_delegated(
        &self,
        checked: CheckedRun,
        task: TaskRow,
        push: Option<PushRow>,
    ) -> Result<(), StoreError> {
        let mut change = queued(checked.run);
        (change.task, change.push) = (Some(task), push);
        queue::enqueue(&self.shared, change).await.map(drop)
    }

    /// Queues the run of a firing. The store decides the firing in the same transaction. Returns `None` if nothing was stored because the
    /// firing was decided before, or its concurrency group changed.
    ///
    /// # Errors
    /// Returns an error if the run cannot be stored.
    #[doc(hidden)]
    pub async fn submit_fired(
        &self,
        mut checked: CheckedRun,
        trigger: RunTrigger,
        start: FiringStart,
    ) -> Result<Option<Run>, StoreError> {
        checked.run.request.trigger = Some(trigger);
        let mut change = queued(checked.run);
        change.firing = Some(start);
        queue::enqueue(&self.shared, change).await
    }

    /// Registers the project in a directory. Returns `None` if the directory is not a project.
    ///
    /// # Errors
    /// Returns an error if the store fails, or the file system does not respond.
    pub async fn register_project(&self, path: &camino::Utf8Path) -> Result<Option<Instance>, RegisterError> {
        let opened = path.to_owned();
        let read = self.shared.io.run(path, move || {
            let dir = CliqDir::open(&opened).ok()?;
            Some((cliq_fs::read_text(&dir.id_file(), 256).unwrap_or_default(), dir))
        });
        let Some((id, dir)) = read.await? else { return Ok(None) };
        let plain = |id: &&str| {
            !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let id = Some(id.trim()).filter(plain).unwrap_or("cliq-project").to_owned();
        let instance = Instance { id, path: dir.workspace().to_owned(), registered_at: clock::now() };
        Ok(Some(self.shared.store.add_instance(&instance).await?))
    }

    /// Events of all runs, for subscribers.
    #[must_use]
    pub fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Access to the files of workspaces.
    #[doc(hidden)]
    #[must_use]
    pub fn workspace_io(&self) -> &WorkspaceIo {
        &self.shared.io
    }

    /// Options with which the supervisor was started.
    #[must_use]
    pub fn options(&self) -> &SupervisorOptions {
        &self.shared.options
    }

    /// Returns a reader of the events of a run with a number greater than `after`.
    #[must_use]
    pub fn tail(&self, run: &RunId, after: i64) -> EventTail {
        EventTail::new(Arc::clone(&self.shared), run, after)
    }

    /// Cancels a run. A queued run ends at once, a running one when its orchestrator has stopped.
    ///
    /// # Errors
    /// Returns an error if there is no such run, its state does not allow it, or the store fails.
    pub async fn cancel(&self, id: &RunId, caller: &str) -> Result<Run, ChangeError> {
        self.cancel_with_reason(id, caller, None).await
    }

    /// Cancels a run as [`Self::cancel`], with the reason that the caller gives.
    ///
    /// # Errors
    /// Returns an error if the run is not active, or the store failed.
    pub async fn cancel_with_reason(
        &self,
        id: &RunId,
        caller: &str,
        reason: Option<&str>,
    ) -> Result<Run, ChangeError> {
        let detail = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
        let (run, effects) = update(&self.shared, id, |change| {
            let (was_requested, former) = (change.run.life.cancel_requested, change.run.life.former);
            let effects = change.run.life.step(LifecycleEvent::CancelRequested)?;
            if !was_requested {
                let reason = reason.map(str::to_owned);
                change
                    .push(event(&ServerEvent::CancelRequestedByCaller { caller: caller.to_owned(), reason }));
                // The journal of a cancelled run has no reason of its own.
                change.run.reason = Some(format!("cancelled by {caller}{detail}"));
            }
            if change.run.life.parked && change.run.life.state == RunState::Queued {
                change.run.wake_at = None;
                change.run.woken_at.get_or_insert_with(clock::now);
            }
            if let Some(outcome) = former.filter(|_| change.run.life.state.is_final()) {
                let reason = format!("{caller} cancelled the resumption before it began");
                let setback = Setback { reason, state: outcome.into() };
                change.push(event(&ServerEvent::RunNotResumed(setback)));
            } else if change.run.life.state == RunState::Cancelled {
                change.run.ended_at = Some(clock::now());
                change.run.reason = Some(format!("cancelled by {caller} before it began{detail}"));
                change.push(ended(PipelineStatus::Cancelled, None));
                let finished = self.shared.options.delegated_finished(&change.run, &RunView::empty(), &[]);
                finished.into_iter().for_each(|finished| change.push(finished));
            }
            Ok(effects)
        })
        .await?;
        if effects.contains(&LifecycleEffect::SendCancel) {
            let workspace = run.workspace.clone();
            let sent =
                self.shared.io.run(&run.workspace, move || orchestrator::send_cancel(&workspace)).await;
            if let Err(error) = sent {
                tracing::warn!(run = %run.id, %error, "cannot pass on the request to cancel; its follower repeats it");
            }
        }
        if run.life.state.is_final() {
            // A run without a follower: end its subscriptions here.
            self.shared.hub.remove(id);
        }
        self.shared.wake(id);
        self.shared.has_queued();
        Ok(run)
    }

    /// Returns a store of reviews, on the database of the runs, whose decisions give the runs that they wake their slots at once. Those
    /// of other processes are noticed within 100 ms.
    #[doc(hidden)]
    #[must_use]
    pub fn reviews(&self, store: Arc<dyn ReviewStore>) -> Arc<dyn ReviewStore> {
        Arc::new(SupervisedReviews { store, shared: Arc::clone(&self.shared) })
    }

    /// Queues a finished run again. It continues where it stopped, or from the phase `from`. Its outcome stays until it has begun again.
    ///
    /// # Errors
    /// Returns an error if there is no such run, its state does not allow it, it is not the last run of its project, or the store fails.
    pub async fn resume(
        &self,
        id: &RunId,
        caller: &str,
        from: Option<String>,
        budget: cliq_protocol::Budget,
    ) -> Result<Run, ChangeError> {
        loop {
            let run = self.shared.store.run(id).await?.ok_or(ChangeError::NoRun)?;
            let is_complete = run.life.state == RunState::Completed;
            if is_complete && from.is_none() {
                return Err(NotAllowed { state: RunState::Completed }.into());
            }
            let last = last_run::check(&self.shared, &run).await?;
            let mut change = Change::of(run);
            change.run.life.step(LifecycleEvent::Resumed(last))?;
            change.run.replica = None;
            change.run.request.from.clone_from(&from);
            change.run.request.spec.budget = change.run.request.spec.budget.overridden_by(budget);
            change.run.queued_at = clock::now();
            // The former end, its reason and its time stay until the orchestrator has begun the run again.
            change.push(event(&ServerEvent::RunQueued {
                run_id: id.clone(),
                caller: caller.to_owned(),
                request: QueueRequest::Resume { from: from.clone() },
            }));
            if let Some(run) = self.shared.commit(&change).await? {
                self.shared.has_queued();
                return Ok(run);
            }
        }
    }

    /// Checks that a finished run can be resumed: it is not delegated, and the last run of its project.
    ///
    /// # Errors
    /// Returns the reason why it cannot be resumed, or the error of the store.
    pub async fn check_resumable(&self, run: &Run) -> Result<(), ChangeError> {
        if !run.life.state.is_final() {
            return Err(NotAllowed { state: run.life.state }.into());
        }
        last_run::check(&self.shared, run).await.map(drop)
    }

    /// Stores and follows the run of a trial of an evaluation, so that pages and the API show it. Returns its id, or `None` if the
    /// workspace has no journal of a run.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    #[doc(hidden)]
    pub async fn adopt_trial(&self, workspace: &camino::Utf8Path) -> Result<Option<RunId>, StoreError> {
        discovery::adopt_trial(&self.shared, workspace).await
    }

    /// Begins [`Supervisor::stop`] without waiting for its end.
    #[doc(hidden)]
    pub fn begin_stop(&self) {
        self.shared.stopping.cancel();
    }

    /// Stops the supervisor: no run starts from now on, and readers of events get [`TailItem::Stopping`](crate::TailItem). Returns once
    /// its tasks have ended, after ten seconds at most: a follower may wait for a file system that does not respond. Runs continue;
    /// the next supervisor on the store follows them. All clones of the handle are stopped.
    pub async fn stop(&self) {
        self.begin_stop();
        self.shared.tasks.close();
        if tokio::time::timeout(LAST_TASKS, self.shared.tasks.wait()).await.is_err() {
            tracing::warn!(tasks = self.shared.tasks.len(), "stopping without the tasks that wait for files");
        }
    }
}

fn queued(run: Run) -> Change {
    let mut change = Change::of(run);
    let request = match &change.run.request.trigger {
        Some(trigger) => QueueRequest::Trigger { trigger: trigger.name.clone(), firing: trigger.firing },
        None => QueueRequest::New,
    };
    let (run_id, caller) = (change.run.id.clone(), change.run.caller.clone());
    change.push(event(&ServerEvent::RunQueued { run_id, caller, request }));
    change
}
