//! Scripted results of commands: commands of a trial are not run (docs/team-test.md). Pure.

use std::collections::BTreeMap;

/// Results of commands that are not run, by phase, command and activation.
///
/// ```
/// use cliq_orchestrator::CommandScript;
///
/// let script = CommandScript::new().with_results("quality", "lint", [false, true]);
/// assert_eq!(script.result("quality", "lint", 1), Some(false));
/// // The last result counts for all later activations.
/// assert_eq!(script.result("quality", "lint", 3), Some(true));
/// // All other commands run.
/// assert_eq!(script.result("quality", "test", 1), None);
/// assert_eq!(CommandScript::all_pass().result("quality", "test", 1), Some(true));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandScript {
    results: BTreeMap<String, BTreeMap<String, Vec<bool>>>,
    default: Option<bool>,
}

impl CommandScript {
    /// Returns a script without results: all commands run.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a script by which no command runs and each passes, except those with results of their own.
    #[must_use]
    pub fn all_pass() -> Self {
        Self { results: BTreeMap::new(), default: Some(true) }
    }

    /// Sets the results of a command, by activation of its phase: whether it passes. The last one counts for all later activations.
    #[must_use]
    pub fn with_results(
        mut self,
        phase: impl Into<String>,
        command: impl Into<String>,
        results: impl IntoIterator<Item = bool>,
    ) -> Self {
        let results = results.into_iter().collect();
        self.results.entry(phase.into()).or_default().insert(command.into(), results);
        self
    }

    /// Whether no command runs.
    #[must_use]
    pub fn runs_nothing(&self) -> bool {
        self.default.is_some()
    }

    /// Returns whether a command passes in an activation, 1-based. `None` if the command is to be run. Items of a phase have the results of
    /// the phase.
    #[must_use]
    pub fn result(&self, phase: &str, command: &str, activation: u32) -> Option<bool> {
        let phase = phase.split_once('.').map_or(phase, |(phase, _)| phase);
        let results = self.results.get(phase).and_then(|commands| commands.get(command));
        let index = usize::try_from(activation.saturating_sub(1)).unwrap_or(usize::MAX);
        let own = results.and_then(|results| results.get(index).or(results.last()).copied());
        own.or(self.default)
    }
}
