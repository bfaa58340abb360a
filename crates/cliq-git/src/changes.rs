//! Changes of a working tree that are not committed.

use std::path::{Path, PathBuf};

use crate::{Git, GitError};

/// Uncommitted changes: staged, unstaged and new files against the last commit, without the directory `.cliq`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncommittedChanges {
    /// Files with numbers of lines, as `git diff --numstat -z` prints them.
    pub numstat: Vec<u8>,
    /// Patch with the same files in the same order. Cut at the limit of the output.
    pub patch: Vec<u8>,
}

/// Returns the uncommitted changes of a repository. Its index is only copied. The configuration of the repository runs no program to
/// show them.
///
/// # Errors
/// Returns an error if git fails.
pub fn uncommitted_changes(git: &Git) -> Result<UncommittedChanges, GitError> {
    let git = ["diff.external=", "diff.noprefix=false", "core.pager=cat"]
        .into_iter()
        .fold(git.clone(), Git::with_setting)
        .with_env("GIT_OPTIONAL_LOCKS", "0");
    // A copy of the index, in which new files count.
    let scratch = tempfile::tempdir().map_err(GitError::io("create", "a directory"))?;
    let index = scratch.path().join("index");
    let own = git.dir().join(git.text(["rev-parse", "--git-path", "index"])?);
    if own.exists() {
        std::fs::copy(&own, &index).map_err(GitError::io("copy", &own))?;
    }
    let indexed = git.with_index(&index);
    let within = ["--", ".", ":(exclude).cliq"];
    indexed.run([&["add", "--intent-to-add", "--ignore-errors"], &within[..]].concat())?;
    let base = match git.text(["rev-parse", "--verify", "--quiet", "HEAD"]) {
        Ok(head) => head,
        // Nothing is committed yet: all is new.
        Err(_) => git.text(["hash-object", "-t", "tree", "/dev/null"])?,
    };
    let diff = [
        "diff",
        "--no-color",
        "--no-ext-diff",
        "--no-textconv",
        "--find-renames",
        "--src-prefix=a/",
        "--dst-prefix=b/",
    ];
    let numstat = indexed.run_cut([&diff[..], &["--numstat", "-z", &base], &within[..]].concat())?;
    let patch = indexed.run_cut([&diff[..], &["--patch", "--unified=3", &base], &within[..]].concat())?;
    Ok(UncommittedChanges { numstat, patch })
}

/// Returns the unmerged path that comes first, or `None` if nothing is in conflict.
///
/// # Errors
/// Returns an error if git fails.
pub fn first_unmerged(git: &Git) -> Result<Option<Vec<u8>>, GitError> {
    let unmerged = git.run(["ls-files", "--unmerged", "-z"])?;
    let first = crate::bytes::parts(&unmerged).next();
    Ok(first.map(|entry| entry.splitn(2, |byte| *byte == b'\t').nth(1).unwrap_or_default().to_vec()))
}

/// Returns whether the rules of the repository ignore a file. A file that git tracks is not ignored.
///
/// # Errors
/// Returns an error if git is not installed, or the directory is in no repository.
pub fn is_ignored(git: &Git, file: &Path) -> Result<bool, GitError> {
    let args: [PathBuf; 4] = ["check-ignore".into(), "--quiet".into(), "--".into(), file.into()];
    git.ask(args).map(|(is_ignored, _)| is_ignored)
}
