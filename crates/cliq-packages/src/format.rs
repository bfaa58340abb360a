//! Format of a package in a registry: an OCI manifest, a config, an archive, signatures (docs/packages.md, "Format").

use std::collections::BTreeMap;

use cliq_protocol::TeamName;
use semver::Version;
use serde::{Deserialize, Serialize};

use crate::{Digest, Range};

/// Type of the artifact: a team.
pub const ARTIFACT_TYPE: &str = "application/vnd.cliq.team.v1";
/// Media type of the config.
pub const CONFIG_TYPE: &str = "application/vnd.cliq.team.config.v1+json";
/// Media type of the archive.
pub const ARCHIVE_TYPE: &str = "application/vnd.cliq.team.content.v1.tar+gzip";
/// Media type of an SSH signature of the config.
pub const SIGNATURE_TYPE: &str = "application/vnd.cliq.team.signature.v1+ssh";
/// Media type of the manifest.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";
/// Annotation with the name of a file.
pub(crate) const TITLE: &str = "org.opencontainers.image.title";
/// Maximum number of bytes of a manifest, a config and a signature.
pub(crate) const MAX_SMALL_BYTES: u64 = 1 << 20;
/// Maximum number of signatures of a package.
pub(crate) const MAX_SIGNATURES: usize = 16;

/// Config of a package: the part that is signed. The digests bind the files to name and version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageConfig {
    /// Version of the format: 1.
    pub format: u32,
    /// Name of the team.
    pub name: TeamName,
    /// Version of the team.
    pub version: Version,
    /// Description of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Digest of the archive.
    pub archive: Digest,
    /// Digest of the files ([`crate::Content::digest`]).
    pub content: Digest,
    /// Packages that team phases name, with their ranges.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub requires: BTreeMap<TeamName, Range>,
}

/// Reference of a manifest to a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the blob.
    pub media_type: String,
    /// Digest of the blob.
    pub digest: Digest,
    /// Number of bytes of the blob.
    pub size: u64,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

impl Descriptor {
    /// The descriptor of a blob with a file name.
    #[must_use]
    pub fn of(media_type: &str, bytes: &[u8], title: &str) -> Self {
        Self {
            media_type: media_type.to_owned(),
            digest: Digest::of(bytes),
            size: bytes.len() as u64,
            annotations: BTreeMap::from([(TITLE.to_owned(), title.to_owned())]),
        }
    }
}

/// Manifest of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Version of the schema: 2.
    pub schema_version: u32,
    /// Media type of the manifest.
    pub media_type: String,
    /// Type of the artifact.
    #[serde(default)]
    pub artifact_type: Option<String>,
    /// Config.
    pub config: Descriptor,
    /// Archive and signatures.
    pub layers: Vec<Descriptor>,
    /// Annotations, for people and other programs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// The manifest is not that of a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes are no manifest.
    #[error("its manifest cannot be read: {0}")]
    Manifest(String),
    /// The bytes are no config.
    #[error("its config cannot be read: {0}")]
    Config(String),
    /// The artifact is something else.
    #[error("it is {0}, not a team (`{ARTIFACT_TYPE}`)")]
    OtherArtifact(String),
    /// The format is newer than this program.
    #[error("it has format {0}: this version of cliq reads format 1")]
    Newer(u32),
    /// A layer is missing or too many.
    #[error("it has {0} archives in place of one")]
    Archives(usize),
    /// There are too many signatures.
    #[error("it has more than {MAX_SIGNATURES} signatures")]
    Signatures,
    /// A blob is larger than allowed.
    #[error("its {what} has {size} bytes, more than the {limit} that are allowed")]
    TooLarge {
        /// The blob.
        what: &'static str,
        /// Size by the manifest.
        size: u64,
        /// Limit.
        limit: u64,
    },
    /// The config is about other bytes than the manifest.
    #[error("its config names the archive {config}, its manifest {manifest}")]
    OtherArchive {
        /// Digest by the config.
        config: Digest,
        /// Digest by the manifest.
        manifest: Digest,
    },
}

