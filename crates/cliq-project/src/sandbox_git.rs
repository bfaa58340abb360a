//! Git directories in sandboxes: programs outside of the sandbox act on some of their files.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Mutex, PoisonError};

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

/// Users of the files that [`GitGuard`] made, by git directory.
static GUARDED: Mutex<BTreeMap<Utf8PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// Files of a git directory that have to exist in order to be protected: mounts cover existing files only.
///
/// `commondir` would otherwise let a command name another directory with hooks and configuration, and is removed when the last guard of this
/// process is dropped.
#[derive(Debug)]
pub(crate) struct GitGuard {
    git: Utf8PathBuf,
}

impl GitGuard {
    /// Makes the files. Does nothing if there is no git directory.
    pub(crate) fn new(git: &Utf8Path) -> Option<Self> {
        if !git.join("HEAD").is_file() {
            return None;
        }
        let mut guarded = GUARDED.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = fs::create_dir_all(git.join("hooks"));
        let file = git.join("commondir");
        if !file.exists() && fs::write(&file, SAME).is_err() {
            return None;
        }
        *guarded.entry(git.to_owned()).or_default() += 1;
        Some(Self { git: git.to_owned() })
    }
}

impl Drop for GitGuard {
    fn drop(&mut self) {
        let mut guarded = GUARDED.lock().unwrap_or_else(PoisonError::into_inner);
        let users = guarded.get_mut(&self.git).map(|users| {
            *users -= 1;
            *users
        });
        if users != Some(0) {
            return;
        }
        guarded.remove(&self.git);
        let file = self.git.join("commondir");
        if fs::read_to_string(&file).is_ok_and(|text| text == SAME) {
            let _ = fs::remove_file(file);
        }
    }
}
