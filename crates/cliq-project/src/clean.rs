//! Removing the files of runs.

use std::fs;
use std::io;

use cliq_fs::{IoContext, ProjectLock, archive_run};
use cliq_orchestrator::TmuxServer;

use crate::{Project, ProjectError};

impl Project {
    /// Removes all files of runs. Team, roles, requirement and settings stay.
    ///
    /// # Errors
    /// A run is under way, or a file cannot be removed.
    pub fn clean(&self) -> Result<(), ProjectError> {
        let dir = self.dir();
        let _lock = ProjectLock::acquire(dir)?;
        if TmuxServer::installed().is_some() {
            TmuxServer::of(dir).discard()?;
        }
        archive_run(dir, "cleaned")?;
        let history = dir.history();
        match fs::remove_dir_all(&history) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(error).at("remove", &history).map_err(Into::into)
            }
            _ => Ok(()),
        }
    }
}
