//! Agents that speak the Agent Client Protocol (docs/agents.md).

mod check;
mod launch;
mod listener;
mod people;
mod place;
mod policy;
mod request;
mod termination;
mod worker;

pub use check::{Abilities, AcpCheck};
pub(super) use launch::Launch;
pub(super) use people::People;
pub(super) use worker::AcpWorker;
