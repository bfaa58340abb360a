//! Errors of files, with the path and the deed.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};

use crate::read::LeavesRoot;

/// Something could not be done to a file or directory.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {path}: {source}")]
pub struct FsError {
    /// Attempted action: `read`, `write`, `create`, …
    pub action: &'static str,
    /// To which file or directory.
    pub path: Utf8PathBuf,
    /// Error of the system.
    pub source: io::Error,
}

impl FsError {
    /// Whether the file or directory was not there.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }

    /// Whether the file is a link that leads out of the directory in which it belongs.
    #[must_use]
    pub fn leaves_root(&self) -> bool {
        self.source.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<LeavesRoot>)
    }
}

/// Adds path and deed to an `io::Error`.
pub trait IoContext<T> {
    /// `what` was being done to `path`.
    ///
    /// # Errors
    /// The error, with its context.
    fn at(self, action: &'static str, path: &Utf8Path) -> Result<T, FsError>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &Utf8Path) -> Result<T, FsError> {
        self.map_err(|source| FsError { action, path: path.to_owned(), source })
    }
}
