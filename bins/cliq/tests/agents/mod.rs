//! Agents by name and kind, and agents that speak the Agent Client Protocol (docs/agents.md).

mod acp;
mod kills;
mod named;
mod permissions;
