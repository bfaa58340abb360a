//! Changes of stored runs: load, step, store, publish.

use cliq_model::{Change, NewRunEvent, NotAllowed, NotLast, Outcome, Run, ServerEvent, StoreError};
use cliq_protocol::RunId;

use crate::clock;
use crate::shared::Shared;
use crate::workspace_io::WorkspaceIoError;

/// Reason why a run was not changed.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// No run has this id.
    #[error("there is no such run")]
    NoRun,
    /// A finished delegated run cannot be resumed (docs/a2a.md).
    #[error("a task of A2A that is over stays over: its caller sends a new message")]
    DelegationIsOver,
    /// The run is not the last of its project. Its outcome stays.
    #[error(transparent)]
    NotLast(#[from] NotLast),
    /// The state of the run does not allow the change.
    #[error(transparent)]
    NotAllowed(#[from] NotAllowed),
    /// The files of the run's project cannot be read now.
    #[error(transparent)]
    Files(#[from] WorkspaceIoError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Encodes an event of the server that happens now.
pub(crate) fn event(event: &ServerEvent) -> NewRunEvent {
    NewRunEvent::of_server(clock::now(), event)
}

/// Changes a stored run. `step` runs again, on the newest version, if another writer changed the run in the meantime.
pub(crate) async fn update<T>(
    shared: &Shared,
    id: &RunId,
    mut step: impl FnMut(&mut Change) -> Result<T, NotAllowed>,
) -> Result<(Run, T), ChangeError> {
    loop {
        let run = shared.store.run(id).await?.ok_or(ChangeError::NoRun)?;
        let mut change = Change::of(run);
        let result = step(&mut change)?;
        if let Some(run) = shared.commit(&change).await? {
            return Ok((run, result));
        }
    }
}

impl Shared {
    /// Stores a change and publishes its events. Returns the stored run, or `None` on an optimistic-lock conflict.
    pub(crate) async fn commit(&self, change: &Change) -> Result<Option<Run>, StoreError> {
        if self.store.change(change).await? == Outcome::Stale {
            return Ok(None);
        }
        self.counters.count_events(change.events.len());
        self.hub.publish(&change.run.id, &change.rows());
        let mut run = change.run.clone();
        run.version += 1;
        Ok(Some(run))
    }
}
