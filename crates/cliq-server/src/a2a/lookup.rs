//! A caller's task in the store, and the error where that cannot be read.

use cliq_a2a::{A2aError, ErrorKind};
use cliq_model::{StoreError, StoredTask};
use cliq_protocol::RunId;

use crate::app::App;

/// A failure of the store.
pub(super) fn internal(error: &StoreError) -> A2aError {
    tracing::error!(%error, "the database cannot be used");
    A2aError::new(ErrorKind::Internal, "the database cannot be used at the moment; try again later")
}

/// A task of the caller. One of another caller is as one that does not exist.
pub(super) async fn find(app: &App, owner: &str, id: &str) -> Result<StoredTask, A2aError> {
    // An id of another form takes the same way to the store, and the same time.
    let parsed = RunId::parse_uuid(id).or_else(|| RunId::parse_uuid("00000000-0000-7000-8000-000000000000"));
    let found = match &parsed {
        Some(id) => app.tasks.task(owner, id).await.map_err(|error| internal(&error))?,
        None => None,
    };
    found.filter(|found| found.run.id.as_str() == id).ok_or_else(|| A2aError::task_not_found(id))
}
