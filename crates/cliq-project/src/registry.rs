//! The projects of a host, registered in the cliq home, so that a daemon finds the inboxes of all of them.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, read_text, write_atomic};

use crate::Host;

/// The most bytes of a registration: a path.
const LIMIT: u64 = 64 * 1024;

impl Host {
    /// Registers a project in the cliq home. A home that cannot be written is not an error: the project works without it.
    pub(crate) fn register(&self, workspace: &Utf8Path) {
        let Some(dir) = self.registry() else { return };
        let name = uuid::Uuid::new_v5(&uuid::Uuid::NAMESPACE_OID, workspace.as_str().as_bytes());
        let file = dir.join(name.to_string());
        if !file.exists() && fs::create_dir_all(&dir).is_ok() {
            let _ = write_atomic(&file, workspace.as_str().as_bytes());
        }
    }

    /// The registered projects that still exist, in the order of their paths.
    #[must_use]
    pub fn registered_projects(&self) -> Vec<Utf8PathBuf> {
        let entries = self.registry().and_then(|dir| dir.read_dir_utf8().ok()).into_iter().flatten();
        let mut projects: Vec<Utf8PathBuf> = entries
            .filter_map(|entry| Some(Utf8PathBuf::from(read_text(entry.ok()?.path(), LIMIT).ok()?)))
            .filter(|project| project.is_absolute() && project.join(CliqDir::NAME).is_dir())
            .collect();
        projects.sort();
        projects
    }

    fn registry(&self) -> Option<Utf8PathBuf> {
        self.home.as_ref().map(|home| home.join("projects"))
    }
}
