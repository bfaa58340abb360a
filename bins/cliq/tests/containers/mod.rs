//! Runs in containers of a real engine.

mod engine;
mod evaluations;
mod failures;
mod hardening;
mod plans;
mod runs;
mod sandbox;
mod server;
