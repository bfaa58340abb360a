//! Finding teams: in a folder, installed in the cliq home, bundled with the program.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_packages::{Digest, Lock, Origin};
use cliq_protocol::TeamName;
use cliq_workflow::TeamFolder;
use semver::Version;
use serde::Serialize;

use crate::agents::usable_and_broken;
use crate::bundled::{BUNDLED, HIDDEN, write_files};
use crate::error::InvalidTeam;
use crate::packages::installed::lock_of;
use crate::{Host, ProjectError};

/// A team that was found. The folder of a bundled team is a temporary directory that lives as long as this value.
#[derive(Debug)]
#[non_exhaustive]
pub struct FoundTeam {
    /// Folder of the team.
    pub folder: TeamFolder,
    /// Origin of the team.
    pub(crate) origin: Origin,
    /// Digest of its files, if the origin names one.
    pub(crate) content: Option<Digest>,
    /// Name and version of the package that the team is.
    pub(crate) package: Option<(TeamName, Version)>,
    /// Lock of an installed team.
    pub(crate) lock: Option<Lock>,
    #[cfg(feature = "packages")]
    pub(crate) signature: Option<cliq_packages::Signature>,
    temporary: Option<tempfile::TempDir>,
}

impl FoundTeam {
    fn of(folder: TeamFolder) -> Self {
        Self {
            origin: Origin::Folder { path: folder.dir().to_owned() },
            folder,
            content: None,
            package: None,
            lock: None,
            #[cfg(feature = "packages")]
            signature: None,
            temporary: None,
        }
    }

    /// The same team with another origin.
    pub(crate) fn from(self, origin: Origin, content: Option<Digest>) -> Self {
        Self { origin, content, ..self }
    }

    /// The same team, whose folder is removed with this value.
    pub(crate) fn kept_in(self, temporary: tempfile::TempDir) -> Self {
        Self { temporary: Some(temporary), ..self }
    }

    /// Whether the folder is removed with this value.
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary.is_some()
    }

    /// The signature of a package, as a sentence.
    #[cfg(feature = "packages")]
    pub(crate) fn signature_text(&self) -> Option<String> {
        use cliq_packages::Signature;
        let scope = self.package.as_ref().map_or("SCOPE", |(name, _)| name.scope());
        Some(match self.signature.as_ref()? {
            Signature::Trusted(signer) => format!("signed by {signer}, which the settings trust"),
            Signature::Unchecked(key) => {
                format!(
                    "signed with the key {key}; the setting trust.{scope}.signers would say whose it must be"
                )
            }
            Signature::Invalid => "signed, and the signature is not one of this package".to_owned(),
            Signature::Unexamined => {
                "signed; the signature was not examined, as ssh-keygen is not installed".to_owned()
            }
            Signature::Missing => "not signed".to_owned(),
        })
    }

    #[cfg(not(feature = "packages"))]
    #[allow(clippy::unused_self)]
    pub(crate) fn signature_text(&self) -> Option<String> {
        None
    }

    /// The team with its problems, to be shown.
    pub(crate) fn invalid(&self, diagnostics: Vec<cliq_workflow::Diagnostic>) -> Box<InvalidTeam> {
        Box::new(InvalidTeam {
            file: self.folder.file().to_owned(),
            text: self.folder.text().to_owned(),
            diagnostics,
        })
    }
}

/// Origin of a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TeamSource {
    /// A folder at or below the current directory.
    Here,
    /// The cliq home.
    Installed,
    /// The program.
    Bundled,
}

impl TeamSource {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Installed => "installed",
            Self::Bundled => "bundled",
        }
    }
}

/// An entry of the list of teams.
#[derive(Debug, Serialize)]
#[non_exhaustive]
pub struct ListedTeam {
    /// Name of the team, or of its folder if the team has errors.
    pub name: String,
    /// Origin of the team.
    pub source: TeamSource,
    /// Folder of the team, or `None` for a bundled team.
    pub path: Option<Utf8PathBuf>,
    /// Description of the team.
    pub description: Option<String>,
    /// Whether it has no errors.
    pub valid: bool,
}

impl Host {
    /// The team that a reference names: `@scope/name` (installed, else bundled), or a path.
    ///
    /// # Errors
    /// The team does not exist, or it cannot be read. Its team.yml is not checked.
    pub fn find_team(&self, reference: &str) -> Result<FoundTeam, ProjectError> {
        if !reference.starts_with('@') || Utf8Path::new(reference).exists() {
            return self.load_team(Utf8Path::new(reference));
        }
        match self.find_local(reference)? {
            Some(found) => Ok(found),
            None => Err(self.unknown_team(reference)?),
        }
    }

