//! The requirement of a project: the task of its team.

use cliq_fs::{ProjectLock, archive_run, write_atomic};
use cliq_orchestrator::Journal;
use cliq_protocol::RunId;

use crate::{Project, ProjectError};

/// Maximum length of a title in characters.
const MAX_TITLE: usize = 120;
/// Maximum size of the part of a requirement that is read for its title, in bytes.
const TITLE_READ: u64 = 4096;

/// Returns the title of a run by a text: its first line that is not empty, without marks of a heading, and at most 120 characters of it.
#[must_use]
pub fn title_of(text: &str) -> Option<String> {
    let line =
        text.lines().map(|line| line.trim().trim_start_matches('#').trim()).find(|line| !line.is_empty())?;
    let line: String = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(if line.chars().count() > MAX_TITLE {
        let cut: String = line.chars().take(MAX_TITLE - 1).collect();
        format!("{}…", cut.trim_end())
    } else {
        line
    })
}

impl Project {
    /// Returns the title of a run by the requirement; `None` if there is none.
    #[must_use]
    pub(crate) fn title(&self) -> Option<String> {
        use std::io::Read;
        let file = std::fs::File::open(self.dir().requirement()).ok()?;
        let mut start = Vec::new();
        file.take(TITLE_READ).read_to_end(&mut start).ok()?;
        title_of(&String::from_utf8_lossy(&start))
    }

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
            archive_run(dir, journal.as_ref().and_then(Journal::run_id).map_or("unreadable", RunId::as_str))?;
        }
        let newline = if text.ends_with('\n') { "" } else { "\n" };
        Ok(write_atomic(&dir.requirement(), format!("{text}{newline}").as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_are_first_lines() {
        assert_eq!(title_of("\n# Fix the login \n\nmore").as_deref(), Some("Fix the login"));
        assert_eq!(title_of(" \n#\n"), None);
        let long = title_of(&"ä".repeat(500)).expect("a title");
        assert_eq!(long.chars().count(), 120);
        assert!(long.ends_with('…'));
        assert_eq!(title_of("a\u{1b}[31mb").as_deref(), Some("a [31mb"));
    }
}
