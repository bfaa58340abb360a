//! Blocking file access in workspaces, off the threads of the runtime.
//!
//! A workspace may lie on a file system that does not respond. Its calls then wait for each other and not for those of other
//! workspaces, and never occupy all threads for blocking work.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_orchestrator::internals::spawn_blocking;
use tokio::sync::Semaphore;

/// Maximum number of calls of one workspace at the same time.
const CALLS: usize = 8;
/// Maximum number of calls of all workspaces at the same time: half of the threads that the runtime has for blocking work.
const ALL_CALLS: usize = 256;
/// Time after which a caller gives up. The call itself continues, and keeps its place until it ends.
const PATIENCE: Duration = Duration::from_secs(15);
/// The same for a caller that serves other workspaces too.
const PROBE: Duration = Duration::from_millis(500);

/// Reason why a call has no result.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceIoError {
    /// The file system has not responded within 15 seconds.
    #[error("the file system of {0} does not respond; check its mount, and try again")]
    NotResponding(Utf8PathBuf),
    /// An internal error.
    #[error("cannot read the files of the workspace: {0}")]
    Internal(#[from] tokio::task::JoinError),
}

/// Blocking file access, bounded per workspace. Clones share the bounds.
#[derive(Debug, Clone)]
pub struct WorkspaceIo {
    all: Arc<Semaphore>,
    /// Bounds of the workspaces that have calls.
    workspaces: Arc<Mutex<HashMap<Utf8PathBuf, Weak<Bound>>>>,
    patience: Duration,
}

/// Bound of a workspace.
#[derive(Debug)]
struct Bound {
    calls: Arc<Semaphore>,
    /// Number of calls that have not ended although their callers have given up.
    overdue: AtomicUsize,
}

/// Progress of a call: it becomes overdue at most once, and only while it is running.
#[derive(Debug)]
struct Progress(AtomicU8);

impl Progress {
    const WAITING: u8 = 0;
    const RUNNING: u8 = 1;
    const OVERDUE: u8 = 2;
    const ENDED: u8 = 3;

    fn start(&self) {
        self.0.store(Self::RUNNING, Ordering::SeqCst);
    }

