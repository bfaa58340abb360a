//! Persons who decide about permissions.

use cliq_acp::client::{PermissionReply, PermissionRequest};

/// Person or service that decides about requests for permission that the policy leaves open (`ask`).
///
/// There is none yet: a policy that asks is refused before an agent is started. A review of the kind *permission* will be one.
pub(crate) trait PermissionAsker {
    /// Takes a request. The reply can be sent from any thread. A reply that is dropped cancels the request.
    fn ask(&mut self, request: &PermissionRequest, reply: PermissionReply);
}

/// Asker that cancels every request.
pub(crate) struct Nobody;

impl PermissionAsker for Nobody {
    fn ask(&mut self, _: &PermissionRequest, reply: PermissionReply) {
        drop(reply);
    }
}
