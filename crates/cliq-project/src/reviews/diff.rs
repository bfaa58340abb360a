//! Changes in git repositories that are not committed: staged, unstaged and new files, as one diff against the last commit.

use std::time::Duration;

use camino::Utf8Path;
use cliq_git::{Git, GitError};
use cliq_review::{Diff, fill_in, numstat};

/// Time limit for git.
const PATIENCE: Duration = Duration::from_secs(60);
/// The most bytes of a diff that are read.
const MAX_DIFF: u64 = 32 << 20;
/// The most files that are kept.
const MAX_FILES: usize = 500;

/// The changes in a repository; `None` if nothing changed. `name` is what it is called.
///
/// # Errors
/// git cannot be run, fails or takes too long.
pub(super) fn uncommitted(repo: &Utf8Path, name: &str) -> Result<Option<Diff>, String> {
    let git = Git::new(repo).with_timeout(PATIENCE).with_limit(MAX_DIFF);
    let changes = cliq_git::uncommitted_changes(&git).map_err(|error| message(&error))?;
    let mut files = numstat(&String::from_utf8_lossy(&changes.numstat));
    fill_in(&mut files, &String::from_utf8_lossy(&changes.patch));
    if files.is_empty() {
        return Ok(None);
    }
    let more_files = files.len().saturating_sub(MAX_FILES) as u64;
    files.truncate(MAX_FILES);
    Ok(Some(Diff { repo: name.to_owned(), files, more_files }))
}

/// Message about a failure of git, for the page of a review.
fn message(error: &GitError) -> String {
    match error {
        GitError::Failed { command, output, .. } => {
            format!("git {command}: {}", output.lines().next().unwrap_or("it failed"))
        }
        GitError::TimedOut { seconds, .. } => format!("git did not finish within {seconds} s"),
        error => error.to_string(),
    }
}
