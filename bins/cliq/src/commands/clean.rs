//! `cliq clean`

use std::process::ExitCode;

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let project = project::open()?;
    project.clean()?;
    if let Some(home) = &project.host().home {
        crate::reviews::cancel_left_over(home, project.dir().workspace())?;
    }
    ui::line("removed everything that runs left; team, roles, requirement and settings are as they were")?;
    Ok(ExitCode::SUCCESS)
}
