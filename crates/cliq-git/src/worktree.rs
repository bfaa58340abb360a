//! Worktrees, and the branches that they are on.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::{Git, GitError, commit_worktree, populated};

/// Branch of a new worktree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorktreeBranch<'a> {
    /// A branch that exists.
    Existing(&'a str),
    /// A branch that is created, from a commit.
    New {
        /// Name of the branch.
        branch: &'a str,
        /// Commit.
        from: &'a str,
    },
    /// A branch that is created or moved, to a commit.
    Reset {
        /// Name of the branch.
        branch: &'a str,
        /// Commit.
        to: &'a str,
    },
}

/// Makes a worktree. Records of worktrees whose directories are gone are removed first. Hooks run if the git allows them.
///
/// # Errors
/// Returns an error if git or a hook fails.
pub fn add_worktree(git: &Git, path: &Path, branch: WorktreeBranch<'_>) -> Result<(), GitError> {
    prune_worktrees(git)?;
    let path = path.as_os_str();
    let args: Vec<&OsStr> = match branch {
        WorktreeBranch::Existing(branch) => vec![path, branch.as_ref()],
        WorktreeBranch::New { branch, from } => {
            vec!["-b".as_ref(), branch.as_ref(), path, from.as_ref()]
        }
        WorktreeBranch::Reset { branch, to } => vec!["-B".as_ref(), branch.as_ref(), path, to.as_ref()],
    };
    let command: [&OsStr; 3] = ["worktree".as_ref(), "add".as_ref(), "--quiet".as_ref()];
    git.run(command.into_iter().chain(args)).map(drop)
}

/// Makes the files of a worktree those of a commit. Files that are not tracked and not ignored are removed.
///
/// # Errors
/// Returns an error if git fails.
pub fn reset_worktree(git: &Git, commit: &str) -> Result<(), GitError> {
    git.run(["reset", "--quiet", "--hard", commit])?;
    git.run(["clean", "--quiet", "-ffd"]).map(drop)
}

/// Removes the lock of the index of a worktree, which a git that was killed leaves. Only for a worktree in which no git runs.
///
/// # Errors
/// Returns an error if git fails, or the lock cannot be removed.
pub fn remove_index_lock(git: &Git) -> Result<(), GitError> {
    let path = git.text(["rev-parse", "--path-format=absolute", "--git-path", "index.lock"])?;
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(GitError::io("remove", path)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes a worktree with its uncommitted files.
///
/// # Errors
/// Returns an error if git fails.
pub fn remove_worktree(git: &Git, path: &Path) -> Result<(), GitError> {
    let args: [&OsStr; 4] = ["worktree".as_ref(), "remove".as_ref(), "--force".as_ref(), path.as_os_str()];
    git.run(args).map(drop)
}

/// Removes the records of worktrees whose directories are gone.
///
/// # Errors
/// Returns an error if git fails.
pub fn prune_worktrees(git: &Git) -> Result<(), GitError> {
    git.run(["worktree", "prune"]).map(drop)
}

/// Returns the directory that all worktrees of a repository share.
///
/// # Errors
/// Returns an error if the directory is in no repository.
pub fn common_dir(git: &Git) -> Result<PathBuf, GitError> {
    git.text(["rev-parse", "--path-format=absolute", "--git-common-dir"]).map(PathBuf::from)
}

/// Returns whether a branch exists.
#[must_use]
pub fn has_branch(git: &Git, branch: &str) -> bool {
    git.run(["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok()
}

/// Returns the full names of the branches below a path of names.
///
/// # Errors
/// Returns an error if git fails.
pub fn branches_below(git: &Git, path: &str) -> Result<Vec<String>, GitError> {
    let below = format!("refs/heads/{path}");
    let names = git.text(["for-each-ref", "--format=%(refname)", &below])?;
    Ok(names.lines().map(str::to_owned).collect())
}

/// Removes a branch, given by its full name. Its commits stay until git collects them.
///
/// # Errors
/// Returns an error if git fails.
pub fn delete_branch(git: &Git, full_name: &str) -> Result<(), GitError> {
    git.run(["update-ref", "-d", full_name]).map(drop)
}

/// Moves the branch of a worktree forward to another branch. Returns whether that was possible without a merge.
#[must_use]
pub fn fast_forward(git: &Git, branch: &str) -> bool {
    git.run(["merge", "--ff-only", "--quiet", branch]).is_ok()
}

/// Returns whether a merge was begun in the worktree and is not committed.
#[must_use]
pub fn is_merging(git: &Git) -> bool {
    git.run(["rev-parse", "--verify", "--quiet", "MERGE_HEAD"]).is_ok()
}

/// Failure of [`merge_branch`]. The worktree is as it was before.
#[derive(Debug)]
pub struct BranchMergeError {
    /// Paths in conflict, or empty if git failed for another reason.
    pub conflicts: Vec<Vec<u8>>,
    /// Failure of git.
    pub error: GitError,
}

/// Merges a branch into that of the worktree, by a merge commit. A merge that fails is taken back.
///
/// # Errors
/// Returns an error if paths are in conflict or git fails.
pub fn merge_branch(git: &Git, branch: &str, message: &str) -> Result<(), BranchMergeError> {
    let Err(error) = git.run(["merge", "--no-ff", "--quiet", "-m", message, branch]) else { return Ok(()) };
    let unmerged = git.run(["diff", "--name-only", "--diff-filter=U", "-z"]).unwrap_or_default();
    let conflicts = crate::bytes::parts(&unmerged).map(<[u8]>::to_vec).collect();
    let _ = git.run(["merge", "--abort"]);
    Err(BranchMergeError { conflicts, error })
}

/// Commits what is uncommitted on the branch of a worktree, in submodules too. Checks of the repository (`pre-commit`, `commit-msg`) do
/// not run, since an agent may have written them. Other hooks run.
///
/// # Errors
/// Returns an error if git or a hook fails.
pub fn commit_all(git: &Git, message: &str) -> Result<(), GitError> {
    for path in populated(git)? {
        commit_worktree(&git.in_dir(crate::bytes::path_in(git.dir(), &path)), message)?;
    }
    git.run(["add", "--all", "--sparse"])?;
    let (is_clean, _) = git.ask(["diff", "--cached", "--quiet", "--ignore-submodules=none"])?;
    if !is_clean {
        git.clone().with_hooks().run(["commit", "--quiet", "--no-verify", "-m", message])?;
    }
    Ok(())
}

/// Makes a directory a repository whose first commit has all of its files. The author is given as name and mail address.
///
/// # Errors
/// Returns an error if git fails.
pub fn init_with_commit(git: &Git, author: (&str, &str), message: &str) -> Result<(), GitError> {
    let (name, mail) = author;
    git.run(["init", "--quiet"])?;
    git.run(["add", "--all"])?;
    let git = git
        .clone()
        .with_setting(format!("user.name={name}"))
        .with_setting(format!("user.email={mail}"))
        .with_setting("commit.gpgSign=false");
    git.run(["commit", "--quiet", "-m", message]).map(drop)
}
