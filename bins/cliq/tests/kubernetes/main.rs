//! Runs in a cluster. Those in a real one are for `scripts/kubernetes`, which makes one or uses that which KUBECONFIG names; `mock.rs` needs a mock of others only.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

#[path = "../a2a/agent.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod agent;
mod chart;
mod cluster;
#[path = "../e2e/daemon.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod daemon;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod failures;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod machine;
mod mock;
#[path = "../docker/plan_agents.rs"]
mod plan_agents;
mod plans;
mod runs;
mod server;
#[path = "../docker/steps.rs"]
mod steps;
#[path = "../server/wire.rs"]
mod wire;
