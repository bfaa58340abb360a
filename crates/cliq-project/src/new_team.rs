//! Creating a new team from the template.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::TeamName;

use crate::bundled::{NEW_TEAM, write_files};
use crate::{Host, ProjectError};

impl Host {
    /// Creates a valid team to start from, in a folder of its name below `parent`. Gives its full name and the folder.
    ///
    /// # Errors
    /// `name` is neither `name` nor `@scope/name`, the folder is not empty, or a file cannot be written.
    pub fn create_team(&self, parent: &Utf8Path, name: &str) -> Result<(String, Utf8PathBuf), ProjectError> {
        let full = if name.starts_with('@') { name.to_owned() } else { format!("@local/{name}") };
        let full = TeamName::parse(&full)
            .map_err(|why| ProjectError::BadTeamName { name: name.to_owned(), why: why.to_string() })?;
        let dir = parent.join(full.name());
        let is_empty =
            is_empty_dir(&dir).map_err(|source| ProjectError::Unusable { path: dir.clone(), source })?;
        if !is_empty {
            return Err(ProjectError::NotEmpty(dir));
        }
        Self::write_new_team(&dir, full.as_str())?;
        Ok((full.to_string(), dir))
    }

    /// Writes the files of a new team of a name.
    pub(crate) fn write_new_team(dir: &Utf8Path, name: &str) -> Result<(), ProjectError> {
        let texts: Vec<(&str, String)> =
            NEW_TEAM.iter().map(|(path, text)| (*path, text.replace("@local/new-team", name))).collect();
        let files: Vec<(&str, &str)> = texts.iter().map(|(path, text)| (*path, text.as_str())).collect();
        Ok(write_files(dir, &files)?)
    }
}

/// Whether a directory is empty or not there.
///
/// # Errors
/// The directory cannot be read.
pub fn is_empty_dir(path: &Utf8Path) -> std::io::Result<bool> {
    match path.read_dir_utf8() {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
    }
}
