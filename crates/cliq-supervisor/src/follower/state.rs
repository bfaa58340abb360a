//! State of a follower, and how it stores changes.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;
use std::time::{Duration, Instant};

use camino::Utf8PathBuf;
use cliq_model::{Change, LifecycleEffect, Run, RunOrigin, RunState, StoreError};
use cliq_orchestrator::{JournalFollower, RunView};
use serde_json::Value;
use tokio::process::Child;

use crate::orchestrator;
use crate::output::Outputs;
use crate::shared::{FollowerHandle, Shared};
use crate::words::WordsReader;

/// Maximum delay between two attempts to store a change.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Follower of one run.
pub(super) struct Follower<'a> {
    pub(super) shared: &'a Arc<Shared>,
    pub(super) handle: &'a FollowerHandle,
    /// Time at which the run was taken over from another supervisor, if it was.
    pub(super) adopted: Option<Instant>,
    pub(super) run: Run,
    pub(super) view: Arc<RunView>,
    pub(super) journal: JournalFollower,
    /// Path of the journal after a later run of the project has moved it to the history.
    pub(super) archived: Utf8PathBuf,
    pub(super) is_archived: bool,
    /// Whether the journal belongs to this run, or `None` until its first record is read.
    pub(super) is_same_run: Option<bool>,
    /// Number of journal records applied to `view`.
    pub(super) seen: u64,
    pub(super) log: Utf8PathBuf,
    /// Orchestrator process, if it was started here.
    pub(super) child: Option<Child>,
    /// Watched directory.
    pub(super) dir: Option<Utf8PathBuf>,
    /// Whether the directory of signals is watched.
    pub(super) is_listening: bool,
    /// Reader of the words of its agents.
    pub(super) words: WordsReader,
    /// Verdicts of a delegated run's gates so far.
    pub(super) verdicts: Vec<Value>,
    /// Offsets of stored agent output, for delegated runs with streaming.
    pub(super) outputs: Option<Outputs>,
    /// Number of steering messages of the request that were passed to the run.
    pub(super) passed: usize,
}

impl Follower<'_> {
    /// Whether this replica owns the run. A finished or queued run has no owner.
    pub(super) fn is_own(&self) -> bool {
        let is_active = matches!(self.run.life.state, RunState::Starting | RunState::Running);
        !is_active || self.shared.owns(&self.run)
    }

    pub(super) fn is_delegated(&self) -> bool {
        self.run.origin == RunOrigin::Delegated
    }

    /// Stores a change, with retries until it succeeds or the supervisor stops. Returns whether it was stored. `make` may run several
    /// times.
    pub(super) async fn commit(
        &mut self,
        mut make: impl FnMut(&mut Change, &RunView) -> Vec<LifecycleEffect>,
    ) -> bool {
        let mut wait = Duration::from_millis(50);
        loop {
            let mut change = Change::of(self.run.clone());
            let effects = make(&mut change, &self.view);
            let failed = match self.shared.commit(&change).await {
                Ok(Some(run)) => {
                    self.run = run;
                    if effects.contains(&LifecycleEffect::SendCancel) {
                        orchestrator::send_cancel(&self.run.workspace);
                    }
                    return true;
                }
                Ok(None) => match self.reload().await {
                    // Another replica owns the run and stores the same events.
                    Ok(()) if !self.is_own() => return false,
                    reloaded => reloaded.err(),
                },
                Err(error) => Some(error),
            };
            if let Some(error) = failed {
                tracing::error!(run = %self.run.id, %error, "cannot store events; retrying");
                tokio::select! {
                    () = self.shared.stopping.cancelled() => return false,
                    () = tokio::time::sleep(wait) => {}
                }
                wait = (wait * 2).min(MAX_BACKOFF);
            }
        }
    }

    /// Loads the newest version of the run.
    pub(super) async fn reload(&mut self) -> Result<(), StoreError> {
        if let Some(run) = self.shared.store.run(&self.run.id).await? {
            self.run = run;
        }
        Ok(())
    }
}
