//! Available agents: the team's own, installed ones, built-in ones (docs/team-yml.md).

use std::cell::LazyCell;
use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_agents::{ModelAgent, Usable};
use cliq_fs::read_limited;
use cliq_orchestrator::{AgentCommand, Agents};
use cliq_protocol::PhaseKind;
use cliq_settings::{RunSettings, Settings, is_executable};
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

    /// The agent for phases that name none: what is set, else the first model agent that can work (docs/models.md).
    #[must_use]
    pub fn default_agent(&self, settings: &Settings) -> Option<String> {
        let usable = |agent: &ModelAgent| matches!(agent.usable(settings, &self.environment), Usable::Yes(_));
        let first = || ModelAgent::all(settings).into_iter().find(usable).map(|agent| agent.name);
        RunSettings::read(settings).default_agent.or_else(first)
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
    let needed = |name: &str| {
        let is_plain = ModelAgent::find(name, settings).is_none() && !is_connector(name);
        is_plain || workflow.is_none_or(|workflow| may_need(workflow, name))
    };
    let built_in = LazyCell::new(|| built_in(host));
    let named = ModelAgent::names(settings);
    let names = cliq_agents::NAMES.iter().copied().chain(named.iter().map(String::as_str));
    for name in names.filter(|name| needed(name)) {
        agents = match cliq_agents::usable(name, settings, &host.environment) {
            Some(Usable::No(why)) => agents.with_unusable(name, why),
            Some(Usable::Yes(_)) | None => match ModelAgent::find(name, settings) {
                Some(agent) => agents.with(name, built_in.clone().with_model(agent.default_model(settings))),
                None => agents.with(name, built_in.clone()),
            },
        };
    }
    agents = agents.with("team", host.cliq(&["agent", "team"]));
    agents = agents.with("hug", host.cliq(&["agent", "review"]));
    for (name, installed) in installed(host) {
        agents = match installed {
            Ok(command) => agents.with(name, command),
            // It shadows a built-in agent of its name all the same: that one is not what was installed.
            Err(why) => agents.without(&name).with_unusable(name, why),
        };
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

/// Agents of `CLIQ_HOME/agents/<name>/manifest.json`, sorted by name, each with the reason if it cannot work.
fn installed(host: &Host) -> Vec<(String, Result<AgentCommand, String>)> {
    let Some(agents) = host.home.as_ref().map(|home| home.join("agents")) else { return Vec::new() };
    let Ok(entries) = agents.read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(Result::ok)
        .map(camino::Utf8DirEntry::into_path)
        .filter(|dir| dir.is_dir() && !dir.file_name().is_some_and(|name| name.starts_with('.')))
        .map(|dir| (dir.file_name().unwrap_or_default().to_owned(), installed_in(&dir)))
        .collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

/// Reads an installed agent. The error names the file and the remedy.
fn installed_in(dir: &Utf8Path) -> Result<AgentCommand, String> {
    let path = dir.join("manifest.json");
    let bytes = read_limited(&path, MANIFEST_LIMIT).map_err(|error| match error.source.kind() {
        std::io::ErrorKind::NotFound => {
            format!(
                "cannot use the installed agent: {path} does not exist; it contains {{\"entry\": PROGRAM}}"
            )
        }
        _ => format!("cannot use the installed agent: cannot read {path}: {}", error.source),
    })?;
    let manifest: Manifest = serde_json::from_slice(&bytes).map_err(|error| {
        format!("cannot use the installed agent: {path} is not a valid manifest: {error}")
    })?;
    let program = dir.join(&manifest.entry);
    if !program.is_file() {
        return Err(format!("cannot use the installed agent: its `entry` {program} is not a file"));
    }
    if !is_executable(program.as_std_path()) {
        return Err(format!(
            "cannot use the installed agent: {program} is not executable; `chmod +x {program}`"
        ));
    }
    Ok(AgentCommand::new(program).with_needed_env(manifest.env))
}

impl Host {
    /// The variables that installed agents say they need.
    pub(crate) fn variables_of_installed_agents(&self) -> Vec<String> {
        let usable = installed(self).into_iter().filter_map(|(_, command)| command.ok());
        usable.flat_map(|command| command.needs_env).collect()
    }

    /// Installed agents that cannot work, each with the reason.
    #[must_use]
    pub fn broken_agents(&self) -> Vec<(String, String)> {
        usable_and_broken(self).1
    }
}

impl Host {
    /// Names of the agents outside of teams that are not built in: installed ones that can work, and those of the settings.
    #[must_use]
    pub fn agents_outside_teams(&self) -> Vec<String> {
        usable_and_broken(self).0
    }
}

/// Names of the installed agents that can work and of the agents of the settings, and installed agents that cannot work, each with the
/// reason.
pub(crate) fn usable_and_broken(host: &Host) -> (Vec<String>, Vec<(String, String)>) {
    // An error in the settings is reported by what reads them.
    let (mut usable, mut broken) = (ModelAgent::names(&host.settings().unwrap_or_default()), Vec::new());
    for (name, command) in installed(host) {
        match command {
            Ok(_) => usable.push(name),
            Err(why) => broken.push((name, why)),
        }
    }
    (usable, broken)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn broken_installed_agents_are_named_with_the_reason() {
        let temp = tempfile::tempdir().unwrap();
        let root = Utf8Path::from_path(temp.path()).unwrap();
        let make = |name: &str, manifest: Option<&str>| {
            let dir = root.join(name);
            fs::create_dir_all(&dir).unwrap();
            if let Some(manifest) = manifest {
                fs::write(dir.join("manifest.json"), manifest).unwrap();
            }
            dir
        };
        for (name, manifest, reason) in [
            ("none", None, "manifest.json does not exist"),
            ("broken", Some("{"), "is not a valid manifest"),
            ("empty", Some("{}"), "missing field `entry`"),
            ("gone", Some("{\"entry\": \"run\"}"), "gone/run is not a file"),
        ] {
            let error = installed_in(&make(name, manifest)).expect_err(name);
            assert!(error.contains(reason), "{name}: {error}");
        }
        let dir = make("plain", Some("{\"entry\": \"run\", \"env\": [\"KEY\"]}"));
        fs::write(dir.join("run"), "#!/bin/sh\n").unwrap();
        let error = installed_in(&dir).expect_err("not executable");
        assert!(error.contains("chmod +x"), "{error}");
        fs::set_permissions(dir.join("run"), fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(installed_in(&dir).unwrap().needs_env, ["KEY"]);
    }
}
