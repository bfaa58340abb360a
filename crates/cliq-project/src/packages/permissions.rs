//! Permissions of a team: what it may do on the machine that runs it, shown before it is installed.

use std::collections::BTreeSet;

use cliq_protocol::PhaseKind;
use cliq_workflow::{TeamFiles, ValidatedWorkflow};
use serde::Serialize;

use super::resolve::ResolvedTeam;

/// Permissions of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TeamPermissions {
    /// Name of the team.
    pub team: String,
    /// Version of the team.
    pub version: Option<String>,
    /// Shell commands: phase, name and script.
    pub commands: Vec<PermittedCommand>,
    /// Agents of the machine that its phases name; `default` stands for the default agent.
    pub agents: Vec<String>,
    /// Programs in its folder that run as agents: name and path.
    pub programs: Vec<PermittedProgram>,
    /// Phases that the team itself restricts, with their sandbox.
    pub sandboxes: Vec<PhaseSandbox>,
    /// Phases whose agent or commands the team does not restrict: they can do what the settings allow.
    pub unrestricted: Vec<String>,
    /// MCP servers: name, and the program or address.
    pub mcp_servers: Vec<PermittedServer>,
    /// Skills that its models read.
    pub skills: Vec<String>,
    /// Environment variables that its programs read.
    pub environment: Vec<String>,
    /// Phases that fetch from outside or publish to it, with their agents.
    pub outside: Vec<OutsidePhase>,
    /// Phases that run other teams.
    pub teams: Vec<PhaseTeam>,
}

/// A team phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseTeam {
    /// Phase.
    pub phase: String,
    /// Reference of the team.
    pub team: String,
}

/// A shell command of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PermittedCommand {
    /// Phase.
    pub phase: String,
    /// Name of the command.
    pub name: String,
    /// Script.
    pub run: String,
}

/// A program of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PermittedProgram {
    /// Name of the agent.
    pub agent: String,
    /// Path in the folder of the team.
    pub path: String,
}

/// A phase with a sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PhaseSandbox {
    /// Phase.
    pub phase: String,
    /// The sandbox, as people read it.
    pub sandbox: String,
}

/// An MCP server of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PermittedServer {
    /// Name.
    pub name: String,
    /// Program with arguments, or address.
    pub place: String,
}

/// A phase that fetches or publishes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct OutsidePhase {
    /// Phase.
    pub phase: String,
    /// `pull` or `push`.
    pub direction: &'static str,
    /// Agent, such as `s3`.
    pub agent: String,
}

