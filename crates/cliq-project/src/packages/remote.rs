//! Packages of registries, with the settings of a person.

use std::collections::BTreeMap;

use camino::Utf8PathBuf;
use cliq_packages::{
    Cache, Credentials, Origin, PROGRAM, PackageError, Packages, Pick, Registry, Repository, Signer,
    SshKeygen,
};
use cliq_protocol::TeamName;
use cliq_settings::{PackageSettings, ScopeTrustSettings};

use super::resolve::Resolver;
use crate::teams::FoundTeam;
use crate::{Host, ProjectError};

impl Host {
    /// Registries, trust and cache of the person: those of their own settings, never of a project.
    ///
    /// # Errors
    /// There is no cliq home, or a setting has no valid value.
    pub fn packages(&self) -> Result<Packages, ProjectError> {
        let home = self.home.as_deref().ok_or(ProjectError::NoHome)?;
        let settings = cliq_settings::Settings::load(Some(home), None)?;
        let PackageSettings { registries, signing_key: _, plain_http } = PackageSettings::read(&settings);
        let mut places = BTreeMap::new();
        for (scope, address) in registries {
            let place: Repository = address.parse().map_err(|error: cliq_packages::SourceError| {
                ProjectError::PackageSetting {
                    key: format!("registries.{scope}"),
                    message: error.to_string(),
                }
            })?;
            places.insert(scope, place);
        }
        let mut trust = BTreeMap::new();
        for scope in ScopeTrustSettings::scopes(&settings) {
            let keys = ScopeTrustSettings::read(&settings, &scope).signers;
            let signers: Result<Vec<Signer>, _> = keys.iter().map(|key| Signer::parse(key)).collect();
            let signers = signers.map_err(|error| ProjectError::PackageSetting {
                key: format!("trust.{scope}.signers"),
                message: error.to_string(),
            })?;
            trust.insert(scope, signers);
        }
        let docker = self.environment.get("DOCKER_CONFIG").map(Utf8PathBuf::from);
        let docker =
            docker.or_else(|| Some(Utf8PathBuf::from(self.environment.get("HOME")?).join(".docker")));
        Ok(Packages {
            registry: Registry::new(Credentials::in_directory(docker), plain_http),
            cache: Cache::in_home(home),
            keygen: SshKeygen::new(self.environment.find_program(PROGRAM)),
            places,
            trust,
            names_signers: false,
        })
    }
}

impl Resolver<'_> {
    fn packages(&self) -> Result<&Packages, ProjectError> {
        if let Some(packages) = self.packages.get() {
            return Ok(packages);
        }
        let mut packages = self.host.packages()?;
        packages.names_signers = self.names_signers;
        Ok(self.packages.get_or_init(|| packages))
    }

    /// The repository of a name, if its scope has a registry.
    pub(super) fn place(&self, name: &TeamName) -> Result<Option<Repository>, ProjectError> {
        if self.host.home.is_none() {
            return Ok(None);
        }
        match self.packages()?.repository_of(name) {
            Ok(place) => Ok(Some(place)),
            Err(PackageError::NoRegistry(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(super) fn fetch(
        &self,
        repository: &Repository,
        name: Option<&TeamName>,
        pick: &Pick,
    ) -> Result<FoundTeam, ProjectError> {
        let packages = self.packages()?;
        if !matches!(pick, Pick::Digest(digest) if packages.cache.blob(*digest).is_some()) {
            (self.fetching)(&repository.to_string());
        }
        let package = packages.fetch(repository, name, pick)?;
        let origin = Origin::Registry { repository: package.repository, manifest: package.manifest };
        let mut found = self.host.load_team(&package.dir)?.from(origin, Some(package.config.content));
        found.package = Some((package.config.name, package.config.version));
        found.signature = Some(package.signature);
        Ok(found)
    }
}
