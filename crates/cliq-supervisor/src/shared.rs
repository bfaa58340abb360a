//! State that the tasks of a supervisor share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_model::{Run, RunStore, Turns};
use cliq_orchestrator::internals::DirectoryWatch;
use cliq_protocol::RunId;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::counters::Counters;
use crate::hub::Hub;
use crate::options::SupervisorOptions;
use crate::workspace_io::WorkspaceIo;

type Wakers = Arc<Mutex<HashMap<Utf8PathBuf, Arc<Notify>>>>;

/// State that the tasks of a supervisor share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: SupervisorOptions,
    pub(crate) store: Arc<dyn RunStore>,
    pub(crate) hub: Hub,
    pub(crate) counters: Counters,
    pub(crate) io: WorkspaceIo,
    pub(crate) stopping: CancellationToken,
    pub(crate) tasks: TaskTracker,
    /// Notified when a queued run may get a slot.
    pub(crate) queue: Notify,
    /// Held while slots are assigned.
    pub(crate) slots: tokio::sync::Mutex<Turns>,
    /// Notified when a run has parked.
    pub(crate) parked: Notify,
    /// Whether runs are parked, which other processes may wake.
    pub(crate) has_parked: AtomicBool,
    /// Whether runs may be queued. A new run then takes its turn. If unset, no look into the store is needed.
    pub(crate) may_wait: AtomicBool,
    /// Followers by run.
    pub(crate) followers: Mutex<HashMap<RunId, Arc<FollowerHandle>>>,
    /// Wakers of followers by watched directory.
    wakers: Wakers,
    /// `None` if the system cannot watch files. Followers then poll.
    watch: Option<DirectoryWatch>,
}

/// Handle of a follower for other tasks.
#[derive(Debug, Default)]
pub(crate) struct FollowerHandle {
    pub(crate) waker: Arc<Notify>,
    /// Notified when an agent of the run has said something.
    pub(crate) speech: Arc<Notify>,
    /// Newest known version of the run. Another replica or a request may have changed the run.
    pub(crate) newest: AtomicI64,
}

impl Shared {
    pub(crate) fn new(options: SupervisorOptions, store: Arc<dyn RunStore>) -> Self {
        let wakers = Wakers::default();
        let watch = watch(&wakers)
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files: journals are read at intervals"))
            .ok();
        Self {
            options,
            store,
            hub: Hub::default(),
            counters: Counters::default(),
            io: WorkspaceIo::default(),
            stopping: CancellationToken::new(),
            tasks: TaskTracker::new(),
            queue: Notify::new(),
            slots: tokio::sync::Mutex::default(),
            parked: Notify::new(),
            has_parked: AtomicBool::new(false),
            may_wait: AtomicBool::new(true),
            followers: Mutex::default(),
            wakers,
            watch,
        }
    }

    /// Records that a run is queued, and wakes the queue.
    pub(crate) fn has_queued(&self) {
        self.may_wait.store(true, Ordering::SeqCst);
        self.queue.notify_one();
    }

    /// Records that a run has parked. A review may have woken it since.
    pub(crate) fn has_parked(&self) {
        self.parked.notify_one();
        self.has_queued();
    }

    /// Wakes the follower of a run, if there is one.
    pub(crate) fn wake(&self, id: &RunId) {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = followers.get(id) {
            handle.waker.notify_one();
        }
    }

    /// Tells the follower of a run, if there is one, that a request has changed the run.
    pub(crate) fn has_changed(&self, run: &Run) {
        let followers = self.followers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = followers.get(&run.id) {
            handle.newest.fetch_max(run.version, Ordering::SeqCst);
            handle.waker.notify_one();
        }
    }

    /// Notifies `waker` when the journal in a directory changes.
    pub(crate) fn watch(&self, dir: &Utf8Path, waker: &Arc<Notify>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        wakers.insert(dir.to_owned(), Arc::clone(waker));
        drop(wakers);
        if let Some(watch) = &self.watch
            && let Err(error) = watch.add(dir)
        {
            tracing::debug!(%error, %dir, "cannot watch the directory");
        }
    }

    /// Stops notifying `waker`. Does nothing if the next run of the project already watches the directory.
    pub(crate) fn unwatch(&self, dir: &Utf8Path, waker: &Arc<Notify>) {
        let mut wakers = self.wakers.lock().unwrap_or_else(PoisonError::into_inner);
        if !wakers.get(dir).is_some_and(|known| Arc::ptr_eq(known, waker)) {
            return;
        }
        wakers.remove(dir);
        if let Some(watch) = &self.watch {
            watch.remove(dir);
        }
    }

    /// Name under which this supervisor owns runs, or `None` if the store has no other user.
    pub(crate) fn replica(&self) -> Option<String> {
        self.store.is_shared().then(|| self.options.replica.clone())
    }

    /// Whether this supervisor owns a run.
    pub(crate) fn owns(&self, run: &Run) -> bool {
        !self.store.is_shared() || run.replica.as_ref() == Some(&self.options.replica)
    }

    /// Whether the run has a follower here.
    pub(crate) fn is_followed(&self, id: &RunId) -> bool {
        self.followers.lock().unwrap_or_else(PoisonError::into_inner).contains_key(id)
    }
}

/// Creates the watch that wakes followers when journals change. Other files of a run change far more often and are ignored.
fn watch(wakers: &Wakers) -> std::io::Result<DirectoryWatch> {
    let wakers = Arc::clone(wakers);
    DirectoryWatch::new(move |file| {
        let wakers = wakers.lock().unwrap_or_else(PoisonError::into_inner);
        match file {
            // The journal, or the signals of a phase.
            Some(file) if file.extension() == Some("jsonl") => {
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