    /// The team of a name on this machine: installed, else bundled.
    pub(crate) fn find_local(&self, name: &str) -> Result<Option<FoundTeam>, ProjectError> {
        let installed = self.home.as_ref().map(|home| home.join("teams").join(name));
        if let Some(dir) = installed.filter(|dir| dir.is_dir()) {
            let found = self.load_team(&dir)?;
            let lock = lock_of(&dir);
            let origin = lock.as_ref().and_then(|lock| lock.teams.iter().find(|team| team.name == name));
            // The folder that it was copied from may be another by now.
            let origin =
                origin.map(|team| &team.origin).filter(|origin| !matches!(origin, Origin::Folder { .. }));
            let origin = origin.unwrap_or(&found.origin).clone();
            return Ok(Some(FoundTeam { lock, ..found.from(origin, None) }));
        }
        let Some(bundled) = BUNDLED.iter().chain(HIDDEN).find(|team| team.name == name) else {
            return Ok(None);
        };
        let temporary = tempfile::tempdir()?;
        let dir = Utf8Path::from_path(temporary.path())
            .ok_or_else(|| ProjectError::NotUtf8("the temporary directory".to_owned()))?;
        write_files(dir, bundled.files)?;
        Ok(Some(self.load_team(dir)?.from(Origin::Bundled, None).kept_in(temporary)))
    }

    /// The error that there is no team of a name, with the most similar name.
    pub(crate) fn unknown_team(&self, name: &str) -> Result<ProjectError, ProjectError> {
        let known = self.list_teams(Utf8Path::new("."))?;
        let nearest = cliq_workflow::nearest(name, known.iter().map(|team| team.name.as_str()));
        Ok(ProjectError::UnknownTeam { name: name.to_owned(), nearest: nearest.map(str::to_owned) })
    }

    /// The team at a path: a folder, or its team.yml.
    pub(crate) fn load_team(&self, path: &Utf8Path) -> Result<FoundTeam, ProjectError> {
        let (usable, broken) = usable_and_broken(self);
        let folder = TeamFolder::load(path)?
            .with_installed_agents(usable)
            .with_schema_check(cliq_agents::schema_problem);
        Ok(FoundTeam::of(folder.with_broken_agents(broken)))
    }

    /// All teams: in `here` and directly below it, installed, bundled.
    ///
    /// # Errors
    /// A bundled team cannot be written to a temporary directory.
    pub fn list_teams(&self, here: &Utf8Path) -> Result<Vec<ListedTeam>, ProjectError> {
        let mut teams = Vec::new();
        let mut add = |dir: &Utf8Path, source: TeamSource| {
            let Ok(found) = self.load_team(dir) else { return };
            let workflow = found.folder.check().workflow;
            let valid = workflow.is_some();
            let (name, description) = match workflow {
                Some(workflow) => (workflow.name.to_string(), workflow.description),
                None => (dir.file_name().unwrap_or(dir.as_str()).to_owned(), None),
            };
            teams.push(ListedTeam { name, source, path: Some(dir.to_owned()), description, valid });
        };
        add(here, TeamSource::Here);
        for dir in sub_directories(here) {
            add(&dir, TeamSource::Here);
            if dir.file_name().is_some_and(|name| name.starts_with('@')) {
                sub_directories(&dir).iter().for_each(|dir| add(dir, TeamSource::Here));
            }
        }
        if let Some(home) = &self.home {
            for scope in sub_directories(&home.join("teams")) {
                sub_directories(&scope).iter().for_each(|dir| add(dir, TeamSource::Installed));
            }
        }
        for bundled in BUNDLED {
            let workflow = self.find_team(bundled.name)?.folder.check().workflow;
            teams.push(ListedTeam {
                name: bundled.name.to_owned(),
                source: TeamSource::Bundled,
                path: None,
                valid: workflow.is_some(),
                description: workflow.and_then(|workflow| workflow.description),
            });
        }
        Ok(teams)
    }
}

fn sub_directories(dir: &Utf8Path) -> Vec<Utf8PathBuf> {
    let Ok(entries) = dir.read_dir_utf8() else { return Vec::new() };
    let mut found: Vec<_> = entries
        .filter_map(Result::ok)
        .filter(|entry| !entry.file_name().starts_with('.') && entry.path().is_dir())
        .map(camino::Utf8DirEntry::into_path)
        .collect();
    found.sort();
    found
}
