//! Lock of a repository for commands of git that write.

use std::fs::{File, TryLockError};
use std::time::{Duration, Instant};

use crate::{Git, GitError, common_dir};

/// Time for which a held lock is waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Exclusive right to change a repository with all its worktrees, among the processes and threads of cliq. Git locks single files only.
/// The lock is released when this is dropped or the process ends.
#[derive(Debug)]
pub struct RepositoryLock {
    _file: File,
}

impl RepositoryLock {
    /// Takes the lock of the repository in which git runs. Waits two minutes at most.
    ///
    /// # Errors
    /// Returns an error if the directory is in no repository, the lock file cannot be opened, or another holds the lock.
    pub fn acquire(git: &Git) -> Result<Self, GitError> {
        // One file for all worktrees, and for all paths that lead to the repository.
        let common = common_dir(git)?;
        let path = common.canonicalize().map_err(GitError::io("find", &common))?.join("cliq.lock");
        let open = File::options().create(true).truncate(false).write(true).open(&path);
        let file = open.map_err(GitError::io("open", &path))?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                Err(TryLockError::WouldBlock) => {
                    return Err(GitError::Locked { path, seconds: PATIENCE.as_secs() });
                }
                Err(TryLockError::Error(source)) => {
                    return Err(GitError::Io { action: "lock", path, source });
                }
            }
        }
    }
}
