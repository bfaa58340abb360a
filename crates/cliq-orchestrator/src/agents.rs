//! From an agent's name to what is executed (SPEC section 9).

use std::collections::BTreeMap;

use camino::Utf8PathBuf;

/// What is executed for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCommand {
    /// The program.
    pub program: Utf8PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables that it needs.
    pub needs_env: Vec<String>,
}

/// The agents of a run. The team's own shadow installed ones, which shadow the built-in ones.
#[derive(Debug, Clone, Default)]
pub struct Agents {
    commands: BTreeMap<String, AgentCommand>,
}

impl Agents {
    /// No agents.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an agent, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, command: AgentCommand) -> Self {
        self.commands.insert(name.into(), command);
        self
    }

    /// What is executed for an agent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentCommand> {
        self.commands.get(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }
}
