//! Sandboxes inside of pods.

use crate::containers::sandbox::TEAM;
use crate::kubernetes::cluster::project;

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn phases_are_within_a_sandbox_in_a_pod() {
    let env = project(TEAM, &[]);
    env.cliq(["settings", "set", "-g", "sandbox.mechanism", "auto"]).expect(0);
    env.cliq(["run"]).expect(0);
    assert!(env.exists("connected"), "there is a network without a sandbox");
    assert!(env.read("read-free").contains("sandbox"), "{}", env.read("read-free"));
    assert_eq!((env.read("read-walled"), env.read("made")), (String::new(), "done\n".to_owned()));
    env.cliq(["explain"]).expect(0).says("sandbox workspace, no network by landlock");
}
