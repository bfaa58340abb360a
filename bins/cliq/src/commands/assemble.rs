//! `cliq assemble`: a team, checked and copied into the project.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process::ExitCode;

use camino::{Utf8Component, Utf8Path};
use cliq_fs::{CliqDir, IoContext, ProjectLock, write_atomic};
use cliq_protocol::PhaseName;
use cliq_workflow::{TeamFolder, ValidatedWorkflow};
use serde_json::{Map, json};

use crate::failure::{Failure, Kind};
use crate::{project, render, teams, ui};

pub(super) fn run(reference: &str) -> Result<ExitCode, Failure> {
    let dir = project::open()?;
    let workflow = into(&dir, reference)?;
    ui::line(format!("assembled {} into {}", workflow.name, dir.root()))?;
    ui::raw_styled(&workflow.to_text())?;
    ui::line("next: `cliq req -m TEXT` says what it is to do, `cliq run` runs it")?;
    Ok(ExitCode::SUCCESS)
}

/// Puts a team into a project. Nothing changes where the team has an error.
pub(super) fn into(dir: &CliqDir, reference: &str) -> Result<ValidatedWorkflow, Failure> {
    let found = teams::load(reference)?;
    let checked = found.folder.check();
    render::diagnostics::show(found.folder.text(), found.folder.file(), &checked.diagnostics);
    let Some(workflow) = checked.workflow else {
        ui::error(&format!(
            "{} cannot run: {}",
            found.folder.file(),
            render::diagnostics::count(&checked.diagnostics)
        ));
        return Err(Failure::told(Kind::Usage));
    };
    let teams = sub_teams(&found.folder, &workflow, &mut vec![workflow.name.clone()])?;
    // A run that is under way reads these files.
    let _lock = ProjectLock::acquire(dir)?;
    put(&found.folder, &workflow, &teams, dir)?;
    Ok(workflow)
}

/// The team of a team phase, with those of its own team phases.
struct SubTeam {
    phase: PhaseName,
    found: teams::Found,
    workflow: ValidatedWorkflow,
    teams: Vec<SubTeam>,
}

/// Finds the teams of team phases, and those within them. `chain` has the names of the teams around.
fn sub_teams(
    folder: &TeamFolder,
    workflow: &ValidatedWorkflow,
    chain: &mut Vec<String>,
) -> Result<Vec<SubTeam>, Failure> {
    let mut found = Vec::new();
    for (_, phase) in workflow.phases() {
        let Some(reference) = &phase.team else { continue };
        let about =
            |failure: Failure| failure.about(&format!("team phase `{}` of {}", phase.name, workflow.name));
        let team = teams::load_from(folder.dir(), reference).map_err(about)?;
        let checked = team.folder.check();
        let Some(inner) = checked.workflow else {
            render::diagnostics::show(team.folder.text(), team.folder.file(), &checked.diagnostics);
            let count = render::diagnostics::count(&checked.diagnostics);
            return Err(about(Failure::usage(format!("{reference} cannot run: {count}"))));
        };
        if chain.contains(&inner.name) {
            let circle = chain.join(" runs ");
            return Err(about(Failure::usage(format!(
                "{circle} runs {}: a team cannot run within itself",
                inner.name
            )))
            .hint("take one of them out of the circle"));
        }
        chain.push(inner.name.clone());
        let teams = sub_teams(&team.folder, &inner, chain)?;
        chain.pop();
        found.push(SubTeam { phase: phase.name.clone(), found: team, workflow: inner, teams });
    }
    Ok(found)
}

fn put(
    team: &TeamFolder,
    workflow: &ValidatedWorkflow,
    teams: &[SubTeam],
    dir: &CliqDir,
) -> Result<(), Failure> {
    fs::create_dir_all(dir.root()).at("create", dir.root())?;
    dir.ensure_layout()?;
    let below = dir.root().join("teams");
    match fs::remove_dir_all(&below) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).at("remove", &below)?,
        _ => {}
    }
    for sub in teams {
        put(&sub.found.folder, &sub.workflow, &sub.teams, &dir.team_of(&sub.phase))?;
    }
    copy(team, workflow, dir)
}

fn copy(team: &TeamFolder, workflow: &ValidatedWorkflow, dir: &CliqDir) -> Result<(), Failure> {
    let root = dir.root();
    for old in [dir.roles(), root.join("team")] {
        match fs::remove_dir_all(&old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).at("remove", &old)?,
            _ => {}
        }
    }
    copy_tree(&team.dir().join("roles"), &dir.roles())?;
    fs::create_dir_all(dir.roles()).at("create", &dir.roles())?;
    // Whatever lies beside an agent's entry may be needed by it: the whole top folder comes along.
    let tops: BTreeSet<&str> = workflow
        .agents
        .values()
        .filter_map(|agent| {
            agent
                .entry
                .components()
                .find_map(|c| if let Utf8Component::Normal(name) = c { Some(name) } else { None })
        })
        .collect();
    for top in tops {
        copy_tree(&team.dir().join(top), &root.join("team").join(top))?;
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
    // Last: once team.yml is there, the team is.
    Ok(write_atomic(&dir.team_file(), team.text().as_bytes())?)
}

fn copy_instructions(team: &TeamFolder, dir: &CliqDir) -> Result<(), Failure> {
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

/// Copies a file or a directory with all below it; permissions stay, links become what they point to. A source that is
/// not there is nothing.
pub(super) fn copy_tree(from: &Utf8Path, to: &Utf8Path) -> Result<(), Failure> {
    let Ok(meta) = fs::metadata(from) else { return Ok(()) };
    if meta.is_file() {
        let parent = to.parent().unwrap_or(to);
        fs::create_dir_all(parent).at("create", parent)?;
        fs::copy(from, to).at("copy", from)?;
        return Ok(());
    }
    fs::create_dir_all(to).at("create", to)?;
    for entry in from.read_dir_utf8().at("read", from)? {
        let entry = entry.at("read", from)?;
        if entry.file_name() != ".git" {
            copy_tree(entry.path(), &to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
