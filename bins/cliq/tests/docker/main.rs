//! Runs in containers of a real engine.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

#[path = "../a2a/agent.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod agent;
#[path = "../e2e/daemon.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod daemon;
mod engine;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod evaluations;
mod failures;
mod hardening;
#[path = "../server/machine.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod machine;
mod plan_agents;
mod plans;
mod runs;
mod sandbox;
mod server;
mod steps;
