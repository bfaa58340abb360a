//! From an agent's name to what is executed (docs/team-yml.md).

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_protocol::Sandbox;

/// Command of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentCommand {
    /// The program.
    pub program: Utf8PathBuf,
    /// Arguments of the command.
    pub args: Vec<String>,
    /// Environment variables that it needs.
    pub needs_env: Vec<String>,
    /// Whether it is known to use a language model: a budget that is spent keeps it from starting.
    pub uses_model: bool,
    /// Model that it uses, unless a phase names another.
    pub model: Option<String>,
    /// Sandbox that the team asks for.
    pub sandbox: Sandbox,
    /// Whether it is a program of cliq, which restricts what it starts and is not restricted itself.
    pub is_part_of_cliq: bool,
}

impl AgentCommand {
    /// A program without arguments.
    #[must_use]
    pub fn new(program: impl Into<Utf8PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            needs_env: Vec::new(),
            uses_model: false,
            model: None,
            sandbox: Sandbox::default(),
            is_part_of_cliq: false,
        }
    }

    /// The same with arguments.
    #[must_use]
    pub fn with_args(mut self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.args = args.into_iter().map(Into::into).collect();
        self
    }

    /// The same with environment variables that it needs.
    #[must_use]
    pub fn with_needed_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.needs_env = names.into_iter().map(Into::into).collect();
        self
    }

    /// The same in a sandbox.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = sandbox;
        self
    }

    /// The same as a program of cliq.
    #[must_use]
    pub fn as_part_of_cliq(mut self) -> Self {
        self.is_part_of_cliq = true;
        self
    }

    /// The same as an agent that uses a language model: this one, if it is known.
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.uses_model = true;
        self.model = model;
        self
    }
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

    /// Removes an agent.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.commands.remove(name);
        self
    }

    /// Agents that cannot work here, each with the reason.
    pub fn unusable(&self) -> impl Iterator<Item = (&str, &str)> {
        let is_unusable = |(name, _): &(&String, &String)| !self.commands.contains_key(*name);
        self.unusable.iter().filter(is_unusable).map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// Adds an agent that is known and cannot work here, with the reason, for the error of a phase that names it.
    #[must_use]
    pub fn with_unusable(mut self, name: impl Into<String>, why: impl Into<String>) -> Self {
        self.unusable.insert(name.into(), why.into());
        self
    }

    /// Reason why an agent cannot work here; `None` for agents that can, and for unknown ones.
    #[must_use]
    pub fn why_unusable(&self, name: &str) -> Option<&str> {
        self.unusable.get(name).filter(|_| !self.commands.contains_key(name)).map(String::as_str)
    }

    /// Returns the command of an agent.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&AgentCommand> {
        self.commands.get(name)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.commands.keys().map(String::as_str)
    }
}
