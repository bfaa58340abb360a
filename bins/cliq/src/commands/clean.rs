//! `cliq clean`

use std::process::ExitCode;

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    project::open()?.clean()?;
    ui::line("removed everything that runs left; team, roles, requirement and settings are as they were")?;
    Ok(ExitCode::SUCCESS)
}
