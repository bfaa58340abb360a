//! The built programs, end to end: real processes in temporary directories, real services and clients.
#![expect(clippy::unwrap_used, reason = "a failure here is the failure of a test")]

mod a2a;
mod agents;
mod coder;
mod commands;
mod containers;
mod editors;
mod eval;
mod kubernetes;
mod outside;
mod packages;
mod repositories;
mod reviews;
mod sandbox;
mod server;
mod telemetry;
mod terminal;
mod triggers;
