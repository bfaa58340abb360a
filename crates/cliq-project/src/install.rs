//! Installing a team for all projects: from a folder, a git repository or a registry.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::IoContext;
use cliq_packages::{Lock, Origin, Source};
use cliq_workflow::{Diagnostic, TeamFolder};
use semver::Version;

use crate::packages::TeamPermissions;
use crate::packages::installed::FILE;
use crate::packages::resolve::{Choice, ResolvedTeam, Resolver};
use crate::team_files::{check_files, copy_tree};
use crate::teams::FoundTeam;
use crate::{Host, ProjectError};

/// A team that was installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct InstalledTeam {
    /// Name of the team.
    pub name: String,
    /// Version of the team, if it has one.
    pub version: Option<String>,
    /// Whether it replaces another copy, and the version of that copy.
    pub replaced: Option<Option<String>>,
    /// Folder in the cliq home.
    pub place: Utf8PathBuf,
    /// The text of its team.yml, for its warnings.
    pub text: String,
    /// Warnings about its team.yml.
    pub warnings: Vec<Diagnostic>,
}

/// A team that was fetched and checked, and can be installed.
#[derive(Debug)]
#[non_exhaustive]
pub struct Installation {
    /// Name of the team.
    pub name: String,
    /// Version of the team.
    pub version: Option<Version>,
    /// Description of the team.
    pub description: Option<String>,
    /// Permissions of the team and of those of its team phases.
    pub permissions: Vec<TeamPermissions>,
    /// Signature, as a sentence; `None` for a team that is no package.
    pub signature: Option<String>,
    /// Version of the installed team, if a package is to replace a newer one.
    pub newer: Option<Version>,
    found: FoundTeam,
    warnings: Vec<Diagnostic>,
    lock: Lock,
}

impl Installation {
    /// Origin of the team, as it is locked.
    #[must_use]
    pub fn origin(&self) -> Option<&Origin> {
        let team = self.lock.teams.iter().find(|team| team.name == self.name.as_str());
        team.map(|team| &team.origin)
    }
}

impl Host {
    /// Installs a team for all projects. `source` is a folder, the address of a git repository with `#REF`, `oci://HOST/PATH:VERSION`, or
    /// `@scope/name@RANGE`. `fetching` is called with the address before it is fetched, which may take long.
    ///
    /// # Errors
    /// The team cannot be fetched or read, is refused, has errors, has links that leave its folder, is older than the installed package, or
    /// cannot be written.
    pub fn install_team(&self, source: &str, fetching: impl Fn(&str)) -> Result<InstalledTeam, ProjectError> {
        self.install(self.prepare_installation(source, &fetching)?, false)
    }

    /// Fetches and checks a team, and installs nothing: a person can decide by its permissions.
    ///
    /// # Errors
    /// The team cannot be fetched or read, is refused, has errors, or has links that leave its folder.
    pub fn prepare_installation(
        &self,
        source: &str,
        fetching: &dyn Fn(&str),
    ) -> Result<Installation, ProjectError> {
        let parsed = Source::parse(source)?;
        // A name means a package, not the installed copy.
        let parsed = match parsed {
            Source::Named(mut named) if named.range.is_none() => {
                named.range = Some(cliq_packages::Range::any());
                Source::Named(named)
            }
            parsed => parsed,
        };
        let resolver = Resolver::new(self, Choice::Prefer(None), fetching).naming_signers();
        let team = match &parsed {
            Source::Folder(path) => resolver.resolve_alone(self.load_team(path)?, source),
            // A package is whole: its teams are fetched with it.
            Source::Named(_) | Source::Registry { .. } => resolver.resolve_source(&parsed),
            Source::Git(_) => resolver.resolve_source_alone(&parsed),
        };
        let team = team.map_err(|error| error.named(source))?;
        check_files(team.found.folder.dir())?;
        let lock = team.lock(&parsed.to_string(), Utf8Path::new("/nonexistent"))?;
        Ok(Installation {
            name: team.workflow.name.to_string(),
            version: team.workflow.version.clone(),
            description: team.workflow.description.clone(),
            permissions: team.permissions(),
            signature: team.found.signature_text(),
            newer: self.newer_package(&team)?,
            lock,
            warnings: team.warnings,
            found: team.found,
        })
    }

    /// Installs a team that was prepared. `allow_downgrade` permits an older version of the same package.
    ///
    /// # Errors
    /// The team is older than the installed package, or cannot be written.
    pub fn install(&self, team: Installation, allow_downgrade: bool) -> Result<InstalledTeam, ProjectError> {
        if let (Some(from), Some(to), false) = (&team.newer, &team.version, allow_downgrade) {
            return Err(ProjectError::Downgrade { name: team.name, from: from.clone(), to: to.clone() });
        }
        let place = self.home.as_ref().ok_or(ProjectError::NoHome)?.join("teams").join(&team.name);
        let old = TeamFolder::load(&place).ok().map(|folder| folder.check().workflow);
        let replaced = old.map(|old| old.and_then(|old| old.version).map(|version| version.to_string()));
        replace_folder(team.found.folder.dir(), &place, &team.lock)?;
        Ok(InstalledTeam {
            name: team.name,
            version: team.version.map(|version| version.to_string()),
            replaced,
            place,
            text: team.found.folder.text().to_owned(),
            warnings: team.warnings,
        })
    }

    /// The version of the installed team, if a package is to replace a newer one. A folder or a repository may be older: it is under the
    /// control of the person.
    fn newer_package(&self, team: &ResolvedTeam) -> Result<Option<Version>, ProjectError> {
        if !matches!(team.found.origin, Origin::Registry { .. }) {
            return Ok(None);
        }
        let place =
            self.home.as_ref().ok_or(ProjectError::NoHome)?.join("teams").join(team.workflow.name.as_str());
        let installed = TeamFolder::load(&place).ok().and_then(|folder| folder.check().workflow?.version);
        Ok(installed.filter(|old| Some(old) > team.workflow.version.as_ref()))
    }
}

/// Replaces `place` by a copy of `from` with its lock, by renames, so that a reader finds the old folder or the new one.
fn replace_folder(from: &Utf8Path, place: &Utf8Path, lock: &Lock) -> Result<(), ProjectError> {
    let parent = place.parent().unwrap_or(place);
    fs::create_dir_all(parent).at("create", parent)?;
    let staging = tempfile::Builder::new().prefix(".tmp-").tempdir_in(parent)?;
    let staged = Utf8Path::from_path(staging.path())
        .ok_or_else(|| ProjectError::NotUtf8(parent.to_string()))?
        .to_owned();
    let (new, old) = (staged.join("new"), staged.join("old"));
    copy_tree(from, &new)?;
    let file = new.join(FILE);
    let _ = fs::remove_file(&file);
    lock.write(&file)?;
    if place.exists() {
        fs::rename(place, &old).at("move away", place)?;
    }
    if let Err(error) = fs::rename(&new, place) {
        let _ = fs::rename(&old, place);
        return Err(error).at("create", place).map_err(Into::into);
    }
    Ok(())
}
