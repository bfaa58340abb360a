//! The files of a team beside team.yml. The only module that touches the disk.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, read_within};
use serde_json::Value;

use crate::{TeamCheck, check};

/// Files beside team.yml, as far as the rules need them.
pub trait TeamFiles {
    /// Whether `roles/<name>.md` is there.
    fn has_role(&self, name: &str) -> bool;
    /// Every `roles/*.md`, without directory and ending.
    fn role_names(&self) -> Vec<String>;
    /// The texts of all roles, in the order of their names: an input that a role mentions is used.
    fn role_texts(&self) -> Vec<String>;
    /// Name of each directory in `skills/`, with the text of its `SKILL.md`, in the order of the names.
    fn skills(&self) -> Vec<(String, String)> {
        Vec::new()
    }
    /// Returns the kind of the file at `path` within the team folder.
    fn entry(&self, path: &Utf8Path) -> EntryFile;
    /// Whether the team is being written: an input that nothing refers to yet is a warning then.
    fn is_draft(&self) -> bool {
        false
    }
    /// Agents that are installed outside the team.
    fn installed_agents(&self) -> Vec<String>;
    /// Returns the reason why an installed agent of this name cannot be used, or `None` if it can or there is none.
    fn broken_agent(&self, _name: &str) -> Option<String> {
        None
    }
    /// Returns the reason why a value is not a valid JSON Schema, or `None` if it is one or nothing here can tell.
    fn schema_problem(&self, _schema: &Value) -> Option<String> {
        None
    }
}

/// Kind of the file at the path of an agent's executable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryFile {
    /// A file that can be executed.
    Executable,
    /// A file that cannot.
    NotExecutable,
    /// Nothing, or a directory.
    Missing,
    /// The entry, or this file beside it, is a link that leads out of the team folder.
    LinkLeavesTeam(Utf8PathBuf),
    /// Unknown, as there is no folder.
    Unknown,
}

/// No files at all are known: every role counts as there. For texts that come from nowhere, such as an editor.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl TeamFiles for NoFiles {
    fn has_role(&self, _: &str) -> bool {
        true
    }
    fn role_names(&self) -> Vec<String> {
        Vec::new()
    }
    fn role_texts(&self) -> Vec<String> {
        Vec::new()
    }
    fn entry(&self, _: &Utf8Path) -> EntryFile {
        EntryFile::Unknown
    }
    fn installed_agents(&self) -> Vec<String> {
        Vec::new()
    }
}

/// The most bytes of team.yml or of a role.
const FILE_LIMIT: u64 = 16 << 20;

/// A team on disk: a folder with `team.yml` and `roles/`.
#[derive(Debug, Clone)]
pub struct TeamFolder {
    dir: Utf8PathBuf,
    /// The folder with its links resolved: no file of the team may be elsewhere.
    root: Utf8PathBuf,
    file: Utf8PathBuf,
    text: String,
    roles: Vec<(String, String)>,
    skills: Vec<(String, String)>,
    installed: Vec<String>,
    broken: BTreeMap<String, String>,
    schema_check: Option<SchemaCheck>,
    /// Whether the team is being written.
    draft: bool,
}

/// Check of a JSON Schema: the reason why it is not valid.
pub type SchemaCheck = fn(&Value) -> Option<String>;

/// A team that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no team there.
    #[error("there is no team.yml in {0}")]
    NoTeam(Utf8PathBuf),
    /// A file cannot be read.
    #[error(transparent)]
    Read(FsError),
    /// A file is a link that leads out of the team folder (docs/team-yml.md).
    #[error("{path} links to a file outside of the team: put the file itself there")]
    LinkLeavesTeam {
        /// The link.
        path: Utf8PathBuf,
    },
    /// The file is not UTF-8.
    #[error("{path} is not UTF-8: byte {at} (line {line}) is not part of a character")]
    NotUtf8 {
        /// The file.
        path: Utf8PathBuf,
        /// The first bad byte, from 0.
        at: usize,
        /// Line, 1-based.
        line: usize,
    },
}

impl TeamFolder {
    /// Reads the team at `path`: a folder, or its `team.yml`.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn load(path: &Utf8Path) -> Result<Self, LoadError> {
        let file = if path.is_dir() { path.join("team.yml") } else { path.to_owned() };
        let dir = match file.parent() {
            Some(dir) if !dir.as_str().is_empty() => dir.to_owned(),
            _ => ".".into(),
        };
        let root = dir.canonicalize_utf8().map_err(|_| LoadError::NoTeam(path.to_owned()))?;
        let bytes = read(&file, &root).map_err(|error| match error {
            LoadError::Read(error) if error.is_not_found() => LoadError::NoTeam(path.to_owned()),
            other => other,
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
            LoadError::NotUtf8 { path: file.clone(), at, line }
        })?;
        let roles = read_roles(&dir.join("roles"), &root)?;
        let skills = read_skills(&dir.join("skills"), &root)?;
        check_instructions(&dir.join("channels"), &root)?;
        Ok(Self {
            dir,
            root,
            file,
            text,
            roles,
            skills,
            installed: Vec::new(),
            broken: BTreeMap::new(),
            schema_check: None,
            draft: false,
        })
    }

    /// The same, with agents that are installed outside the team.
    #[must_use]
    pub fn with_installed_agents(mut self, names: Vec<String>) -> Self {
        self.installed = names;
        self
    }

    /// The same, with installed agents that cannot be used, each with the reason.
    #[must_use]
    pub fn with_broken_agents(mut self, agents: impl IntoIterator<Item = (String, String)>) -> Self {
        self.broken = agents.into_iter().collect();
        self
    }

    /// The same as a draft: an input that nothing refers to is a warning.
    #[must_use]
    pub fn as_draft(mut self) -> Self {
        self.draft = true;
        self
    }

    /// The same, with a check of the JSON Schemas in it. Without one they are checked when they are used.
    #[must_use]
    pub fn with_schema_check(mut self, check: SchemaCheck) -> Self {
        self.schema_check = Some(check);
        self
    }

    /// The folder.
    #[must_use]
    pub fn dir(&self) -> &Utf8Path {
        &self.dir
    }

    /// The path of its team.yml.
    #[must_use]
    pub fn file(&self) -> &Utf8Path {
        &self.file
    }

    /// The text of its team.yml.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text of a role.
    #[must_use]
    pub fn role(&self, name: &str) -> Option<&str> {
        self.roles.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str())
    }

    /// Checks it.
    #[must_use]
    pub fn check(&self) -> TeamCheck {
        check(&self.text, self)
    }
}

