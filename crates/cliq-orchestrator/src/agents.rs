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
    unusable: BTreeMap<String, String>,
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

    /// Adds an agent that is known and cannot work here, and why: whoever names it is told.
    #[must_use]
    pub fn with_unusable(mut self, name: impl Into<String>, why: impl Into<String>) -> Self {
        self.unusable.insert(name.into(), why.into());
        self
    }

    /// Why an agent cannot work here; `None` for those that can, and for those that nobody knows.
    #[must_use]
    pub fn why_unusable(&self, name: &str) -> Option<&str> {
        self.unusable.get(name).filter(|_| !self.commands.contains_key(name)).map(String::as_str)
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
