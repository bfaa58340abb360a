//! The files of a team beside team.yml. The only module that touches the disk.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

use camino::{Utf8Path, Utf8PathBuf};

use crate::{Checked, check};

/// What the rules need to know of the files beside team.yml.
pub trait TeamFiles {
    /// Whether `roles/<name>.md` is there.
    fn has_role(&self, name: &str) -> bool;
    /// Every `roles/*.md`, without directory and ending.
    fn role_names(&self) -> Vec<String>;
    /// The texts of all roles: an input that a role mentions is used.
    fn role_texts(&self) -> Vec<String>;
    /// What is at `path` within the team folder.
    fn entry(&self, path: &Utf8Path) -> EntryFile;
    /// Agents that are installed outside the team.
    fn installed_agents(&self) -> Vec<String>;
}

/// What is where an agent's executable should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryFile {
    /// A file that can be executed.
    Executable,
    /// A file that cannot.
    NotExecutable,
    /// Nothing, or a directory.
    Missing,
    /// Nobody can tell, as there is no folder.
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

/// A team on disk: a folder with `team.yml` and `roles/`.
#[derive(Debug, Clone)]
pub struct TeamFolder {
    dir: Utf8PathBuf,
    file: Utf8PathBuf,
    text: String,
    roles: Vec<(String, String)>,
    installed: Vec<String>,
}

/// A team that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// There is no team there.
    #[error("there is no team.yml in {0}")]
    NoTeam(Utf8PathBuf),
    /// A file cannot be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: Utf8PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is not UTF-8.
    #[error("{path} is not UTF-8: byte {at} (line {line}) is no part of a character")]
    NotUtf8 {
        /// The file.
        path: Utf8PathBuf,
        /// The first bad byte, from 0.
        at: usize,
        /// Its line, from 1.
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
        let bytes = fs::read(&file).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => LoadError::NoTeam(path.to_owned()),
            _ => LoadError::Read { path: file.clone(), source },
        })?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let line = error.as_bytes()[..at].iter().filter(|&&b| b == b'\n').count() + 1;
            LoadError::NotUtf8 { path: file.clone(), at, line }
        })?;
        let dir = match file.parent() {
            Some(dir) if !dir.as_str().is_empty() => dir.to_owned(),
            _ => ".".into(),
        };
        let roles = read_roles(&dir.join("roles"))?;
        Ok(Self { dir, file, text, roles, installed: Vec::new() })
    }

    /// The same, with agents that are installed outside the team.
    #[must_use]
    pub fn with_installed_agents(mut self, names: Vec<String>) -> Self {
        self.installed = names;
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
    pub fn check(&self) -> Checked {
        check(&self.text, self)
    }
}

fn read_roles(dir: &Utf8Path) -> Result<Vec<(String, String)>, LoadError> {
    let read = |path: &Utf8Path, source| LoadError::Read { path: path.to_owned(), source };
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read(dir, error)),
    };
    let mut roles = Vec::new();
    for entry in entries {
        let path = entry.map_err(|e| read(dir, e))?.into_path();
        if path.extension() == Some("md") && path.is_file() {
            let bytes = fs::read(&path).map_err(|e| read(&path, e))?;
            let name = path.file_stem().unwrap_or_default().to_owned();
            roles.push((name, String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
    roles.sort();
    Ok(roles)
}

impl TeamFiles for TeamFolder {
    fn has_role(&self, name: &str) -> bool {
        self.role(name).is_some()
    }
    fn role_names(&self) -> Vec<String> {
        self.roles.iter().map(|(name, _)| name.clone()).collect()
    }
    fn role_texts(&self) -> Vec<String> {
        self.roles.iter().map(|(_, text)| text.clone()).collect()
    }
    fn entry(&self, path: &Utf8Path) -> EntryFile {
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
}
