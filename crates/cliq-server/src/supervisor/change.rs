//! Changes of runs: load, step, store, publish.

use cliq_gateway::Outcome;
use cliq_runs::{Change, NewRunEvent, NotAllowed, Run, RunId};
use serde_json::Value;

use super::{ChangeError, Shared};
use crate::clock;

/// An event of the server's own (`docs/server.md` lists them).
pub(crate) fn event(kind: &str, fields: &Value) -> NewRunEvent {
    let ts = clock::now();
    let mut data = serde_json::json!({"event": kind, "ts": ts});
    if let (Some(data), Some(fields)) = (data.as_object_mut(), fields.as_object()) {
        data.extend(fields.clone());
    }
    NewRunEvent { ts, kind: kind.to_owned(), data: data.to_string() }
}

/// Changes a stored run. `step` may run several times: where another changed the run at the same moment, it starts from the
/// version that the other made.
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
    /// Stores a change and sends its events to subscribers. Gives the run as it is now; `None` where another changed it since.
    pub(super) async fn commit(&self, change: &Change) -> Result<Option<Run>, cliq_gateway::GatewayError> {
        if self.store.change(change).await? == Outcome::Stale {
            return Ok(None);
        }
        self.metrics.events_stored(change.events.len());
        self.hub.publish(&change.run.id, &change.rows());
        let mut run = change.run.clone();
        run.version += 1;
        Ok(Some(run))
    }
}
