//! `cliq clean`

use std::fs;
use std::io;
use std::process::ExitCode;

use cliq_fs::{IoContext, ProjectLock, archive_run};
use cliq_orchestrator::TmuxServer;

use crate::failure::Failure;
use crate::{project, ui};

pub(super) fn run() -> Result<ExitCode, Failure> {
    let dir = project::open()?;
    let _lock = ProjectLock::acquire(&dir)?;
    if TmuxServer::installed().is_some() {
        TmuxServer::of(&dir).discard()?;
    }
    archive_run(&dir, "cleaned")?;
    let history = dir.history();
    match fs::remove_dir_all(&history) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error).at("remove", &history)?,
        _ => {}
    }
    ui::line("removed everything that runs left; team, roles, requirement and settings are as they were")?;
    Ok(ExitCode::SUCCESS)
}