    fn end(&self, bound: &Bound) {
        if self.0.swap(Self::ENDED, Ordering::SeqCst) == Self::OVERDUE {
            bound.overdue.fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// The caller gives up.
    fn give_up(&self, bound: &Bound) {
        // Counted before, so that the end of the call finds it counted.
        bound.overdue.fetch_add(1, Ordering::SeqCst);
        let given_up =
            self.0.compare_exchange(Self::RUNNING, Self::OVERDUE, Ordering::SeqCst, Ordering::SeqCst);
        if given_up.is_err() {
            bound.overdue.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Ends the progress of a call, also if its work panics.
struct Call {
    progress: Arc<Progress>,
    bound: Arc<Bound>,
}

impl Drop for Call {
    fn drop(&mut self) {
        self.progress.end(&self.bound);
    }
}

impl Default for WorkspaceIo {
    fn default() -> Self {
        let all = Arc::new(Semaphore::new(ALL_CALLS));
        Self { all, workspaces: Arc::default(), patience: PATIENCE }
    }
}

impl WorkspaceIo {
    /// Runs `work` on a thread for blocking work, after earlier calls of the workspace if there are too many.
    ///
    /// # Errors
    /// Returns an error if the result is not there in time, or `work` panics.
    pub async fn run<T: Send + 'static>(
        &self,
        workspace: &Utf8Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceIoError> {
        self.run_within(self.patience, workspace, self.bound_of(workspace), work).await
    }

    /// As [`WorkspaceIo::run`], for callers that serve other workspaces too, or can do without the result: gives up after half a
    /// second, and at once if earlier calls of the workspace have not ended.
    ///
    /// # Errors
    /// Returns an error if the result is not there in time, or `work` panics.
    pub async fn probe<T: Send + 'static>(
        &self,
        workspace: &Utf8Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceIoError> {
        let bound = self.bound_of(workspace);
        if bound.calls.available_permits() == 0 || bound.overdue.load(Ordering::SeqCst) > 0 {
            return Err(WorkspaceIoError::NotResponding(workspace.to_owned()));
        }
        self.run_within(PROBE, workspace, bound, work).await
    }

    /// Whether the file system of a workspace does not respond: a call has not ended although its caller has given up.
    #[must_use]
    pub fn is_stuck(&self, workspace: &Utf8Path) -> bool {
        let workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        let bound = workspaces.get(workspace).and_then(Weak::upgrade);
        bound.is_some_and(|bound| bound.overdue.load(Ordering::SeqCst) > 0)
    }

    async fn run_within<T: Send + 'static>(
        &self,
        patience: Duration,
        workspace: &Utf8Path,
        bound: Arc<Bound>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceIoError> {
        let call = self.call(patience, workspace, bound, Box::new(move || Box::new(work())));
        match call.await?.downcast() {
            Ok(result) => Ok(*result),
            Err(_) => unreachable!("the result is of the work of this call"),
        }
    }

    /// Runs work of any kind: this is compiled once, and not again for each.
    async fn call(
        &self,
        patience: Duration,
        workspace: &Utf8Path,
        bound: Arc<Bound>,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Result<Box<dyn Any + Send>, WorkspaceIoError> {
        let progress = Arc::new(Progress(AtomicU8::new(Progress::WAITING)));
        let call = async {
            // Neither is ever closed.
            let own = Arc::clone(&bound.calls).acquire_owned().await;
            let all = Arc::clone(&self.all).acquire_owned().await;
            progress.start();
            let call = Call { progress: Arc::clone(&progress), bound: Arc::clone(&bound) };
            spawn_blocking(move || {
                let result = work();
                drop(call);
                drop((own, all));
                result
            })
            .await
        };
        match tokio::time::timeout(patience, call).await {
            Ok(result) => Ok(result?),
            Err(_) => {
                progress.give_up(&bound);
                Err(WorkspaceIoError::NotResponding(workspace.to_owned()))
            }
        }
    }

    fn bound_of(&self, workspace: &Utf8Path) -> Arc<Bound> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = workspaces.get(workspace).and_then(Weak::upgrade) {
            return bound;
        }
        workspaces.retain(|_, bound| bound.strong_count() > 0);
        let calls = Arc::new(Semaphore::new(CALLS));
        let bound = Arc::new(Bound { calls, overdue: AtomicUsize::new(0) });
        workspaces.insert(workspace.to_owned(), Arc::downgrade(&bound));
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn stuck_workspace_delays_only_its_own_calls() {
        let io = WorkspaceIo { patience: Duration::from_millis(50), ..WorkspaceIo::default() };
        let (free, stuck) = std::sync::mpsc::channel::<()>();
        let stuck = Arc::new(Mutex::new(stuck));
        for _ in 0..600 {
            let stuck = Arc::clone(&stuck);
            let call = io.run("/stuck".into(), move || drop(stuck.lock().map(|stuck| stuck.recv())));
            // The first one waits in vain, the others take no time.
            let _ = tokio::time::timeout(Duration::from_millis(1), call).await;
        }
        let late = io.run("/stuck".into(), || ()).await;
        assert!(matches!(late, Err(WorkspaceIoError::NotResponding(_))), "{late:?}");
        assert_eq!(io.all.available_permits(), ALL_CALLS - CALLS, "calls that wait have no thread");
        assert_eq!(io.run("/other".into(), || 7).await.ok(), Some(7));
        drop(free);
        assert_eq!(io.run("/stuck".into(), || 8).await.ok(), Some(8));
    }

    #[tokio::test]
    async fn stuck_workspace_is_known_until_its_calls_end() {
        let io = WorkspaceIo { patience: Duration::from_millis(50), ..WorkspaceIo::default() };
        let workspace = Utf8Path::new("/stuck");
        assert!(!io.is_stuck(workspace));
        let (free, stuck) = std::sync::mpsc::channel::<()>();
        let (ended, mut end) = tokio::sync::mpsc::unbounded_channel();
        let call = io.run(workspace, move || {
            let _ = stuck.recv();
            let _ = ended.send(());
        });
        assert!(call.await.is_err());
        assert!(io.is_stuck(workspace) && !io.is_stuck("/other".into()));
        // Seven more calls would have a thread, but nobody waits for them.
        let start = std::time::Instant::now();
        let refused = io.probe(workspace, || ()).await;
        assert!(matches!(refused, Err(WorkspaceIoError::NotResponding(_))) && start.elapsed() < PROBE);
        drop(free);
        end.recv().await.expect("the call ends");
        // The thread has not returned yet.
        while io.is_stuck(workspace) {
            tokio::task::yield_now().await;
        }
        assert_eq!(io.probe(workspace, || 9).await.ok(), Some(9));
    }

    #[tokio::test]
    async fn bounds_of_idle_workspaces_are_dropped() {
        let io = WorkspaceIo::default();
        for n in 0..100 {
            io.run(format!("/{n}").as_str().into(), || ()).await.expect("a result");
        }
        assert_eq!(io.workspaces.lock().expect("a lock").len(), 1);
    }
}
