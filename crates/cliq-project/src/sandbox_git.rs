//! Git directories in sandboxes: programs outside of the sandbox act on some of their files.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};

/// Files and directories of a git directory that name programs, or lead to such.
const ACTIVE: &[&str] = &["hooks", "config", "config.worktree", "info/attributes", "modules", "commondir"];
/// Files of a worktree's directory that lead to others.
const OF_WORKTREE: &[&str] = &["commondir", "gitdir", "config.worktree"];
/// Contents of a `commondir` that changes nothing.
const SAME: &str = ".\n";

/// Paths of a git directory for a sandbox.
#[derive(Debug, Default)]
pub(crate) struct GitPaths {
    /// The directory itself: as a mount of its own it cannot be moved away.
    pub(crate) write: Vec<Utf8PathBuf>,
    /// Paths that may only be read.
    pub(crate) protected: Vec<Utf8PathBuf>,
}

impl GitPaths {
    /// Returns the paths of a workspace, and of a git directory elsewhere of which the workspace is a worktree that may write to it.
    pub(crate) fn of(workspace: &Utf8Path, elsewhere: Option<&Utf8Path>) -> Self {
        let own = workspace.join(".git");
        let mut this = Self::default();
        match own.is_dir() {
            true => this.add(&own, None),
            // The file names the git directory.
            false => this.protected.push(own),
        }
        if let Some(elsewhere) = elsewhere {
            this.add(elsewhere, workspace.file_name());
        }
        this
    }

    /// Adds a git directory. Of its worktrees, only the named one may be written.
    fn add(&mut self, git: &Utf8Path, worktree: Option<&str>) {
        self.write.push(git.to_owned());
        self.protected.extend(ACTIVE.iter().map(|name| git.join(name)));
        let worktrees = git.join("worktrees");
        if let Some(worktree) = worktree.map(|name| worktrees.join(name)).filter(|worktree| worktree.is_dir())
        {
            self.protected.extend(OF_WORKTREE.iter().map(|name| worktree.join(name)));
            self.write.push(worktree);
        }
        self.protected.push(worktrees);
    }
}

/// Time for which the lock of a file is waited for. A process in a sandbox can hold it.
const PATIENCE: Duration = Duration::from_secs(1);

/// Files of a git directory that have to exist in order to be protected: mounts cover existing files only.
///
/// `commondir` would otherwise let a command name another directory with hooks and configuration. Each guard holds a shared lock of the
/// file, and the last guard among all processes removes it.
#[derive(Debug)]
pub(crate) struct GitGuard {
    path: Utf8PathBuf,
    /// The file with its lock, or `None` if another process holds it exclusively. The file then stays.
    file: Option<File>,
}

impl GitGuard {
    /// Makes the files. Does nothing if there is no git directory.
    pub(crate) fn new(git: &Utf8Path) -> Option<Self> {
        if !git.join("HEAD").is_file() {
            return None;
        }
        let _ = fs::create_dir_all(git.join("hooks"));
        let path = git.join("commondir");
        let deadline = Instant::now() + PATIENCE;
        loop {
            if !path.exists() && fs::write(&path, SAME).is_err() {
                return None;
            }
            let (file, _) = cliq_fs::open_regular(&path).ok()?;
            let is_locked = file.try_lock_shared().is_ok();
            // The last guard of another process may have removed the file meanwhile.
            if is_locked && is_at(&file, &path) {
                return Some(Self { path, file: Some(file) });
            }
            if Instant::now() >= deadline {
                return Some(Self { path, file: None });
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for GitGuard {
    fn drop(&mut self) {
        let Some(file) = &self.file else { return };
        // Whoever gets the file exclusively is the last one.
        let is_last = file.unlock().is_ok() && file.try_lock().is_ok() && is_at(file, &self.path);
        if is_last && fs::read_to_string(&self.path).is_ok_and(|text| text == SAME) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether a path still leads to an open file.
fn is_at(file: &File, path: &Utf8Path) -> bool {
    let (Ok(open), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (open.dev(), open.ino()) == (named.dev(), named.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_guard_of_a_repository_removes_the_file() {
        let place = tempfile::tempdir().unwrap();
        let git = Utf8Path::from_path(place.path()).unwrap();
        assert!(GitGuard::new(git).is_none());
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let (first, second) = (GitGuard::new(git).unwrap(), GitGuard::new(git).unwrap());
        drop(first);
        assert!(git.join("commondir").exists());
        drop(second);
        assert!(!git.join("commondir").exists());
        fs::write(git.join("commondir"), "../..\n").unwrap();
        drop(GitGuard::new(git).unwrap());
        assert!(git.join("commondir").exists(), "the file of a worktree stays");
    }
}