/// The permissions of a team by its definition. `skills` are the names of the skills in its folder.
pub(crate) fn permissions_of(workflow: &ValidatedWorkflow, skills: &[String]) -> TeamPermissions {
    let mut permissions = TeamPermissions {
        team: workflow.name.to_string(),
        version: workflow.version.as_ref().map(ToString::to_string),
        commands: Vec::new(),
        agents: Vec::new(),
        programs: Vec::new(),
        sandboxes: Vec::new(),
        unrestricted: Vec::new(),
        mcp_servers: Vec::new(),
        skills: skills.to_vec(),
        environment: Vec::new(),
        outside: Vec::new(),
        teams: Vec::new(),
    };
    let (mut agents, mut environment) = (BTreeSet::new(), BTreeSet::new());
    for (name, agent) in &workflow.agents {
        permissions.programs.push(PermittedProgram { agent: name.clone(), path: agent.entry.to_string() });
        environment.extend(agent.env.iter().cloned());
    }
    for (name, server) in &workflow.mcp {
        let program =
            server.command.iter().chain(&server.args).map(String::as_str).collect::<Vec<_>>().join(" ");
        let place = server.url.clone().unwrap_or(program);
        permissions.mcp_servers.push(PermittedServer { name: name.clone(), place });
        environment.extend(server.env.iter().cloned());
    }
    for (_, phase) in workflow.phases() {
        if let Some(team) = &phase.team {
            permissions.teams.push(PhaseTeam { phase: phase.name.to_string(), team: team.clone() });
        }
        permissions.commands.extend(phase.commands.iter().map(|command| PermittedCommand {
            phase: phase.name.to_string(),
            name: command.name.clone(),
            run: command.run.clone(),
        }));
        let own = phase.agent.as_ref().and_then(|agent| workflow.agents.get(agent));
        let direction = match phase.kind {
            PhaseKind::Pull => Some("pull"),
            PhaseKind::Push => Some("push"),
            _ => None,
        };
        if let Some(direction) = direction {
            let agent = phase.agent.clone().unwrap_or_default();
            permissions.outside.push(OutsidePhase { phase: phase.name.to_string(), direction, agent });
            continue;
        }
        let has_agent = matches!(phase.kind, PhaseKind::Standard | PhaseKind::Gate);
        if has_agent && own.is_none() {
            agents.insert(phase.agent.clone().unwrap_or_else(|| "default".to_owned()));
        }
        if phase.sandbox.is_on() {
            let sandbox = phase.sandbox.to_string();
            permissions.sandboxes.push(PhaseSandbox { phase: phase.name.to_string(), sandbox });
        } else if has_agent && own.is_none_or(|agent| !agent.sandbox.is_on()) || !phase.commands.is_empty() {
            permissions.unrestricted.push(phase.name.to_string());
        } else if let Some(agent) = own {
            let sandbox = agent.sandbox.to_string();
            permissions.sandboxes.push(PhaseSandbox { phase: phase.name.to_string(), sandbox });
        }
    }
    permissions.agents = agents.into_iter().collect();
    permissions.environment = environment.into_iter().collect();
    permissions
}

impl TeamPermissions {
    /// The permissions as sentences, for people. Texts of the team may have any characters.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let commands = self.commands.iter().map(|command| {
            let PermittedCommand { phase, name, run } = command;
            format!("runs the command {name} in {phase}: {}", run.trim().replace('\n', "; "))
        });
        lines.extend(commands);
        lines.extend(
            self.programs
                .iter()
                .map(|program| format!("runs its program {} as the agent {}", program.path, program.agent)),
        );
        lines.extend(self.agents.iter().map(|agent| match agent.as_str() {
            "default" => "uses the default agent".to_owned(),
            agent => format!("uses the agent {agent}"),
        }));
        lines.extend(self.outside.iter().map(|outside| match outside.direction {
            "pull" => format!("fetches from outside in {} ({})", outside.phase, outside.agent),
            _ => format!("publishes to outside in {} ({})", outside.phase, outside.agent),
        }));
        lines.extend(
            self.mcp_servers
                .iter()
                .map(|server| format!("uses the MCP server {}: {}", server.name, server.place)),
        );
        lines.extend(self.environment.iter().map(|name| format!("reads the variable {name}")));
        lines.extend(self.skills.iter().map(|skill| format!("has the skill {skill}")));
        lines.extend(
            self.sandboxes.iter().map(|phase| format!("restricts {}: {}", phase.phase, phase.sandbox)),
        );
        lines.extend(
            self.teams.iter().map(|inner| format!("runs the team {} in {}", inner.team, inner.phase)),
        );
        if !self.unrestricted.is_empty() {
            lines.push(format!(
                "restricts neither files nor network in {}: the settings decide",
                self.unrestricted.join(", ")
            ));
        }
        lines
    }
}

impl ResolvedTeam {
    /// Permissions of the team and of those of its team phases.
    pub(crate) fn permissions(&self) -> Vec<TeamPermissions> {
        let of = |team: &Self| {
            let skills = team.found.folder.skills().into_iter().map(|(name, _)| name);
            permissions_of(&team.workflow, &skills.collect::<Vec<_>>())
        };
        self.all().into_iter().map(of).collect()
    }
}
