//! Checks of the host and the project: what is there, what is missing, and what that means.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8Path;
use cliq_agents::{AcpCheck, AgentKind, ModelAgent, ServerState, Usable};
use cliq_fs::CliqDir;
use cliq_orchestrator::TmuxServer;
use cliq_sandbox::LANDLOCK_VERSION;
use cliq_settings::{Environment, Settings};
use serde::Serialize;

use crate::{Host, Project};

/// A check of the host or the project.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct Check {
    /// Subject of the check.
    pub name: Cow<'static, str>,
    /// The outcome.
    pub status: CheckStatus,
    /// Result for people.
    pub detail: String,
}

impl Check {
    /// A check of a program's own.
    #[must_use]
    pub fn new(name: impl Into<Cow<'static, str>>, status: CheckStatus, detail: String) -> Self {
        Self { name: name.into(), status, detail }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckStatus {
    /// The part is present.
    Ok,
    /// Something optional is not there.
    Note,
    /// Something is not there, and something cannot work because of it.
    Missing,
}

impl Host {
    /// Checks this host, and the project of `here` if there is one. `version` is that of the program. Servers of models whose address is
    /// set are asked for their models; `on_wait` receives a sentence before that.
    #[must_use]
    pub fn checks(&self, here: &Utf8Path, version: &str, on_wait: &dyn Fn(&str)) -> Vec<Check> {
        use CheckStatus::{Missing, Note, Ok as Good};
        let mut checks = Vec::new();
        let mut add =
            |name: &str, status, detail: String| checks.push(Check::new(name.to_owned(), status, detail));
        add("cliq", Good, format!("version {version}"));
        let agent = self.program.with_file_name("cliq-agent");
        if agent.is_file() {
            add("cliq-agent", Good, agent.to_string());
        } else {
            add("cliq-agent", Note, "not beside cliq; `cliq agent handle` does its work".to_owned());
        }
        let on_path = |program: &str| self.environment.find_program(program).is_some();
        if on_path("sh") {
            add("sh", Good, "commands can run".to_owned());
        } else {
            add("sh", Missing, "sh is not installed: commands of phases cannot run".to_owned());
        }
        if on_path(cliq_git::PROGRAM) {
            add(cliq_git::PROGRAM, Good, "found".to_owned());
        } else {
            add(
                cliq_git::PROGRAM,
                Note,
                "not found: needed only by teams that work with repositories".to_owned(),
            );
        }
        match TmuxServer::installed() {
            Some(version) => add("tmux", Good, format!("version {version}")),
            None => add("tmux", Note, "not found, or older than 3.2: phases run without panes".to_owned()),
        }
        let support = self.sandbox_support();
        match &support.seatbelt {
            Some(Ok(program)) => add("seatbelt", Good, program.to_string()),
            Some(Err(why)) => add("seatbelt", Note, format!("{why}: sandboxes cannot be enforced")),
            None => {
                match &support.bubblewrap {
                    Ok(program) => add("bubblewrap", Good, program.to_string()),
                    Err(why) => add(
                        "bubblewrap",
                        Note,
                        format!("{why}: a sandbox does not protect .cliq and .git without it"),
                    ),
                }
                match support.landlock {
                    0 => add("landlock", Note, "the kernel has none".to_owned()),
                    version @ ..LANDLOCK_VERSION => {
                        let detail = format!(
                            "version {version}: a sandbox without bubblewrap needs {LANDLOCK_VERSION}"
                        );
                        add("landlock", Note, detail);
                    }
                    version => add("landlock", Good, format!("version {version} or later")),
                }
            }
        }
        match &self.home {
            Some(home) if home.is_dir() => add("home", Good, home.to_string()),
            Some(home) => add("home", Note, format!("{home} does not exist yet; nothing is installed there")),
            None => add("home", Note, "neither CLIQ_HOME nor HOME is set".to_owned()),
        }
        let project = CliqDir::discover(here).map(|dir| Project::of(dir, self.clone()));
        let settings = match &project {
            Some(project) => project.settings(),
            None => Settings::load(self.home.as_deref(), None).map_err(Into::into),
        };
        let settings = match settings {
            Ok(settings) => {
                add("settings", Good, "valid".to_owned());
                settings
            }
            Err(error) => {
                add("settings", Missing, error.to_string());
                Settings::default()
            }
        };
        let servers = ask_servers(&settings, &self.environment, on_wait);
        let started = start_agents(&settings, &self.environment, on_wait);
        for agent in ModelAgent::all(&settings) {
            match (agent.usable(&settings, &self.environment), servers.get(&agent.name)) {
                (Usable::Yes(how), None) if agent.kind() == AgentKind::Acp => {
                    match started.get(&agent.name) {
                        Some(AcpCheck { problem: Some(problem), .. }) => {
                            add(&agent.name, Missing, format!("{how}: {problem}"));
                        }
                        Some(check) => add(&agent.name, Good, check.summary()),
                        None => {
                            let why = "not started, as a project's settings choose its program; `cliq agent check` starts it";
                            add(&agent.name, Note, format!("{how}: {why}"));
                        }
                    }
                }
                (Usable::Yes(how), None) => add(&agent.name, Good, how),
                (Usable::Yes(how), Some(state)) if state.is_fault() => {
                    add(&agent.name, Missing, format!("{how}: {state}"));
                }
                (Usable::Yes(how), Some(state)) => {
                    let status = if state.is_ready() { Good } else { Note };
                    add(&agent.name, status, format!("{how}: {state}"));
                }
                (Usable::No(why), _) => add(&agent.name, Note, why),
            }
        }
        for why in ModelAgent::refused(&settings).into_values() {
            add("settings", Note, why);
        }
        for (name, why) in self.broken_agents() {
            add("installed", Missing, format!("{name}: {why}"));
        }
        match self.default_agent(&settings) {
            Some(name) => add("default", Good, format!("phases that name no agent get {name}")),
            None => {
                let detail = "phases that name no agent cannot run: no model agent is usable";
                add("default", Note, detail.to_owned());
            }
        }
        match project {
            Some(project) => project.checks(&settings, &mut checks),
            None => add("project", Note, "no project here; `cliq init` makes one".to_owned()),
        }
        checks
    }
}

/// Asks the servers of models whose address is set, all at once. Returns their states by the name of the agent.
fn ask_servers(
    settings: &Settings,
    environment: &Environment,
    on_wait: &dyn Fn(&str),
) -> BTreeMap<String, ServerState> {
    let probes = cliq_agents::probes(settings, environment);
    let waits: Vec<_> = probes
        .into_iter()
        .map(|probe| {
            on_wait(&format!("asking {} for its models", probe.address()));
            (probe.agent().to_owned(), probe.start())
        })
        .collect();
    waits.into_iter().map(|(agent, wait)| (agent, wait())).collect()
}

/// Longest time for each answer of an agent that is started.
const AGENT_LIMIT: Duration = Duration::from_secs(30);

/// Starts the agents of the kind `acp` whose programs the person chose, all at once. Returns what they can do by their names. Agents of a
/// project's settings are not started: nobody has decided to run that project.
fn start_agents(
    settings: &Settings,
    environment: &Environment,
    on_wait: &dyn Fn(&str),
) -> BTreeMap<String, AcpCheck> {
    let is_startable = |agent: &ModelAgent| {
        agent.kind() == AgentKind::Acp
            && agent.is_chosen_by_person(settings)
            && matches!(agent.usable(settings, environment), Usable::Yes(_))
    };
    let agents: Vec<ModelAgent> = ModelAgent::all(settings).into_iter().filter(is_startable).collect();
    std::thread::scope(|scope| {
        let checks: Vec<_> = agents
            .iter()
            .map(|agent| {
                on_wait(&format!("starting {}", agent.name));
                (agent.name.clone(), scope.spawn(|| agent.check(settings, environment, AGENT_LIMIT)))
            })
            .collect();
        checks.into_iter().filter_map(|(name, check)| Some((name, check.join().ok()?))).collect()
    })
}

impl Project {
    fn checks(&self, settings: &Settings, checks: &mut Vec<Check>) {
        use CheckStatus::{Missing, Note, Ok as Good};
        let mut add =
            |name: &str, status, detail: String| checks.push(Check::new(name.to_owned(), status, detail));
        add("project", Good, self.dir().workspace().to_string());
        if !self.has_team() {
            return add("team", Note, "none assembled; `cliq assemble TEAM` chooses one".to_owned());
        }
        let Ok(workflow) = self.workflow() else {
            return add("team", Missing, "it has errors".to_owned());
        };
        add("team", Good, workflow.name.to_string());
        let missing = |tool: &&String| self.host().environment.find_program(tool).is_none();
        for tool in workflow.tools.iter().filter(missing) {
            add("tool", Missing, format!("{tool} is not on the PATH"));
        }
        let mut plan = self.base_plan(workflow, settings);
        // Inputs are given with each run.
        plan.inputs = plan.workflow.inputs.iter().map(|input| (input.name.clone(), String::new())).collect();
        match plan.check(&|name| self.host().has_variable(name)) {
            Ok(()) => {
                let names: Vec<&str> = plan.agents.names().collect();
                add("agents", Good, format!("usable: {}", names.join(", ")));
            }
            Err(error) => error.problems.into_iter().for_each(|problem| add("agents", Missing, problem)),
        }
    }
}
