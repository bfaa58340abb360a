//! Teams as packages (docs/packages.md): where they come from, which version is meant, whose they are, and what a project has locked.
//!
//! A [`Source`] is a folder, a git repository, a registry or a name. [`Content`] holds the files of a team: read from a folder, packed into an archive and unpacked with
//! limits. `Packages` (feature `registry`) fetches packages from registries by the OCI distribution protocol and publishes them; each is
//! checked against its digests, its name and version, the signers that the settings trust, and the manifest that the version had before.
//! A [`Lock`] names what a project uses.

mod archive;
mod cache;
mod content;
#[cfg(feature = "registry")]
mod credentials;
mod digest;
mod digests;
mod format;
mod lock;
#[cfg(feature = "registry")]
mod packages;
mod range;
#[cfg(feature = "registry")]
mod registry;
mod signature;
mod source;

pub use cache::Cache;
pub use content::{Content, ContentError, File, MAX_ARCHIVE_BYTES, MAX_BYTES, MAX_FILES};
#[cfg(feature = "registry")]
pub use credentials::Credentials;
pub use digest::{Digest, DigestError};
pub use digests::FileDigests;
pub use format::{
    ARCHIVE_TYPE, ARTIFACT_TYPE, CONFIG_TYPE, Descriptor, FormatError, Manifest, PackageConfig,
    SIGNATURE_TYPE,
};
pub use lock::{Lock, LockError, LockedTeam, Origin};
#[cfg(feature = "registry")]
pub use packages::{FoundPackage, Package, PackageError, Packages, Signature};
pub use range::{Part, Range, RangeError};
#[cfg(feature = "registry")]
pub use registry::{Registry, RegistryError};
pub use signature::{NAMESPACE, PROGRAM, SignatureError, Signer, SshKeygen};
pub use source::{GitSource, NamedSource, Pick, Repository, Source, SourceError};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
