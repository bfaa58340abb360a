//! Settings `triggers.*`.

use std::collections::BTreeMap;

use super::group;
use crate::secret::Secret;

group! {
    /// Settings of triggers.
    Shared struct TriggerSettings {
        "triggers.secrets.*", secrets: BTreeMap<String, Secret>,
            "a secret with which the sender of a webhook signs";
        "triggers.repo_hosts", repo_hosts: Vec<String>,
            "hosts from which triggers may clone repositories, and which may have private addresses; without it, every public host";
    }
}
