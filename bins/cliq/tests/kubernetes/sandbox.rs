//! Sandboxes inside of pods.

use crate::containers::sandbox::{TEAM, runs_behind_walls};
use crate::kubernetes::cluster::project;

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn phases_are_within_a_sandbox_in_a_pod() {
    runs_behind_walls(&project(TEAM, &[]));
}
