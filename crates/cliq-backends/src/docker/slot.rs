//! The bound on containers at a time: who comes first begins first.
//!
//! Each process that needs a container keeps a locked file in a directory. The lock is released when the process ends, also by a kill, so a
//! dead process blocks no other.

use std::fs::{self, File, TryLockError};

use camino::{Utf8Path, Utf8PathBuf};
use cliq_protocol::RunId;

use super::DockerError;

/// A place in the order, kept until this is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Slot {
    path: Utf8PathBuf,
    _file: File,
}

impl Slot {
    /// Takes the last place. `now` is the time in microseconds.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub(super) fn take(dir: &Utf8Path, run_id: &RunId, now: u64) -> Result<Self, DockerError> {
        let failed = |path: &Utf8Path| {
            let path = path.to_owned();
            move |error| DockerError::File { path, error }
        };
        fs::create_dir_all(dir).map_err(failed(dir))?;
        let path = dir.join(format!("{now:020}.{run_id}"));
        // Locked before it has its name: one that is not locked is a dead one's.
        let new = dir.join(format!(".{}.{run_id}", std::process::id()));
        let file =
            File::options().create(true).truncate(true).write(true).open(&new).map_err(failed(&new))?;
        file.lock().map_err(failed(&new))?;
        fs::rename(&new, &path).map_err(failed(&path))?;
        Ok(Self { path, _file: file })
    }

    /// Returns the number of runs before this one. Removes the files of dead processes.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn ahead(&self) -> Result<usize, DockerError> {
        let dir = self.path.parent().unwrap_or(&self.path);
        let own = self.path.file_name().unwrap_or_default();
        Ok(living(dir)?.iter().filter(|name| name.as_str() < own).count())
    }

    /// Whether a process that lives has a place for a run.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub(super) fn is_taken(dir: &Utf8Path, run_id: &RunId) -> Result<bool, DockerError> {
        Ok(living(dir)?.iter().any(|name| name.split_once('.').is_some_and(|(_, run)| *run_id == run)))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The names of the files that are locked.
fn living(dir: &Utf8Path) -> Result<Vec<String>, DockerError> {
    let entries = match dir.read_dir_utf8() {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(DockerError::File { path: dir.to_owned(), error }),
    };
    let mut names = Vec::new();
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name();
        if name.starts_with('.') {
            continue;
        }
        // One that goes in this moment is a dead one's.
        let Ok(file) = File::open(entry.path()) else { continue };
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => names.push(name.to_owned()),
            Ok(()) => drop(fs::remove_file(entry.path())),
            Err(TryLockError::Error(error)) => {
                return Err(DockerError::File { path: entry.path().to_owned(), error });
            }
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_first_come_first_served_and_skip_dead_holders() {
        let dir = tempfile::tempdir().expect("a directory");
        let dir = Utf8Path::from_path(dir.path()).expect("UTF-8").join("places");
        let id = |run: &str| RunId::parse(run).expect("an id");
        let place = |run: &str, now| Slot::take(&dir, &id(run), now).expect("a place");
        let (first, second, third) = (place("a", 1), place("b", 2), place("c", 10));
        let ahead = |place: &Slot| place.ahead().expect("counted");
        assert_eq!((ahead(&first), ahead(&second), ahead(&third)), (0, 1, 2));
        assert!(
            Slot::is_taken(&dir, &id("a")).expect("known") && !Slot::is_taken(&dir, &id("x")).expect("known")
        );
        drop(first);
        assert_eq!((ahead(&second), ahead(&third)), (0, 1));
        // A file that nobody has locked.
        fs::write(dir.join("00000000000000000001.dead"), "").expect("written");
        assert_eq!(ahead(&third), 1);
        assert!(!dir.join("00000000000000000001.dead").exists());
    }
}
