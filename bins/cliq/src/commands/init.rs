//! `cliq init`

use std::process::ExitCode;

use cliq_fs::CliqDir;
use cliq_project::Project;

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let here = project::here()?;
    let existed = here.join(CliqDir::NAME).exists();
    let project = Project::init(&here, project::host())?;
    let workspace = project.dir().workspace();
    ui::line(if existed {
        format!("{workspace} is a cliq project already; what was missing in .cliq/ is there now")
    } else {
        format!("{workspace} is a cliq project now")
    })?;
    if !project.has_team() {
        ui::line("next: `cliq assemble TEAM` chooses a team; `cliq team list` shows those there are")?;
    }
    Ok(ExitCode::SUCCESS)
}
