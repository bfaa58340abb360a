//! Drafts of teams: folders below `CLIQ_HOME/drafts` that several people edit (docs/studio.md). A file is saved only over the version that was
//! read.

mod check;
mod path;
mod save;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext, read_limited};
use ring::digest::{SHA256, digest};

use crate::new_team::is_empty_dir;
use crate::{Host, ProjectError, TeamText};
pub use check::{DraftCheck, DraftProblem};
pub use path::{DraftName, DraftPath, PathError};

/// Maximum size of a file, in bytes.
pub(crate) const MAX_FILE: usize = 1 << 20;
/// Maximum number of files of a draft.
pub(crate) const MAX_FILES: usize = 500;
/// Maximum depth of directories.
const MAX_DEPTH: usize = 8;

/// Error of a draft.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DraftError {
    /// There is no cliq home for drafts.
    #[error("there is no cliq home to keep drafts in")]
    NoHome,
    /// There is no draft of this name.
    #[error("there is no draft `{0}`")]
    UnknownDraft(DraftName),
    /// There is a draft of this name.
    #[error("there is a draft `{0}`")]
    Exists(DraftName),
    /// The draft has no such file.
    #[error("the draft has no file {0}")]
    UnknownFile(DraftPath),
    /// The draft has the file already.
    #[error("{0} cannot be a new file: a file or a folder is there, or above it")]
    FileExists(DraftPath),
    /// The file was saved by someone else since it was read.
    #[error("{0} was saved by someone else since it was read")]
    Conflict(DraftPath),
    /// The file was removed since it was read.
    #[error("{0} was removed since it was read")]
    Removed(DraftPath),
    /// The file cannot be removed: without it the folder is no team.
    #[error("a team needs its team.yml")]
    TeamFile,
    /// The file is too large.
    #[error("{path} would have {size} bytes; {MAX_FILE} is the most")]
    TooLarge {
        /// The file.
        path: DraftPath,
        /// Size in bytes.
        size: usize,
    },
    /// The draft has too many files.
    #[error("a draft has at most {MAX_FILES} files")]
    TooMany,
    /// The team cannot be copied, installed or run.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

/// Drafts of a cliq home.
#[derive(Debug, Clone)]
pub struct Drafts {
    host: Host,
    root: Utf8PathBuf,
}

/// Draft in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DraftSummary {
    /// Name of the draft.
    pub name: DraftName,
    /// Name of the team, if team.yml has no errors.
    pub team: Option<String>,
    /// Description of the team.
    pub description: Option<String>,
    /// Number of files.
    pub files: usize,
}

/// File of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DraftFile {
    /// Path below the draft.
    pub path: DraftPath,
    /// Text, or `None` if it is not UTF-8 or too large to be edited.
    pub text: Option<String>,
    /// Version: a digest of the bytes.
    pub version: String,
}

/// Returns the version of a text.
fn version_of(bytes: &[u8]) -> String {
    hex::encode(&digest(&SHA256, bytes).as_ref()[..12])
}

impl Host {
    /// Returns the drafts of the cliq home.
    ///
    /// # Errors
    /// There is no cliq home.
    pub fn drafts(&self) -> Result<Drafts, DraftError> {
        let home = self.home.as_ref().ok_or(DraftError::NoHome)?;
        Ok(Drafts { host: self.clone(), root: home.join("drafts") })
    }
}

impl Drafts {
    /// Returns the folder of a draft.
    #[must_use]
    pub fn folder(&self, name: &DraftName) -> Utf8PathBuf {
        self.root.join(name.as_str())
    }

    fn existing(&self, name: &DraftName) -> Result<Utf8PathBuf, DraftError> {
        let folder = self.folder(name);
        // A link would lead elsewhere.
        let is_folder = folder.symlink_metadata().is_ok_and(|meta| meta.is_dir());
        if is_folder { Ok(folder) } else { Err(DraftError::UnknownDraft(name.clone())) }
    }

