//! Ignored files that a worktree gets, as `.worktreeinclude` names them.

use std::fs;
use std::path::Path;

use crate::bytes::{parts, path_in, terminated};
use crate::{Git, GitError};

/// Name of the file, at the top of the repository. It has the syntax of `.gitignore`.
const FILE: &str = ".worktreeinclude";

/// Copies the ignored files of a workspace that its `.worktreeinclude` names into a worktree, with modes. Symbolic links are copied as
/// links. Nothing is written outside of the worktree, and files of repositories inside the workspace are not copied.
///
/// # Errors
/// Returns an error if git fails or a file cannot be copied.
pub fn copy_included(workspace: &Git, worktree: &Path) -> Result<(), GitError> {
    let patterns = workspace.dir().join(FILE);
    if !fs::symlink_metadata(&patterns).is_ok_and(|kind| kind.is_file()) {
        return Ok(());
    }
    let named = workspace.run([
        "ls-files",
        "-z",
        "--others",
        "--ignored",
        &format!("--exclude-from={FILE}"),
        "--",
        ".",
        ":(exclude,top,literal).cliq",
        ":(exclude,top,literal).worktrees",
    ])?;
    // Repositories inside end with a slash.
    let named = terminated(parts(&named).filter(|path| !path.ends_with(b"/")));
    if named.is_empty() {
        return Ok(());
    }
    // Files that are not ignored are a part of the worktree, or of no concern to it.
    let ignored = match workspace.run_with(["check-ignore", "-z", "--stdin"], &named) {
        Err(GitError::Failed { status: Some(1), .. }) => return Ok(()),
        other => other?,
    };
    for name in parts(&ignored) {
        let (from, to) = (path_in(workspace.dir(), name), path_in(worktree, name));
        if has_real_parents(worktree, &to) {
            copy(&from, &to).map_err(GitError::io("copy", from))?;
        }
    }
    Ok(())
}

/// Whether no directory between a worktree and a file is a symbolic link or a file.
fn has_real_parents(worktree: &Path, file: &Path) -> bool {
    let between = file.ancestors().skip(1).take_while(|dir| *dir != worktree);
    between.filter_map(|dir| fs::symlink_metadata(dir).ok()).all(|kind| kind.is_dir())
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    let kind = fs::symlink_metadata(from)?;
    if !kind.is_file() && !kind.is_symlink() {
        return Ok(());
    }
    if let Some(parent) = to.parent() {
        fs::create_dir_all(parent)?;
    }
    if let Ok(old) = fs::symlink_metadata(to) {
        // The worktree has a directory of this name: it is the item's own.
        if old.is_dir() {
            return Ok(());
        }
        fs::remove_file(to)?;
    }
    if kind.is_symlink() {
        std::os::unix::fs::symlink(fs::read_link(from)?, to)
    } else {
        fs::copy(from, to).map(drop)
    }
}
