//! Runs in containers of a real engine.

mod engine;
mod evaluations;
mod failures;
mod hardening;
mod plans;
mod runs;
pub(crate) mod sandbox;
mod server;
mod small;
