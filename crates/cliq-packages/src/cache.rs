//! The cache of packages in the cliq home: files and small blobs by their digests, and the manifest of each version that was seen.

use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{FsError, IoContext, read_if_exists, write_atomic};
use semver::Version;

use crate::content::{Content, ContentError};
use crate::format::MAX_SMALL_BYTES;
use crate::{Digest, Repository};

/// The cache below a directory (docs/packages.md, "The cache"). All of it can be removed at any time, but for the manifests of versions, by which a moved
/// tag is noticed.
#[derive(Debug, Clone)]
pub struct Cache {
    root: Utf8PathBuf,
}

impl Cache {
    /// The cache of a cliq home.
    #[must_use]
    pub fn in_home(home: &Utf8Path) -> Self {
        Self { root: home.join("packages") }
    }

    fn content_dir(&self, digest: Digest) -> Utf8PathBuf {
        self.root.join("contents").join(digest.hex())
    }

    /// The folder with files of this digest. Files that were edited there do not count, and are removed.
    #[must_use]
    pub fn content(&self, digest: Digest) -> Option<Utf8PathBuf> {
        let dir = self.content_dir(digest);
        if !dir.is_dir() {
            return None;
        }
        if Content::read(&dir).is_ok_and(|content| content.digest() == digest) {
            return Some(dir);
        }
        let _ = fs::remove_dir_all(&dir);
        None
    }

    /// Keeps files. Gives their folder.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn keep_content(&self, content: &Content) -> Result<Utf8PathBuf, ContentError> {
        let digest = content.digest();
        if let Some(dir) = self.content(digest) {
            return Ok(dir);
        }
        let dir = self.content_dir(digest);
        let parent = self.root.join("contents");
        fs::create_dir_all(&parent).at("create", &parent)?;
        let staging = tempfile::Builder::new().prefix(".tmp-").tempdir_in(&parent).at("create", &parent)?;
        let staged = Utf8Path::from_path(staging.path()).unwrap_or(&parent).join("team");
        content.write(&staged)?;
        // Another process may have been first.
        match fs::rename(&staged, &dir) {
            Err(_) if dir.is_dir() => {}
            renamed => renamed.at("create", &dir)?,
        }
        Ok(dir)
    }

    fn blob_file(&self, digest: Digest) -> Utf8PathBuf {
        self.root.join("blobs").join(digest.hex())
    }

    /// A small blob with this digest.
    #[must_use]
    pub fn blob(&self, digest: Digest) -> Option<Vec<u8>> {
        let bytes = read_if_exists(&self.blob_file(digest), MAX_SMALL_BYTES).ok().flatten()?;
        (Digest::of(&bytes) == digest).then_some(bytes)
    }

    /// Keeps a small blob.
    ///
    /// # Errors
    /// The blob cannot be written.
    pub fn keep_blob(&self, bytes: &[u8]) -> Result<(), FsError> {
        let file = self.blob_file(Digest::of(bytes));
        if file.exists() {
            return Ok(());
        }
        let dir = self.root.join("blobs");
        fs::create_dir_all(&dir).at("create", &dir)?;
        write_atomic(&file, bytes)
    }

    fn version_file(&self, repository: &Repository, version: &Version) -> Utf8PathBuf {
        let repository = Digest::of(repository.to_string().as_bytes()).hex();
        self.root.join("versions").join(repository).join(version.to_string())
    }

    /// Returns the manifest that a version had when it was first seen, or `None` if it was not.
    ///
    /// # Errors
    /// The file cannot be read or has no digest: whether the version moved is unknown then.
    pub fn known(&self, repository: &Repository, version: &Version) -> Result<Option<Digest>, FsError> {
        let file = self.version_file(repository, version);
        let Some(bytes) = read_if_exists(&file, 1024)? else { return Ok(None) };
        let digest = String::from_utf8_lossy(&bytes).trim().parse();
        let damaged =
            |error: crate::DigestError| io::Error::new(io::ErrorKind::InvalidData, error.to_string());
        digest.map(Some).map_err(damaged).at("read", &file)
    }

    /// Remembers the manifest of a version.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn remember(
        &self,
        repository: &Repository,
        version: &Version,
        manifest: Digest,
    ) -> Result<(), FsError> {
        let file = self.version_file(repository, version);
        if file.exists() {
            return Ok(());
        }
        let dir = file.parent().unwrap_or(&self.root);
        fs::create_dir_all(dir).at("create", dir)?;
        write_atomic(&file, format!("{manifest}\n").as_bytes())
    }
}