/// Reads a file of a team.
fn read(path: &Utf8Path, root: &Utf8Path) -> Result<Vec<u8>, LoadError> {
    read_within(path, root, FILE_LIMIT).map_err(|error| {
        if error.leaves_root() {
            LoadError::LinkLeavesTeam { path: path.to_owned() }
        } else {
            LoadError::Read(error)
        }
    })
}

/// The entries of a directory of a team, in order; none where it is not there.
fn entries(dir: &Utf8Path) -> Result<Vec<Utf8PathBuf>, LoadError> {
    let failed = |source| LoadError::Read(FsError { action: "read", path: dir.to_owned(), source });
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let paths: io::Result<Vec<Utf8PathBuf>> = entries.map(|entry| Ok(entry?.into_path())).collect();
    let mut paths = paths.map_err(failed)?;
    paths.sort();
    Ok(paths)
}

fn read_roles(dir: &Utf8Path, root: &Utf8Path) -> Result<Vec<(String, String)>, LoadError> {
    let mut roles = Vec::new();
    for path in entries(dir)? {
        if path.extension() == Some("md") && !path.is_dir() {
            let bytes = read(&path, root)?;
            let name = path.file_stem().unwrap_or_default().to_owned();
            roles.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(roles)
}

/// Reads each `SKILL.md` in a directory of skills. Links in skills lead to files of the team.
fn read_skills(dir: &Utf8Path, root: &Utf8Path) -> Result<Vec<(String, String)>, LoadError> {
    if let Some(path) = link_that_leaves(dir, root) {
        return Err(LoadError::LinkLeavesTeam { path });
    }
    let mut skills = Vec::new();
    for path in entries(dir)? {
        let file = path.join("SKILL.md");
        if file.is_file() {
            let bytes = read(&file, root)?;
            let name = path.file_name().unwrap_or_default().to_owned();
            skills.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    Ok(skills)
}

/// Instructions of channels are read when a phase starts. A link among them is found now.
fn check_instructions(channels: &Utf8Path, root: &Utf8Path) -> Result<(), LoadError> {
    for path in entries(channels)?.into_iter().map(|channel| channel.join("instructions.md")) {
        if fs::symlink_metadata(&path).is_ok() && !belongs(&path, root) {
            return Err(LoadError::LinkLeavesTeam { path });
        }
    }
    Ok(())
}

/// Whether a path leads to a file below `root`, after all links.
fn belongs(path: &Utf8Path, root: &Utf8Path) -> bool {
    path.canonicalize_utf8().is_ok_and(|target| target.starts_with(root) && target.is_file())
}

/// The first link at or below a path that does not lead to a file of the team. Directories of version control are not looked
/// into.
#[must_use]
pub fn link_that_leaves(path: &Utf8Path, root: &Utf8Path) -> Option<Utf8PathBuf> {
    let meta = fs::symlink_metadata(path).ok()?;
    if meta.is_symlink() {
        return (!belongs(path, root)).then(|| path.to_owned());
    }
    if !meta.is_dir() || path.file_name() == Some(".git") {
        return None;
    }
    entries(path).ok()?.iter().find_map(|path| link_that_leaves(path, root))
}

impl TeamFiles for TeamFolder {
    fn is_draft(&self) -> bool {
        self.draft
    }
    fn has_role(&self, name: &str) -> bool {
        self.role(name).is_some()
    }
    fn role_names(&self) -> Vec<String> {
        self.roles.iter().map(|(name, _)| name.clone()).collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.roles.iter().map(|(_, text)| text.clone()).collect()
    }
    fn skills(&self) -> Vec<(String, String)> {
        self.skills.clone()
    }
    fn entry(&self, path: &Utf8Path) -> EntryFile {
        // An agent may need the files beside its entry, so the whole top folder belongs to it.
        let top = path.components().find(|part| matches!(part, Utf8Component::Normal(_)));
        let top = top.map_or_else(|| path.to_owned(), |top| Utf8PathBuf::from(top.as_str()));
        if let Some(link) = link_that_leaves(&self.dir.join(&top), &self.root) {
            return EntryFile::LinkLeavesTeam(link);
        }
        match fs::metadata(self.dir.join(path)) {
            Ok(meta) if !meta.is_file() => EntryFile::Missing,
            Ok(meta) if meta.permissions().mode() & 0o111 != 0 => EntryFile::Executable,
            Ok(_) => EntryFile::NotExecutable,
            Err(_) => EntryFile::Missing,
        }
    }
    fn installed_agents(&self) -> Vec<String> {
        self.installed.clone()
    }
    fn broken_agent(&self, name: &str) -> Option<String> {
        self.broken.get(name).cloned()
    }
    fn schema_problem(&self, schema: &Value) -> Option<String> {
        self.schema_check?(schema)
    }
}
