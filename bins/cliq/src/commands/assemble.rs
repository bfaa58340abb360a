//! `cliq assemble`

use std::process::ExitCode;

use cliq_project::{AssembledTeam, Project};

use super::team::install::fetching;
use crate::failure::Failure;
use crate::{project, render, ui};

pub(super) fn run(reference: Option<&str>, locked: bool) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let before = project.lock().ok().flatten();
    let assembled = match reference {
        Some(reference) if !locked => project.assemble_and_lock(reference, &fetching)?,
        reference => project.assemble_locked(reference, &fetching)?,
    };
    show_warnings(&assembled);
    ui::line(format!("assembled {} into {}", assembled.workflow.name, project.dir().root()))?;
    if let (Some(before), Ok(Some(after))) = (before, project.lock()) {
        for (name, from, to) in before.version_changes(&after) {
            let step = if to < from { "the older version, " } else { "" };
            ui::line(format!("{name}: {step}{from} → {to}"))?;
        }
    }
    ui::raw_styled(&assembled.workflow.to_text())?;
    render::sandbox::show(&assembled.workflow, project.dir().workspace())?;
    ui::line("next: `cliq req -m TEXT` says what it is to do, `cliq run` runs it")?;
    Ok(ExitCode::SUCCESS)
}

/// Assembles a team and shows the warnings about it.
pub(super) fn assemble(project: &Project, reference: &str) -> Result<AssembledTeam, Failure> {
    let assembled = project.assemble(reference)?;
    show_warnings(&assembled);
    Ok(assembled)
}

fn show_warnings(assembled: &AssembledTeam) {
    let folder = &assembled.found.folder;
    render::diagnostics::show(folder.text(), folder.file(), &assembled.warnings);
}
