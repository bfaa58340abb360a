//! Fetching packages from registries and publishing them, with the checks of both.

use std::collections::BTreeMap;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::FsError;
use cliq_protocol::TeamName;
use semver::Version;

use crate::cache::Cache;
use crate::content::{Content, ContentError};
use crate::format::{Descriptor, FormatError, Manifest, PackageConfig, TITLE};
use crate::{Digest, Pick, Range, Registry, RegistryError, Repository, SignatureError, Signer, SshKeygen};

/// A package that was fetched and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// Name and version, as signed.
    pub config: PackageConfig,
    /// The repository.
    pub repository: Repository,
    /// Digest of the manifest.
    pub manifest: Digest,
    /// Folder with the files, in the cache. Read-only by convention: edited files do not count.
    pub dir: Utf8PathBuf,
    /// Whose signature it has.
    pub signature: Signature,
}

/// Signature of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signature {
    /// A signer that the settings trust for the scope.
    Trusted(String),
    /// A valid signature, where the settings require no signer for the scope. Holds the fingerprint of the key.
    Unchecked(String),
    /// Signatures, none of which is one of this package. Only for scopes without signers.
    Invalid,
    /// Signatures that were not examined. Only for scopes without signers.
    Unexamined,
    /// No signature. Only for scopes without signers.
    Missing,
}

/// A package cannot be fetched, or is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PackageError {
    /// No setting says where the packages of a scope are.
    #[error(
        "no registry is known for the scope @{0}: `cliq settings set --global registries.{0} oci://HOST/PATH` sets one"
    )]
    NoRegistry(String),
    /// No version fits.
    #[error("{package} {}", match newest {
        Some(newest) => format!("has no version in {range}: the newest is {newest}"),
        None => "has no versions: either nothing of this name is published, or its name is another".to_owned(),
    })]
    NoVersion {
        /// Name or repository of the package.
        package: String,
        /// The range.
        range: Range,
        /// The newest version, if there is any.
        newest: Option<Version>,
    },
    /// A version has another manifest than before.
    #[error(
        "{repository}:{version} was {known} when it was first fetched and is {found} now: a published version does not change"
    )]
    Moved {
        /// The repository.
        repository: Repository,
        /// The version.
        version: Version,
        /// Manifest that the version had.
        known: Digest,
        /// Manifest that the version has.
        found: Digest,
    },
    /// The artifact is not a package, or not a proper one.
    #[error("{package} is refused: {source}")]
    Format {
        /// The package.
        package: String,
        /// Reason.
        source: FormatError,
    },
    /// The package is that of another team.
    #[error("{package} is refused: it is the package of {found}")]
    OtherTeam {
        /// The package.
        package: String,
        /// Team by the config.
        found: TeamName,
    },
    /// The package has another version than its tag.
    #[error("{package} is refused: it is version {found}")]
    OtherVersion {
        /// The package.
        package: String,
        /// Version by the config.
        found: Version,
    },
    /// The files are refused.
    #[error("{package} is refused: {source}")]
    Content {
        /// The package.
        package: String,
        /// Reason.
        source: ContentError,
    },
    /// The files are others than those that the config names.
    #[error("{package} is refused: its files are {found}, its config names {expected}")]
    OtherContent {
        /// The package.
        package: String,
        /// Digest by the config.
        expected: Digest,
        /// Digest of the files.
        found: Digest,
    },
    /// The scope requires a signature.
    #[error("{package} is refused: it is not signed, and trust.{scope}.signers requires a signature")]
    Unsigned {
        /// The package.
        package: String,
        /// The scope.
        scope: String,
    },
    /// The signatures are those of others.
    #[error("{package} is refused: {}, and not by a signer of trust.{scope}.signers", found.as_ref().map_or_else(|| "no signature of it is valid".to_owned(), |found| format!("it is signed by {found}")))]
    OtherSigner {
        /// The package.
        package: String,
        /// The scope.
        scope: String,
        /// Fingerprint of the key, if the signature is one of this package.
        found: Option<String>,
    },
    /// The version exists.
    #[error(
        "{repository}:{version} exists: a published version does not change; `cliq team version patch` makes the next one"
    )]
    Exists {
        /// The repository.
        repository: Repository,
        /// The version.
        version: Version,
    },
    /// The package would have no signature, which its scope requires.
    #[error(
        "{name} would be refused where settings require a signature: trust.{scope}.signers is set here, and no key signs it; pass `--key FILE` or set packages.signing_key"
    )]
    WouldBeUnsigned {
        /// The team.
        name: TeamName,
        /// The scope.
        scope: String,
    },
    /// The registry has other bytes than were published.
    #[error(
        "{repository}:{version} is not what was published: another publication took place at the same time"
    )]
    Raced {
        /// The repository.
        repository: Repository,
        /// The version.
        version: Version,
    },
    /// A registry fails.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// A signature cannot be made or checked.
    #[error(transparent)]
    Signature(#[from] SignatureError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
}

