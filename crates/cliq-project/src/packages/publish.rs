//! Publishing a team as a package.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_packages::{Content, Digest, NamedSource, PackageConfig, PackageError, Range, Repository};
use cliq_protocol::TeamName;
use cliq_settings::PackageSettings;
use cliq_workflow::Diagnostic;
use semver::Version;

use super::git::temporary;
use super::permissions::TeamPermissions;
use super::resolve::{Choice, Resolver};
use crate::{Host, ProjectError};

/// A team that can be published: checked, packed and tried.
#[derive(Debug)]
#[non_exhaustive]
pub struct Publication {
    /// Name of the team.
    pub name: TeamName,
    /// Version of the team.
    pub version: Version,
    /// Repository that it goes to.
    pub repository: Repository,
    /// Files of the package: path and size in bytes.
    pub files: Vec<(String, u64)>,
    /// Path and text of its team.yml, for its warnings.
    pub team_file: (Utf8PathBuf, String),
    /// Warnings about its team.yml.
    pub warnings: Vec<Diagnostic>,
    /// Permissions, as those who install it are shown.
    pub permissions: Vec<TeamPermissions>,
    /// File of the key that signs it.
    pub key: Option<Utf8PathBuf>,
    content: Content,
    config: PackageConfig,
}

impl Host {
    /// Prepares the publication of the team in a folder. `to` is the repository, without it the one of its scope; `key` the SSH key that signs
    /// it, without it that of the settings.
    ///
    /// # Errors
    /// The team has errors, no version or the scope `@local`; a team phase names a folder outside; no registry is known; the version exists;
    /// or the files of the package alone make no valid team.
    pub fn prepare_publication(
        &self,
        path: &Utf8Path,
        to: Option<Repository>,
        key: Option<Utf8PathBuf>,
        fetching: &dyn Fn(&str),
    ) -> Result<Publication, ProjectError> {
        let team = Resolver::new(self, Choice::Prefer(None), fetching).resolve_folder(path)?;
        let name = team.workflow.name.clone();
        let unpublishable = |why: String| ProjectError::Unpublishable { team: name.to_string(), why };
        if name.scope() == "local" {
            return Err(unpublishable(
                "the scope @local is for teams of this machine; give it another in `name:`".into(),
            ));
        }
        let version = team.workflow.version.clone();
        let version = version.ok_or_else(|| {
            unpublishable("it has no version: `cliq team version 0.1.0 PATH` writes one".into())
        })?;
        let mut requires = BTreeMap::new();
        let phases = team.workflow.phases().filter_map(|(_, phase)| Some((phase, phase.team.as_deref()?)));
        for (phase, reference) in phases {
            let inner = team.teams.iter().find(|(name, _)| *name == phase.name).map(|(_, team)| team);
            if let Ok(NamedSource { name, range }) = reference.parse() {
                requires.insert(name, range.unwrap_or_else(Range::any));
            } else if !reference.contains("://") && inner.is_some_and(|team| team.part.is_none()) {
                return Err(unpublishable(format!(
                    "its team phase {} names {reference}, which is not in its folder: publish that team, and name it `@scope/name@RANGE`",
                    phase.name
                )));
            }
        }
        let packages = self.packages()?;
        let repository = to.map_or_else(|| packages.repository_of(&name), Ok)?;
        packages.check_new(&repository, &version)?;
        let content = team.content()?;
        self.try_content(&content)?;
        let home = self.home.as_deref().ok_or(ProjectError::NoHome)?;
        let settings = cliq_settings::Settings::load(Some(home), None)?;
        let key = key.or_else(|| PackageSettings::read(&settings).signing_key.map(|path| self.expand(&path)));
        Ok(Publication {
            config: PackageConfig {
                format: 1,
                name: name.clone(),
                version: version.clone(),
                description: team.workflow.description.clone(),
                archive: Digest::of(&[]),
                content: Digest::of(&[]),
                requires,
            },
            name,
            version,
            repository,
            files: content.files().map(|(path, file)| (path.to_string(), file.bytes.len() as u64)).collect(),
            team_file: (team.found.folder.file().to_owned(), team.found.folder.text().to_owned()),
            permissions: team.permissions(),
            warnings: team.warnings,
            key,
            content,
        })
    }

    /// Publishes. Gives the digest of the manifest.
    ///
    /// # Errors
    /// The version exists, nobody could install the package for want of a signature, or the registry fails.
    pub fn publish(&self, publication: &Publication) -> Result<Digest, ProjectError> {
        let Publication { repository, content, config, key, .. } = publication;
        let published = self.packages()?.publish(repository, content, config.clone(), key.as_deref());
        published.map_err(|error: PackageError| error.into())
    }

    /// Checks that the files of a package alone make a valid team.
    fn try_content(&self, content: &Content) -> Result<(), ProjectError> {
        let (_temporary, dir) = temporary()?;
        let failed = |source| ProjectError::TeamFiles { team: "the package".to_owned(), source };
        let unpacked = content.to_archive().and_then(|archive| Content::from_archive(&archive));
        unpacked.and_then(|content| content.write(&dir)).map_err(failed)?;
        let found = self.load_team(&dir)?;
        let checked = found.folder.check();
        if checked.workflow.is_some() {
            return Ok(());
        }
        let team = found.invalid(checked.diagnostics);
        Err(ProjectError::TeamInvalid {
            subject: "the package without the other files of the folder".to_owned(),
            team,
        })
    }

    fn expand(&self, path: &str) -> Utf8PathBuf {
        match (path.strip_prefix("~/"), self.environment.get("HOME")) {
            (Some(rest), Some(home)) => Utf8Path::new(home).join(rest),
            _ => path.into(),
        }
    }
}