    /// Lists the drafts by name.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn list(&self) -> Result<Vec<DraftSummary>, DraftError> {
        let entries = match self.root.read_dir_utf8() {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error).at("read", &self.root).map_err(Into::into),
        };
        let names =
            entries.filter_map(Result::ok).filter_map(|entry| DraftName::parse(entry.file_name()).ok());
        let mut names: Vec<DraftName> = names.filter(|name| self.existing(name).is_ok()).collect();
        names.sort();
        Ok(names.into_iter().map(|name| self.summary(name)).collect())
    }

    fn summary(&self, name: DraftName) -> DraftSummary {
        let folder = self.folder(&name);
        let workflow =
            self.host.load_team(&folder).ok().and_then(|found| found.folder.as_draft().check().workflow);
        DraftSummary {
            team: workflow.as_ref().map(|workflow| workflow.name.to_string()),
            description: workflow.and_then(|workflow| workflow.description),
            files: paths(&folder).len(),
            name,
        }
    }

    /// Creates a draft from the template of new teams.
    ///
    /// # Errors
    /// There is a draft of this name, or a file cannot be written.
    pub fn create(&self, name: &DraftName) -> Result<(), DraftError> {
        let team = format!("@local/{name}");
        self.make(name, |dir| Ok(Host::write_new_team(dir, &team)?))
    }

    /// Creates a draft from a text.
    ///
    /// # Errors
    /// As for [`Self::create`].
    pub fn create_from_text(&self, name: &DraftName, team: &TeamText) -> Result<(), DraftError> {
        self.make(name, |dir| Ok(team.create(dir)?))
    }

    /// Creates a draft from an installed or bundled team.
    ///
    /// # Errors
    /// As for [`Self::create`], or there is no such team, or it has more files than a draft may have.
    pub fn create_from_team(&self, name: &DraftName, reference: &str) -> Result<(), DraftError> {
        let team = cliq_protocol::TeamName::parse(reference)
            .map_err(|_| ProjectError::UnknownTeam { name: reference.to_owned(), nearest: None })?;
        let found = self.host.find_team(team.as_str())?;
        self.make(name, |dir| {
            crate::team_files::check_files(found.folder.dir())?;
            crate::team_files::copy_tree(found.folder.dir(), dir)?;
            let _ = fs::remove_file(dir.join(crate::packages::installed::FILE));
            // A copy is another team: installed, it would hide the one that it was made from.
            let file = dir.join("team.yml");
            let text = found.folder.text();
            let is_name = |line: &&str| line.starts_with("name:");
            if let Some(line) = text.lines().find(is_name) {
                let text = text.replacen(line, &format!("name: \"@local/{name}\""), 1);
                fs::write(&file, text).at("write", &file)?;
            }
            if paths(dir).len() > MAX_FILES { Err(DraftError::TooMany) } else { Ok(()) }
        })
    }

    /// Makes a draft whole or not at all.
    fn make(
        &self,
        name: &DraftName,
        write: impl FnOnce(&Utf8Path) -> Result<(), DraftError>,
    ) -> Result<(), DraftError> {
        fs::create_dir_all(&self.root).at("create", &self.root)?;
        let staging = tempfile::Builder::new().prefix(".new-").tempdir_in(&self.root);
        let staging = staging.at("create a directory in", &self.root)?;
        let dir = Utf8Path::from_path(staging.path())
            .ok_or_else(|| ProjectError::NotUtf8(self.root.to_string()))?
            .join("draft");
        fs::create_dir(&dir).at("create", &dir)?;
        write(&dir)?;
        let target = self.folder(name);
        let is_free = is_empty_dir(&target).at("look at", &target)?;
        if !is_free || target.symlink_metadata().is_ok_and(|meta| !meta.is_dir()) {
            return Err(DraftError::Exists(name.clone()));
        }
        // The draft of another that came in between is not empty: the system refuses.
        match fs::rename(&dir, &target) {
            Err(error) if error.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                Err(DraftError::Exists(name.clone()))
            }
            renamed => Ok(renamed.at("create", &target)?),
        }
    }

    /// Removes a draft with all its files.
    ///
    /// # Errors
    /// There is no such draft, or it cannot be removed.
    pub fn remove(&self, name: &DraftName) -> Result<(), DraftError> {
        let folder = self.existing(name)?;
        Ok(fs::remove_dir_all(&folder).at("remove", &folder)?)
    }

    /// Returns the files of a draft in the order in which people read them: team.yml, then by path.
    ///
    /// # Errors
    /// There is no such draft, or a file cannot be read.
    pub fn files(&self, name: &DraftName) -> Result<Vec<DraftFile>, DraftError> {
        let folder = self.existing(name)?;
        let mut files = Vec::new();
        for path in paths(&folder) {
            files.push(read(&folder, path)?);
        }
        files.sort_by_key(|file| (file.path.as_str() != "team.yml", file.path.clone()));
        Ok(files)
    }

    /// Returns a file of a draft.
    ///
    /// # Errors
    /// There is no such draft or file, or it cannot be read.
    pub fn file(&self, name: &DraftName, path: &DraftPath) -> Result<DraftFile, DraftError> {
        let folder = self.existing(name)?;
        if !is_file(&folder, path) {
            return Err(DraftError::UnknownFile(path.clone()));
        }
        read(&folder, path.clone())
    }

    /// Returns the text of the team, with its skills.
    ///
    /// # Errors
    /// There is no such draft, or it cannot be read.
    pub fn text(&self, name: &DraftName) -> Result<TeamText, DraftError> {
        Ok(TeamText::of(&self.host.load_team(&self.existing(name)?)?.folder))
    }
}

/// Whether a path is a regular file, reached without links.
fn is_file(folder: &Utf8Path, path: &DraftPath) -> bool {
    let mut place = folder.to_owned();
    let mut parts = path.as_str().split('/').peekable();
    while let Some(part) = parts.next() {
        place.push(part);
        let Ok(meta) = place.symlink_metadata() else { return false };
        let fits = if parts.peek().is_some() { meta.is_dir() } else { meta.is_file() };
        if !fits {
            return false;
        }
    }
    true
}

fn read(folder: &Utf8Path, path: DraftPath) -> Result<DraftFile, DraftError> {
    let file = folder.join(path.as_str());
    let size = fs::metadata(&file).at("look at", &file)?.len();
    let bytes = read_limited(&file, u64::MAX)?;
    let version = version_of(&bytes);
    let text = String::from_utf8(bytes).ok().filter(|_| size <= MAX_FILE as u64);
    Ok(DraftFile { path, text, version })
}

/// Paths of the files below a folder. Links and files with other names than a draft may have are left out.
fn paths(folder: &Utf8Path) -> Vec<DraftPath> {
    fn visit(dir: &Utf8Path, below: &str, depth: usize, found: &mut Vec<DraftPath>) {
        let Ok(entries) = dir.read_dir_utf8() else { return };
        for entry in entries.filter_map(Result::ok) {
            if depth >= MAX_DEPTH || found.len() > MAX_FILES {
                return;
            }
            let path = if below.is_empty() {
                entry.file_name().to_owned()
            } else {
                format!("{below}/{}", entry.file_name())
            };
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => visit(entry.path(), &path, depth + 1, found),
                Ok(kind) if kind.is_file() => found.extend(DraftPath::parse(&path)),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    visit(folder, "", 0, &mut found);
    found.sort();
    found
}

/// Texts that are not saved yet, by path. `None` for a file that is removed.
pub type UnsavedTexts = BTreeMap<DraftPath, Option<String>>;