/// Registries, trust and the cache of a person.
#[derive(Debug)]
pub struct Packages {
    /// Client of registries.
    pub registry: Registry,
    /// Cache of packages.
    pub cache: Cache,
    /// Program for signatures.
    pub keygen: SshKeygen,
    /// Places of packages by scope.
    pub places: BTreeMap<String, Repository>,
    /// Signers by scope. A scope that is here accepts packages of these signers only, so that an empty list accepts none.
    pub trust: BTreeMap<String, Vec<Signer>>,
    /// Whether the keys of signatures that no setting requires are named. Takes a process for each package.
    pub names_signers: bool,
}

/// A package that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FoundPackage {
    /// Name of the team.
    pub name: String,
    /// Newest version.
    pub version: Version,
    /// Description.
    pub description: Option<String>,
    /// The repository.
    pub repository: Repository,
}

impl Packages {
    /// The repository of a team, by its scope.
    ///
    /// # Errors
    /// No registry is set for the scope.
    pub fn repository_of(&self, name: &TeamName) -> Result<Repository, PackageError> {
        let place = self.places.get(name.scope());
        place
            .map(|place| place.join(name.name()))
            .ok_or_else(|| PackageError::NoRegistry(name.scope().to_owned()))
    }

    /// Fetches a package: the newest version of a range, or the one with a digest. `name` is the team that was asked for by name.
    ///
    /// # Errors
    /// There is no such version, the registry fails, or the package is refused.
    pub fn fetch(
        &self,
        repository: &Repository,
        name: Option<&TeamName>,
        pick: &Pick,
    ) -> Result<Package, PackageError> {
        match pick {
            Pick::Digest(digest) => self.fetch_manifest(repository, name, *digest),
            Pick::Range(range) => {
                let versions = self.registry.versions(repository)?;
                let version = range.newest(&versions).ok_or_else(|| PackageError::NoVersion {
                    package: name.map_or_else(|| repository.to_string(), ToString::to_string),
                    range: range.clone(),
                    newest: versions.iter().max().cloned(),
                })?;
                self.fetch_version(repository, name, version)
            }
        }
    }

    /// Fetches a version of a package.
    ///
    /// # Errors
    /// As for [`Packages::fetch`]; or the version has another manifest than when it was first fetched.
    pub fn fetch_version(
        &self,
        repository: &Repository,
        name: Option<&TeamName>,
        version: &Version,
    ) -> Result<Package, PackageError> {
        let (found, bytes) = self.registry.manifest_of(repository, version)?;
        if let Some(known) = self.cache.known(repository, version)?.filter(|known| *known != found) {
            return Err(PackageError::Moved {
                repository: repository.clone(),
                version: version.clone(),
                known,
                found,
            });
        }
        let package = format!("{repository}:{version}");
        let fetched = self.check(repository, &package, name, Some(version), found, &bytes)?;
        self.cache.remember(repository, version, found)?;
        Ok(fetched)
    }

