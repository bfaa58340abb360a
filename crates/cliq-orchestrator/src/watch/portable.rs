//! By what the system has, with a thread for each directory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::SignalWatch;

/// Watches any number of directories for as long as it lives.
///
/// A notification is a hint: it may come twice, late, or not at all (network file systems). A subscriber looks at the
/// file itself, and also reads it at intervals without a notification.
pub struct DirectoryWatch {
    changed: Arc<dyn Fn(Option<&Utf8Path>) + Send + Sync>,
    dirs: Mutex<HashMap<Utf8PathBuf, SignalWatch>>,
}

impl std::fmt::Debug for DirectoryWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectoryWatch").field("dirs", &self.dirs).finish_non_exhaustive()
    }
}

impl DirectoryWatch {
    /// Calls `changed` with each file of a watched directory that was created, written or renamed into place; with `None`
    /// when events were lost and anything may have changed.
    ///
    /// # Errors
    /// None here; on Linux the system may have no more watches.
    pub fn new(changed: impl Fn(Option<&Utf8Path>) + Send + Sync + 'static) -> io::Result<Self> {
        Ok(Self { changed: Arc::new(changed), dirs: Mutex::default() })
    }

    /// Watches a directory too.
    ///
    /// # Errors
    /// The system cannot watch it, in its own words. Polling then has to do.
    pub fn add(&self, dir: &Utf8Path) -> io::Result<()> {
        let changed = Arc::clone(&self.changed);
        let watch = SignalWatch::new(dir, move |file| changed(file.as_deref())).map_err(io::Error::other)?;
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner).insert(dir.to_owned(), watch);
        Ok(())
    }

    /// Watches a directory no more.
    pub fn remove(&self, dir: &Utf8Path) {
        self.dirs.lock().unwrap_or_else(PoisonError::into_inner).remove(dir);
    }
}
