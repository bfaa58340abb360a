//! Removing the files of runs.

use std::fs;
use std::io;

use cliq_fs::{IoContext, ProjectLock, archive_run};
use cliq_orchestrator::{Journal, TmuxServer};
use cliq_protocol::RunId;

use crate::{Project, ProjectError};

impl Project {
    /// Removes all files of runs. Team, roles, requirement and settings stay, and the records of reviews.
    ///
    /// # Errors
    /// A run is under way, or a file cannot be removed.
    pub fn clean(&self) -> Result<(), ProjectError> {
        let dir = self.dir();
        let _lock = ProjectLock::acquire(dir)?;
        if TmuxServer::installed().is_some() {
            TmuxServer::of(dir).discard()?;
        }
        // Records of reviews stay, by run.
        let journal = Journal::read(&dir.journal()).ok().flatten();
        let run_id = journal.as_ref().and_then(Journal::run_id).map_or("cleaned", RunId::as_str);
        archive_run(dir, run_id)?;
        // Messages to runs that have not started are not archived.
        for left in [dir.history(), dir.root().join("steering")] {
            match fs::remove_dir_all(&left) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error).at("remove", &left)?,
                _ => {}
            }
        }
        Ok(())
    }
}