    /// Fetches the package with this manifest, as a lock names it. With a warm cache no registry is asked.
    ///
    /// # Errors
    /// As for [`Packages::fetch`].
    pub fn fetch_manifest(
        &self,
        repository: &Repository,
        name: Option<&TeamName>,
        manifest: Digest,
    ) -> Result<Package, PackageError> {
        let bytes = match self.cache.blob(manifest) {
            Some(bytes) => bytes,
            None => self.registry.manifest(repository, manifest)?,
        };
        let package = format!("{repository}@{manifest}");
        self.check(repository, &package, name, None, manifest, &bytes)
    }

    fn small_blob(&self, repository: &Repository, blob: &Descriptor) -> Result<Vec<u8>, PackageError> {
        match self.cache.blob(blob.digest) {
            Some(bytes) => Ok(bytes),
            None => Ok(self.registry.blob(repository, blob)?),
        }
    }

    fn check(
        &self,
        repository: &Repository,
        package: &str,
        name: Option<&TeamName>,
        version: Option<&Version>,
        digest: Digest,
        bytes: &[u8],
    ) -> Result<Package, PackageError> {
        let format = |source| PackageError::Format { package: package.to_owned(), source };
        let manifest = Manifest::parse(bytes).map_err(format)?;
        let config_bytes = self.small_blob(repository, &manifest.config)?;
        let config = manifest.parse_config(&config_bytes).map_err(format)?;
        if name.is_some_and(|name| config.name != *name) {
            return Err(PackageError::OtherTeam { package: package.to_owned(), found: config.name });
        }
        if version.is_some_and(|version| config.version != *version) {
            return Err(PackageError::OtherVersion { package: package.to_owned(), found: config.version });
        }
        let mut signatures = Vec::new();
        for blob in manifest.signatures() {
            signatures.push(self.small_blob(repository, blob)?);
        }
        let signature = self.signature(package, config.name.scope(), &config_bytes, &signatures)?;
        let dir = match self.cache.content(config.content) {
            Some(dir) => dir,
            None => self.fetch_content(repository, package, &manifest, &config)?,
        };
        for small in signatures.iter().map(Vec::as_slice).chain([bytes, &config_bytes]) {
            self.cache.keep_blob(small)?;
        }
        Ok(Package { config, repository: repository.clone(), manifest: digest, dir, signature })
    }

    fn fetch_content(
        &self,
        repository: &Repository,
        package: &str,
        manifest: &Manifest,
        config: &PackageConfig,
    ) -> Result<Utf8PathBuf, PackageError> {
        let none = || PackageError::Format { package: package.to_owned(), source: FormatError::Archives(0) };
        let archive = self.registry.blob(repository, manifest.archive().ok_or_else(none)?)?;
        let wrong = |source| PackageError::Content { package: package.to_owned(), source };
        let content = Content::from_archive(&archive).map_err(wrong)?;
        let found = content.digest();
        if found != config.content {
            let expected = config.content;
            return Err(PackageError::OtherContent { package: package.to_owned(), expected, found });
        }
        self.cache.keep_content(&content).map_err(wrong)
    }

    /// Whose signature the config has.
    fn signature(
        &self,
        package: &str,
        scope: &str,
        config: &[u8],
        signatures: &[Vec<u8>],
    ) -> Result<Signature, PackageError> {
        let fingerprint = || {
            let mut found = None;
            for signature in signatures {
                found = found.or(self.keygen.fingerprint(config, signature)?);
            }
            Ok::<_, SignatureError>(found)
        };
        let Some(signers) = self.trust.get(scope) else {
            if signatures.is_empty() {
                return Ok(Signature::Missing);
            }
            if !self.names_signers {
                return Ok(Signature::Unexamined);
            }
            return match fingerprint() {
                Ok(found) => Ok(found.map_or(Signature::Invalid, Signature::Unchecked)),
                // No setting requires the program here.
                Err(SignatureError::NoProgram) => Ok(Signature::Unexamined),
                Err(error) => Err(error.into()),
            };
        };
        let (package, scope) = (package.to_owned(), scope.to_owned());
        if signatures.is_empty() {
            return Err(PackageError::Unsigned { package, scope });
        }
        for signature in signatures {
            if let Some(signer) = self.keygen.signer(signers, config, signature)? {
                return Ok(Signature::Trusted(signer.name().to_owned()));
            }
        }
        Err(PackageError::OtherSigner { package, scope, found: fingerprint()? })
    }

