//! Assembling a team: checking it, and copying it into the project with the teams of its team phases.

use std::collections::BTreeSet;
use std::fs;

use camino::{Utf8Component, Utf8Path};
use cliq_fs::{CliqDir, IoContext, ProjectLock, write_atomic};
use cliq_protocol::PhaseName;
use cliq_workflow::{Diagnostic, TeamFolder, ValidatedWorkflow};
use serde_json::{Map, json};

use crate::team_files::{copy_tree, remove_tree};
use crate::teams::FoundTeam;
use crate::{Host, Project, ProjectError};

/// A team that was assembled.
#[derive(Debug)]
#[non_exhaustive]
pub struct AssembledTeam {
    /// The team.
    pub workflow: ValidatedWorkflow,
    /// Team as found.
    pub found: FoundTeam,
    /// Warnings about its team.yml.
    pub warnings: Vec<Diagnostic>,
}

impl Project {
    /// Puts a team into the project, with the teams of its team phases. `reference` is `@scope/name` or a path.
    ///
    /// # Errors
    /// The team does not exist, it or a team of a team phase has errors, a file of a team is a link that leaves its folder, a
    /// run is under way, or a file cannot be written. Unless the latter, nothing has changed.
    pub fn assemble(&self, reference: &str) -> Result<AssembledTeam, ProjectError> {
        let found = self.host().find_team(reference)?;
        let checked = found.folder.check();
        let Some(workflow) = checked.workflow else {
            let team = found.invalid(checked.diagnostics);
            return Err(ProjectError::TeamInvalid { subject: team.file.to_string(), team });
        };
        let chain = &mut vec![workflow.name.to_string()];
        let teams = teams_of_phases(self.host(), &found.folder, &workflow, chain)?;
        // A run that is under way reads these files.
        let _lock = ProjectLock::acquire(self.dir())?;
        put(&found.folder, &workflow, &teams, self.dir())?;
        Ok(AssembledTeam { workflow, found, warnings: checked.diagnostics })
    }
}

/// The team of a team phase, with the teams of its own team phases.
struct PhaseTeam {
    phase: PhaseName,
    found: FoundTeam,
    workflow: ValidatedWorkflow,
    teams: Vec<PhaseTeam>,
}

/// Finds the teams of team phases at every depth. `chain` names the teams around, from the outermost.
fn teams_of_phases(
    host: &Host,
    folder: &TeamFolder,
    workflow: &ValidatedWorkflow,
    chain: &mut Vec<String>,
) -> Result<Vec<PhaseTeam>, ProjectError> {
    let mut teams = Vec::new();
    for (_, phase) in workflow.phases() {
        let Some(reference) = &phase.team else { continue };
        let about = |error: ProjectError| error.of_team_phase(&phase.name, Some(workflow.name.as_str()));
        let found = host.find_team_from(folder.dir(), reference).map_err(about)?;
        let checked = found.folder.check();
        let Some(inner) = checked.workflow else {
            let team = found.invalid(checked.diagnostics);
            return Err(about(ProjectError::TeamInvalid { subject: reference.clone(), team }));
        };
        if chain.iter().any(|name| inner.name == name.as_str()) {
            return Err(about(ProjectError::TeamCycle {
                chain: chain.clone(),
                team: inner.name.to_string(),
            }));
        }
        chain.push(inner.name.to_string());
        let inner_teams = teams_of_phases(host, &found.folder, &inner, chain)?;
        chain.pop();
        teams.push(PhaseTeam { phase: phase.name.clone(), found, workflow: inner, teams: inner_teams });
    }
    Ok(teams)
}

fn put(
    team: &TeamFolder,
    workflow: &ValidatedWorkflow,
    teams: &[PhaseTeam],
    dir: &CliqDir,
) -> Result<(), ProjectError> {
    fs::create_dir_all(dir.root()).at("create", dir.root())?;
    dir.ensure_layout()?;
    remove_tree(&dir.root().join("teams"))?;
    for inner in teams {
        put(&inner.found.folder, &inner.workflow, &inner.teams, &dir.team_of(&inner.phase))?;
    }
    copy(team, workflow, dir)
}

fn copy(team: &TeamFolder, workflow: &ValidatedWorkflow, dir: &CliqDir) -> Result<(), ProjectError> {
    let root = dir.root();
    for old in [dir.roles(), root.join("team")] {
        remove_tree(&old)?;
    }
    copy_tree(&team.dir().join("roles"), &dir.roles())?;
    fs::create_dir_all(dir.roles()).at("create", &dir.roles())?;
    // An agent or an MCP server may need the files beside its program: the whole top folder is copied.
    let entries = workflow.agents.values().map(|agent| agent.entry.as_path());
    let programs = workflow.mcp.values().filter_map(|server| server.program_of_team());
    let top = |path: &'_ Utf8Path| {
        let mut names = path.components().filter_map(|part| match part {
            Utf8Component::Normal(name) => Some(name.to_owned()),
            _ => None,
        });
        names.next()
    };
    let mut tops: BTreeSet<String> = entries.chain(programs).filter_map(top).collect();
    if team.dir().join("skills").is_dir() {
        tops.insert("skills".to_owned());
    }
    for top in tops {
        copy_tree(&team.dir().join(&top), &root.join("team").join(&top))?;
    }
    copy_instructions(team, dir)?;
    let agents: Map<String, serde_json::Value> = workflow
        .agents
        .iter()
        .map(|(name, agent)| {
            (name.clone(), json!({"entry": format!("team/{}", agent.entry), "env": agent.env}))
        })
        .collect();
    write_atomic(&dir.agents_file(), format!("{:#}\n", serde_json::Value::Object(agents)).as_bytes())?;
    // Last: once team.yml is there, the team is complete.
    Ok(write_atomic(&dir.team_file(), team.text().as_bytes())?)
}

/// Copies `channels/*/instructions.md`.
fn copy_instructions(team: &TeamFolder, dir: &CliqDir) -> Result<(), ProjectError> {
    let channels = team.dir().join("channels");
    let Ok(entries) = channels.read_dir_utf8() else { return Ok(()) };
    for entry in entries.filter_map(Result::ok) {
        let from = entry.path().join("instructions.md");
        if from.is_file() && entry.file_name().contains("--") {
            let channel = dir.channels().join(entry.file_name());
            fs::create_dir_all(&channel).at("create", &channel)?;
            fs::copy(&from, channel.join("instructions.md")).at("copy", &from)?;
        }
    }
    Ok(())
}
