//! Agents that speak the Agent Client Protocol (docs/agents.md).

mod ask;
mod check;
mod launch;
mod listener;
mod place;
mod policy;
mod worker;

pub use check::{Abilities, AcpCheck};
pub(super) use launch::Launch;
pub(super) use worker::AcpWorker;