    /// Publishes a package, signed with a key. Gives the digest of its manifest.
    ///
    /// # Errors
    /// The version exists, the scope requires a signature and there is no key, or the registry fails.
    pub fn publish(
        &self,
        repository: &Repository,
        content: &Content,
        mut config: PackageConfig,
        key: Option<&Utf8Path>,
    ) -> Result<Digest, PackageError> {
        let (version, name) = (config.version.clone(), config.name.clone());
        if key.is_none() && self.trust.contains_key(name.scope()) {
            return Err(PackageError::WouldBeUnsigned { scope: name.scope().to_owned(), name });
        }
        self.check_new(repository, &version)?;
        let wrong = |source| PackageError::Content { package: name.to_string(), source };
        let archive = content.to_archive().map_err(wrong)?;
        config.archive = Digest::of(&archive);
        config.content = content.digest();
        // Serializing these types cannot fail.
        let config_bytes = serde_json::to_vec(&config).unwrap_or_default();
        let signature = key.map(|key| self.keygen.sign(key, &config_bytes)).transpose()?;
        let manifest = Manifest::of(&config, &config_bytes, &archive, signature.as_deref());
        let bytes = serde_json::to_vec(&manifest).unwrap_or_default();
        for blob in
            [Some(archive.as_slice()), Some(&config_bytes), signature.as_deref()].into_iter().flatten()
        {
            self.registry.push_blob(repository, blob)?;
        }
        // Uploading takes a while: another may have published the version.
        self.check_new(repository, &version)?;
        self.registry.push_manifest(repository, &version, &bytes)?;
        let (found, _) = self.registry.manifest_of(repository, &version)?;
        if found != Digest::of(&bytes) {
            return Err(PackageError::Raced { repository: repository.clone(), version });
        }
        self.cache.remember(repository, &version, found)?;
        Ok(found)
    }

    /// Checks that a version is not published.
    ///
    /// # Errors
    /// The version exists, or the registry fails.
    pub fn check_new(&self, repository: &Repository, version: &Version) -> Result<(), PackageError> {
        // The manifest is asked for, as a list of tags may be old.
        match self.registry.manifest_of(repository, version) {
            Ok(_) => Err(PackageError::Exists { repository: repository.clone(), version: version.clone() }),
            Err(RegistryError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Packages of the registries in the settings whose name or description has all words of a text, and the errors of the scopes whose
    /// registry fails or does not list its repositories.
    #[must_use]
    pub fn search(&self, text: &str) -> (Vec<FoundPackage>, Vec<(String, PackageError)>) {
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let (mut found, mut failed) = (Vec::new(), Vec::new());
        for (scope, place) in &self.places {
            match self.search_place(place, &words) {
                Ok(packages) => found.extend(packages),
                Err(error) => failed.push((scope.clone(), error)),
            }
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        found.dedup();
        (found, failed)
    }

    fn search_place(&self, place: &Repository, words: &[String]) -> Result<Vec<FoundPackage>, PackageError> {
        let mut found = Vec::new();
        for repository in self.registry.repositories(place)? {
            let versions = self.registry.versions(&repository)?;
            let Some(version) = Range::any().newest(&versions).or(versions.last()) else { continue };
            let (_, bytes) = self.registry.manifest_of(&repository, version)?;
            // Another kind of artifact in the same place is none of ours.
            let Ok(manifest) = Manifest::parse(&bytes) else { continue };
            let annotation = |key: &str| manifest.annotations.get(key).map(|text| shown(text));
            let name = annotation(TITLE).unwrap_or_default();
            let description = annotation("org.opencontainers.image.description");
            let searched = format!("{name} {}", description.as_deref().unwrap_or_default()).to_lowercase();
            if words.iter().all(|word| searched.contains(word.as_str())) {
                found.push(FoundPackage { name, version: version.clone(), description, repository });
            }
        }
        Ok(found)
    }
}

/// A text of a registry without control characters, at most 500 characters of it.
fn shown(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(500).collect()
}
