//! Agents by name and kind (docs/agents.md).

mod named;
