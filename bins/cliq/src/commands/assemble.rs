//! `cliq assemble`: a team, checked and copied into the project.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::process::ExitCode;

use camino::{Utf8Component, Utf8Path};
use cliq_fs::{CliqDir, IoContext, ProjectLock, write_atomic};
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
    // A run that is under way reads these files.
    let _lock = ProjectLock::acquire(dir)?;
    dir.ensure_layout()?;
    copy(&found.folder, &workflow, dir)?;
    Ok(workflow)
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
