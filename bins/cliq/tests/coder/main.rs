//! Model agents with tools: whole runs against a server that plays the APIs from a script.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod demo;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod hostile;
mod kills;
mod limits;
mod loops;
mod quirks;
mod servers;
mod traces;
mod world;
