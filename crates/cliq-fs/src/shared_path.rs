//! Paths of the host that a container sees.

use camino::Utf8PathBuf;

/// A file or directory of the host that a container, or the Job of a cluster, sees at the same path (docs/docker.md).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedPath {
    /// Path on the host and in the container.
    pub path: Utf8PathBuf,
    /// Whether the container may write to it.
    pub writable: bool,
}
