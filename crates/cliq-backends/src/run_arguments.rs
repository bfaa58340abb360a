//! Arguments of `cliq run` that choose how a run works.

use cliq_project::{Profile, RunStart};
use cliq_protocol::Budget;

/// Choices for a run, and their form as arguments of another `cliq run`.
#[derive(Debug, Clone, Default)]
pub struct RunArguments {
    /// Agent for phases that name none.
    pub agent: Option<String>,
    /// Title of the run.
    pub title: Option<String>,
    /// Values of the team's inputs.
    pub inputs: Vec<(String, String)>,
    /// Budget for language models.
    pub budget: Budget,
    /// Maximum number of phases at the same time.
    pub max_parallel: Option<u32>,
    /// Name of this cliq if the run is a task of an A2A caller.
    pub a2a_events: Option<String>,
    /// Profile of the sandbox around all processes, beside those of settings and team (docs/sandbox.md).
    pub sandbox: Option<Profile>,
    /// Whether the run ends its process while it only waits for people (docs/reviews.md).
    pub parks: bool,
}

impl RunArguments {
    /// Returns the arguments for agent, inputs, budgets and limits.
    #[must_use]
    pub fn choices(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        // In one argument with its name, as it may begin with a hyphen.
        arguments.extend(self.title.iter().map(|title| format!("--title={title}")));
        let mut add = |name: &str, value: Option<String>| {
            arguments.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        };
        add("--agent", self.agent.clone());
        self.inputs.iter().for_each(|(key, value)| add("--input", Some(format!("{key}={value}"))));
        add("--budget-tokens", self.budget.tokens.map(|tokens| tokens.to_string()));
        add("--budget-usd", self.budget.usd.map(|usd| usd.to_string()));
        add("--max-parallel", self.max_parallel.map(|n| n.to_string()));
        add("--sandbox", self.sandbox.map(|profile| profile.to_string()));
        arguments
    }

    /// Returns the arguments of a `cliq run` that works without a terminal.
    pub(crate) fn headless(&self, run_id: &str, start: &RunStart) -> Vec<String> {
        let mut arguments = match start {
            RunStart::Fresh => words(&["--force", "--run-id", run_id]),
            RunStart::Changed => words(&["--changed", "--run-id", run_id]),
            RunStart::Resume { from: None } => words(&["--resume"]),
            RunStart::Resume { from: Some(from) } => words(&["--from", from]),
        };
        arguments.extend(self.choices());
        arguments.extend(self.parks.then(|| "--park".to_owned()));
        arguments.extend(self.a2a_events.iter().flat_map(|name| ["--a2a-events".to_owned(), name.clone()]));
        arguments
    }
}

pub(crate) fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
