//! The host that projects live on, as values.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_settings::{Environment, ServerSettings, Settings};

use crate::ProjectError;

/// The host that projects live on: environment, cliq home, and the program that runs built-in agents.
///
/// ```
/// use cliq_project::{Environment, Host};
///
/// // The libraries read no environment: a program passes its own, or another one.
/// let environment = Environment::new([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
/// let host = Host::new(environment, "/usr/local/bin/cliq".into()).with_home("/var/lib/cliq");
/// assert!(host.has_variable("PATH") && !host.has_variable("OPENAI_API_KEY"));
/// assert_eq!(host.home.as_deref(), Some("/var/lib/cliq".into()));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Host {
    /// The environment, which agents inherit.
    pub environment: Environment,
    /// The directory of installed teams, installed agents and a person's settings. `None` if there is none.
    pub home: Option<Utf8PathBuf>,
    /// The `cliq` program: `PROGRAM agent handle` runs a built-in agent, `PROGRAM agent team` the team of a team phase, `PROGRAM agent review` the review of a human gate,
    /// `PROGRAM pane` a job in a pane of tmux, `PROGRAM watchdog` the watchdog of a run. A `cliq-agent` beside it is preferred for built-in agents.
    pub program: Utf8PathBuf,
    /// Settings of the project that teams are looked up for.
    pub(crate) project_settings: Option<Utf8PathBuf>,
}

/// The variable with which a server marks runs whose inputs a caller chose: they must not name addresses of this network
/// ([`cliq_orchestrator::RunPlan::guards_inputs`]).
pub const GUARD_INPUTS: &str = "CLIQ_GUARD_INPUTS";

/// Returns the directory of the workspaces that a server makes for runs.
#[must_use]
pub fn workspace_root(home: &Utf8Path, settings: &Settings) -> Utf8PathBuf {
    let chosen = ServerSettings::read(settings).workspace_root.map(Utf8PathBuf::from);
    chosen.unwrap_or_else(|| home.join("workspaces"))
}

impl Host {
    /// A host with this environment and this `cliq` program. The home is the one that the environment names.
    #[must_use]
    pub fn new(environment: Environment, program: Utf8PathBuf) -> Self {
        Self { home: environment.cliq_home(), environment, program, project_settings: None }
    }

    /// Returns the settings of the person, with those of the project that the host belongs to.
    ///
    /// # Errors
    /// A settings file cannot be read or has an error.
    pub fn settings(&self) -> Result<Settings, ProjectError> {
        Ok(Settings::load(self.home.as_deref(), self.project_settings.as_deref())?)
    }

    /// Sets the cliq home: the directory of installed teams, installed agents and a person's settings.
    #[must_use]
    pub fn with_home(mut self, home: impl Into<Utf8PathBuf>) -> Self {
        self.home = Some(home.into());
        self
    }

    /// The PATH of agents and commands: with the directory of the `cliq` program at its end, so that they find it.
    pub(crate) fn path(&self) -> Option<String> {
        let own = self.program.parent().filter(|dir| !dir.as_str().is_empty())?;
        let path = self.environment.get("PATH")?;
        let has_it = path.split(':').any(|dir| dir == own.as_str());
        (!has_it).then(|| format!("{path}:{own}"))
    }

    /// Whether an environment variable is set. Has the shape that [`crate::Run::start`] takes.
    #[must_use]
    pub fn has_variable(&self, name: &str) -> bool {
        self.environment.has(name)
    }
}
