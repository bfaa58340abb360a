//! Evaluations: whole suites by the built program, processes that are killed, judges and teams whose model is a script.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod budgets;
mod cases;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod examples;
mod gates;
mod judges;
mod kills;
mod reports;
mod world;