impl Manifest {
    /// The manifest of a package.
    #[must_use]
    pub fn of(config: &PackageConfig, config_bytes: &[u8], archive: &[u8], signature: Option<&[u8]>) -> Self {
        let name = format!("{}-{}", config.name.name(), config.version);
        let mut layers = vec![Descriptor::of(ARCHIVE_TYPE, archive, &format!("{name}.tar.gz"))];
        layers.extend(signature.map(|bytes| Descriptor::of(SIGNATURE_TYPE, bytes, &format!("{name}.sig"))));
        let mut annotations = BTreeMap::from([
            (TITLE.to_owned(), config.name.to_string()),
            ("org.opencontainers.image.version".to_owned(), config.version.to_string()),
        ]);
        if let Some(description) = &config.description {
            annotations.insert("org.opencontainers.image.description".to_owned(), description.clone());
        }
        Self {
            schema_version: 2,
            media_type: MANIFEST_TYPE.to_owned(),
            artifact_type: Some(ARTIFACT_TYPE.to_owned()),
            config: Descriptor::of(CONFIG_TYPE, config_bytes, &format!("{name}.json")),
            layers,
            annotations,
        }
    }

    /// Parses a manifest and checks that it is that of a package within the limits.
    ///
    /// # Errors
    /// The manifest is that of something else, or exceeds a limit.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        /// The fields that every manifest has that could be mistaken for that of a package.
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Kind {
            media_type: Option<String>,
            artifact_type: Option<String>,
            config: Option<Config>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Config {
            media_type: String,
        }
        let invalid = |error: serde_json::Error| FormatError::Manifest(error.to_string());
        let kind: Kind = serde_json::from_slice(bytes).map_err(invalid)?;
        let config = kind.config.map(|config| config.media_type);
        let found = kind.artifact_type.or(config).or(kind.media_type).unwrap_or_default();
        if found != ARTIFACT_TYPE {
            let found: String = found.chars().filter(|c| !c.is_control()).take(100).collect();
            return Err(FormatError::OtherArtifact(format!("`{found}`")));
        }
        let manifest: Self = serde_json::from_slice(bytes).map_err(invalid)?;
        let archives = manifest.layers.iter().filter(|layer| layer.media_type == ARCHIVE_TYPE).count();
        if archives != 1 {
            return Err(FormatError::Archives(archives));
        }
        if manifest.signatures().count() > MAX_SIGNATURES {
            return Err(FormatError::Signatures);
        }
        let check = |what, blob: &Descriptor, limit| {
            let size = blob.size;
            if size > limit { Err(FormatError::TooLarge { what, size, limit }) } else { Ok(()) }
        };
        check("config", &manifest.config, MAX_SMALL_BYTES)?;
        manifest.signatures().try_for_each(|blob| check("signature", blob, MAX_SMALL_BYTES))?;
        manifest
            .archive()
            .map_or(Ok(()), |blob| check("archive", blob, crate::content::MAX_ARCHIVE_BYTES))?;
        Ok(manifest)
    }

    /// The archive.
    #[must_use]
    pub fn archive(&self) -> Option<&Descriptor> {
        self.layers.iter().find(|layer| layer.media_type == ARCHIVE_TYPE)
    }

    /// The signatures.
    pub fn signatures(&self) -> impl Iterator<Item = &Descriptor> {
        self.layers.iter().filter(|layer| layer.media_type == SIGNATURE_TYPE)
    }

    /// Parses the config of this manifest.
    ///
    /// # Errors
    /// The config cannot be read, has a newer format, or names another archive.
    pub fn parse_config(&self, bytes: &[u8]) -> Result<PackageConfig, FormatError> {
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let invalid = |error: serde_json::Error| FormatError::Config(error.to_string());
        let Format { format } = serde_json::from_slice(bytes).map_err(invalid)?;
        if format != 1 {
            return Err(FormatError::Newer(format));
        }
        let config: PackageConfig = serde_json::from_slice(bytes).map_err(invalid)?;
        match self.archive() {
            Some(archive) if archive.digest == config.archive => Ok(config),
            Some(archive) => {
                Err(FormatError::OtherArchive { config: config.archive, manifest: archive.digest })
            }
            None => Err(FormatError::Archives(0)),
        }
    }
}
