//! Available agents: the team's own, installed ones, built-in ones (SPEC section 9).

use std::cell::LazyCell;
use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_agents::{ModelAgent, Usable};
use cliq_fs::read_limited;
use cliq_orchestrator::{AgentCommand, Agents};
use cliq_protocol::PhaseKind;
use cliq_settings::{Settings, is_executable};
use cliq_workflow::{Agent, ValidatedWorkflow, is_connector};
use serde::Deserialize;

use crate::host::Host;
use crate::{Project, ProjectError};

/// The most bytes that the manifest of an installed agent may have.
const MANIFEST_LIMIT: u64 = 1 << 20;

impl Host {
    /// The agents that can work outside of any project: installed and built-in ones.
    #[must_use]
    pub fn agents(&self, settings: &Settings) -> Agents {
        agents(self, None, settings)
    }

    /// The agent for phases that name none: what is set, else the first model agent that can work (SPEC section 9).
    #[must_use]
    pub fn default_agent(&self, settings: &Settings) -> Option<String> {
        let usable =
            |agent: &&ModelAgent| matches!(agent.usable(settings, &self.environment), Usable::Yes(_));
        let first = || cliq_agents::MODEL_AGENTS.iter().find(usable).map(|agent| agent.name.to_owned());
        settings.text("default_agent").or_else(first)
    }
}

impl Project {
    /// The agents that can work for a team of this project: its own, installed and built-in ones.
    #[must_use]
    pub fn agents(&self, workflow: &ValidatedWorkflow, settings: &Settings) -> Agents {
        let mut agents = agents(self.host(), Some(workflow), settings);
        for (name, command) in self.team_agents(&workflow.agents) {
            agents = agents.with(name, command);
        }
        agents
    }

    /// The agents that the assembled team declares.
    pub(crate) fn team_agents<'a>(
        &'a self,
        declared: &'a BTreeMap<String, Agent>,
    ) -> impl Iterator<Item = (String, AgentCommand)> + 'a {
        declared.iter().map(|(name, agent)| {
            let program = self.dir().root().join("team").join(&agent.entry);
            (
                name.clone(),
                AgentCommand::new(program).with_needed_env(&agent.env).with_sandbox(agent.sandbox.clone()),
            )
        })
    }

    /// The agents that can work in the project as it stands: with the assembled team's own, if one is assembled and valid.
    ///
    /// # Errors
    /// The settings cannot be read.
    pub fn known_agents(&self) -> Result<Agents, ProjectError> {
        let settings = self.settings()?;
        let workflow = if self.has_team() { self.workflow().ok() } else { None };
        Ok(match workflow {
            Some(workflow) => self.agents(&workflow, &settings),
            None => self.host().agents(&settings),
        })
    }
}

fn agents(host: &Host, workflow: Option<&ValidatedWorkflow>, settings: &Settings) -> Agents {
    let mut agents = Agents::new();
    // Looking for programs and keys takes time: only for agents that the team may need.
    let needed = |name: &&&str| {
        let is_plain = ModelAgent::find(name).is_none() && !is_connector(name);
        is_plain || workflow.is_none_or(|workflow| may_need(workflow, name))
    };
    let built_in = LazyCell::new(|| built_in(host));
    for name in cliq_agents::NAMES.iter().filter(needed) {
        agents = match cliq_agents::usable(name, settings, &host.environment) {
            Some(Usable::No(why)) => agents.with_unusable(*name, why),
            Some(Usable::Yes(_)) | None => match ModelAgent::find(name) {
                Some(agent) => agents.with(*name, built_in.clone().with_model(agent.default_model(settings))),
                None => agents.with(*name, built_in.clone()),
            },
        };
    }
    agents = agents.with("team", host.cliq(&["agent", "team"]));
    agents = agents.with("hug", host.cliq(&["agent", "review"]));
    for (name, command) in installed(host) {
        agents = agents.with(name, command);
    }
    agents
}

/// Whether a team may need an agent: by its name, or because a phase names none.
fn may_need(workflow: &ValidatedWorkflow, agent: &str) -> bool {
    workflow.phases().any(|(_, phase)| {
        let has_agent = matches!(phase.kind, PhaseKind::Standard | PhaseKind::Gate);
        let own = phase.agent.as_deref();
        has_agent && own.is_none_or(|own| own == agent)
            || own == Some(agent)
            || phase.notify.iter().any(|notify| notify.agent == agent)
    })
}

/// Whether a phase that an agent works in names none.
pub(crate) fn needs_default(workflow: &ValidatedWorkflow) -> bool {
    let has_agent = |kind| matches!(kind, PhaseKind::Standard | PhaseKind::Gate | PhaseKind::Team);
    workflow.phases().any(|(_, phase)| has_agent(phase.kind) && phase.agent.is_none())
}

impl Host {
    /// The `cliq` program with arguments, as an agent.
    pub(crate) fn cliq(&self, args: &[&str]) -> AgentCommand {
        AgentCommand::new(&self.program).with_args(args.iter().copied()).as_part_of_cliq()
    }
}

/// `cliq-agent` beside the `cliq` program; where it is not installed, `cliq agent handle` does the same.
fn built_in(host: &Host) -> AgentCommand {
    let sibling = host.program.with_file_name("cliq-agent");
    if sibling.is_file() {
        AgentCommand::new(sibling).as_part_of_cliq()
    } else {
        host.cliq(&["agent", "handle"])
    }
}

#[derive(Deserialize)]
struct Manifest {
    entry: Utf8PathBuf,
    #[serde(default)]
    env: Vec<String>,
}

/// Agents of `CLIQ_HOME/agents/<name>/manifest.json`. One whose manifest or program is unusable is left out.
fn installed(host: &Host) -> Vec<(String, AgentCommand)> {
    let Some(agents) = host.home.as_ref().map(|home| home.join("agents")) else { return Vec::new() };
    let Ok(entries) = agents.read_dir_utf8() else { return Vec::new() };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let dir = entry.into_path();
            let bytes = read_limited(&dir.join("manifest.json"), MANIFEST_LIMIT).ok()?;
            let manifest: Manifest = serde_json::from_slice(&bytes).ok()?;
            let program = dir.join(&manifest.entry);
            let executable = is_executable(program.as_std_path());
            let command = AgentCommand::new(program).with_needed_env(manifest.env);
            executable.then(|| (dir.file_name().unwrap_or_default().to_owned(), command))
        })
        .collect()
}

impl Host {
    /// The variables that installed agents say they need.
    pub(crate) fn variables_of_installed_agents(&self) -> Vec<String> {
        installed(self).into_iter().flat_map(|(_, command)| command.needs_env).collect()
    }
}

pub(crate) fn installed_names(host: &Host) -> Vec<String> {
    installed(host).into_iter().map(|(name, _)| name).collect()
}
