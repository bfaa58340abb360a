//! The requirement of a project: the task of its team.

use cliq_fs::{ProjectLock, archive_run, write_atomic};
use cliq_orchestrator::Journal;

use crate::{Project, ProjectError};

impl Project {
    /// Sets the requirement. It is a new task: the last run moves to `.cliq/history/`.
    ///
    /// # Errors
    /// The text is empty, a run is under way, or a file cannot be written.
    pub fn set_requirement(&self, text: &str) -> Result<(), ProjectError> {
        if text.trim().is_empty() {
            return Err(ProjectError::EmptyRequirement);
        }
        let dir = self.dir();
        let _lock = ProjectLock::acquire(dir)?;
        dir.ensure_layout()?;
        if dir.journal().exists() {
            let journal = Journal::read(&dir.journal()).ok().flatten();
            archive_run(dir, journal.as_ref().and_then(Journal::run_id).unwrap_or("unreadable"))?;
        }
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        Ok(write_atomic(&dir.requirement(), format!("{text}{newline}").as_bytes())?)
    }
}
