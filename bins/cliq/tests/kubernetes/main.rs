//! Runs in a real cluster. `scripts/kubernetes` makes one and runs these, or runs them in the cluster that KUBECONFIG names.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod chart;
mod cluster;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod failures;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod machine;
mod runs;
mod server;
#[path = "../server/wire.rs"]
mod wire;
