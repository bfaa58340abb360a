//! Notification of changes of signal files.

use camino::{Utf8Path, Utf8PathBuf};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use crate::atomic::TEMPORARY;

/// Watches one directory for as long as it lives.
///
/// A notification is a hint: it may come twice, late, or not at all (network file systems). A subscriber looks at the
/// file itself, and also reads it at intervals without a notification.
#[derive(Debug)]
pub struct SignalWatch {
    _watcher: RecommendedWatcher,
}

impl SignalWatch {
    /// Calls `changed` from a thread of its own with each file of `dir` that was created, written or renamed into
    /// place; with `None` when events were lost and anything may have changed.
    ///
    /// # Errors
    /// The system cannot watch the directory, in its own words. Polling then has to do.
    pub fn new(
        dir: &Utf8Path,
        changed: impl Fn(Option<Utf8PathBuf>) + Send + 'static,
    ) -> Result<Self, notify::Error> {
        let mut watcher = watcher(changed)?;
        watcher.watch(dir.as_std_path(), RecursiveMode::NonRecursive)?;
        Ok(Self { _watcher: watcher })
    }
}

fn watcher(
    changed: impl Fn(Option<Utf8PathBuf>) + Send + 'static,
) -> Result<RecommendedWatcher, notify::Error> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
        Ok(event) if event.need_rescan() => changed(None),
        Ok(event) if matters(event.kind) => {
            for path in event.paths {
                match Utf8PathBuf::from_path_buf(path) {
                    Ok(path) if !path.file_name().is_some_and(|name| name.starts_with(TEMPORARY)) => {
                        changed(Some(path));
                    }
                    _ => {}
                }
            }
        }
        Ok(_) => {}
        Err(_) => changed(None),
    })
}

/// Opening and reading a file changes nothing; our own reads must not wake us.
fn matters(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Remove(_) => false,
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Other => true,
    }
}
