//! Sandboxes: a hostile command tries to leave each profile, under each mechanism. docs/sandbox.md has the table of what must come out.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod attacks;
mod builds;
mod command;
mod egress;
#[path = "../e2e/env.rs"]
#[expect(dead_code, reason = "the other tests use more of it")]
mod env;
mod runs;
mod world;
