//! Agents that speak the Agent Client Protocol (docs/agents.md).

mod check;
mod launch;
mod listener;
mod place;
mod policy;
mod termination;
mod worker;

pub use check::{Abilities, AcpCheck};
pub(super) use launch::Launch;
pub(super) use listener::result_text;
pub(super) use worker::AcpWorker;
