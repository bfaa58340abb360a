//! The host that projects live on, as values.

use camino::Utf8PathBuf;
use cliq_settings::Environment;

/// The host that projects live on: environment, cliq home, and the program that runs built-in agents.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Host {
    /// The environment, which agents inherit.
    pub environment: Environment,
    /// The directory of installed teams, installed agents and a person's settings. `None` where there is none.
    pub home: Option<Utf8PathBuf>,
    /// The `cliq` program: `PROGRAM agent handle` runs a built-in agent, `PROGRAM agent team` the team of a team phase, `PROGRAM agent review` the review of a human gate,
    /// `PROGRAM pane` a job in a pane of tmux. A `cliq-agent` beside it is preferred for built-in agents.
    pub program: Utf8PathBuf,
}

impl Host {
    /// A host with this environment and this `cliq` program. The home is the one that the environment names.
    #[must_use]
    pub fn new(environment: Environment, program: Utf8PathBuf) -> Self {
        Self { home: environment.cliq_home(), environment, program }
    }

    /// Whether an environment variable is set. Has the shape that [`crate::Run::start`] takes.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.environment.has(name)
    }
}
