//! Registration state of the meshes.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use cliq_protocol::Timestamp;
use cliq_supervisor::internals::clock;
use serde::Serialize;
use utoipa::ToSchema;

/// Whether a mesh was joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum MeshState {
    /// The first registration is under way.
    Joining,
    /// The mesh knows this server.
    Joined,
    /// The last attempt failed; another follows.
    Failing,
}

/// A mesh as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct MeshStatus {
    /// Name in the settings.
    pub(crate) name: String,
    /// Whether it was joined.
    pub(crate) state: MeshState,
    /// Since when, UTC.
    #[schema(value_type = String)]
    pub(crate) since: Timestamp,
    /// When the server registers again, UTC.
    #[schema(value_type = Option<String>)]
    pub(crate) next: Option<Timestamp>,
    /// Why the last attempt failed.
    pub(crate) reason: Option<String>,
}

/// The meshes of this server.
#[derive(Debug, Default)]
pub(crate) struct Meshes(Mutex<Vec<MeshStatus>>);

impl Meshes {
    /// All of them, in the order of the settings.
    pub(crate) fn list(&self) -> Vec<MeshStatus> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set(&self, name: &str, state: MeshState, next: Option<Duration>, reason: Option<String>) {
        let mut meshes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = clock::now();
        let next = next.map(clock::after);
        match meshes.iter_mut().find(|mesh| mesh.name == name) {
            Some(mesh) => {
                if mesh.state != state {
                    (mesh.state, mesh.since) = (state, now);
                }
                (mesh.next, mesh.reason) = (next, reason);
            }
            None => meshes.push(MeshStatus { name: name.to_owned(), state, since: now, next, reason }),
        }
    }
}
