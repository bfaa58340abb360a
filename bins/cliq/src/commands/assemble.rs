//! `cliq assemble`

use std::process::ExitCode;

use cliq_project::{AssembledTeam, Project};

use crate::failure::Failure;
use crate::{project, render, ui};

pub(super) fn run(reference: &str) -> Result<ExitCode, Failure> {
    let project = project::open()?;
    let assembled = assemble(&project, reference)?;
    ui::line(format!("assembled {} into {}", assembled.workflow.name, project.dir().root()))?;
    ui::raw_styled(&assembled.workflow.to_text())?;
    render::sandbox::show(&assembled.workflow, project.dir().workspace())?;
    ui::line("next: `cliq req -m TEXT` says what it is to do, `cliq run` runs it")?;
    Ok(ExitCode::SUCCESS)
}

/// Assembles a team and shows the warnings about it.
pub(super) fn assemble(project: &Project, reference: &str) -> Result<AssembledTeam, Failure> {
    let assembled = project.assemble(reference)?;
    let folder = &assembled.found.folder;
    render::diagnostics::show(folder.text(), folder.file(), &assembled.warnings);
    Ok(assembled)
}
