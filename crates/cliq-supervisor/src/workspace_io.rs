//! Blocking file access in workspaces, off the threads of the runtime.
//!
//! A workspace may lie on a file system that does not respond. Its calls then wait for each other and not for those of other
//! workspaces, and never occupy all threads for blocking work.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
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
    workspaces: Arc<Mutex<HashMap<Utf8PathBuf, Weak<Semaphore>>>>,
    patience: Duration,
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

    /// As [`WorkspaceIo::run`], for callers that serve other workspaces too: gives up after half a second, and at once if
    /// earlier calls of the workspace have not ended.
    pub(crate) async fn probe<T: Send + 'static>(
        &self,
        workspace: &Utf8Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceIoError> {
        let bound = self.bound_of(workspace);
        if bound.available_permits() == 0 {
            return Err(WorkspaceIoError::NotResponding(workspace.to_owned()));
        }
        self.run_within(PROBE, workspace, bound, work).await
    }

    async fn run_within<T: Send + 'static>(
        &self,
        patience: Duration,
        workspace: &Utf8Path,
        bound: Arc<Semaphore>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, WorkspaceIoError> {
        let call = async {
            // Neither is ever closed.
            let own = bound.acquire_owned().await;
            let all = Arc::clone(&self.all).acquire_owned().await;
            tokio::task::spawn_blocking(move || {
                let result = work();
                drop((own, all));
                result
            })
            .await
        };
        match tokio::time::timeout(patience, call).await {
            Ok(result) => Ok(result?),
            Err(_) => Err(WorkspaceIoError::NotResponding(workspace.to_owned())),
        }
    }

    fn bound_of(&self, workspace: &Utf8Path) -> Arc<Semaphore> {
        let mut workspaces = self.workspaces.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bound) = workspaces.get(workspace).and_then(Weak::upgrade) {
            return bound;
        }
        workspaces.retain(|_, bound| bound.strong_count() > 0);
        let bound = Arc::new(Semaphore::new(CALLS));
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
    async fn bounds_of_idle_workspaces_are_dropped() {
        let io = WorkspaceIo::default();
        for n in 0..100 {
            io.run(format!("/{n}").as_str().into(), || ()).await.expect("a result");
        }
        assert_eq!(io.workspaces.lock().expect("a lock").len(), 1);
    }
}
