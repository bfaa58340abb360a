//! Facts about a working directory and its remotes. Questions that git answers with a failure have no answer.

use crate::{Git, GitError};

/// Returns whether the directory is inside a repository.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn is_repository(git: &Git) -> Result<bool, GitError> {
    optional(git, &["rev-parse", "--git-dir"]).map(|dir| dir.is_some())
}

/// Returns the branch that is checked out, or `None` if there is none.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn current_branch(git: &Git) -> Result<Option<String>, GitError> {
    optional(git, &["symbolic-ref", "--quiet", "--short", "HEAD"])
}

/// Returns the address to push to, as it is written in the configuration.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn written_address(git: &Git, remote: &str) -> Result<Option<String>, GitError> {
    let configured = |key: &str| optional(git, &["config", "--get", &format!("remote.{remote}.{key}")]);
    match configured("pushurl")? {
        Some(address) => Ok(Some(address)),
        None => configured("url"),
    }
}

/// Returns the address to push to, as git rewrites it (`insteadOf`).
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn rewritten_address(git: &Git, remote: &str) -> Result<Option<String>, GitError> {
    optional(git, &["remote", "get-url", "--push", "--", remote])
}

/// Returns the default branch of a remote: as git knows it from cloning, else as the remote reports it.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn default_branch(git: &Git, remote: &str) -> Result<Option<String>, GitError> {
    let head = format!("refs/remotes/{remote}/HEAD");
    let known = optional(git, &["symbolic-ref", "--quiet", "--short", &head])?;
    let prefix = format!("{remote}/");
    if let Some(branch) = known.as_deref().and_then(|name| name.strip_prefix(&prefix)) {
        return Ok(Some(branch.to_owned()));
    }
    let reported = optional(git, &["ls-remote", "--symref", "--", remote, "HEAD"])?.unwrap_or_default();
    let branch =
        reported.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.split_whitespace().next());
    Ok(branch.map(str::to_owned))
}

/// Returns whether a remote has a branch.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn has_remote_branch(git: &Git, remote: &str, branch: &str) -> Result<bool, GitError> {
    let name = format!("refs/heads/{branch}");
    optional(git, &["ls-remote", "--heads", "--", remote, &name]).map(|found| found.is_some())
}

/// Returns the message of the last commit: its subject, then its text. Empty if there is no commit.
///
/// # Errors
/// Returns an error if git cannot be run.
pub fn last_message(git: &Git) -> Result<(String, String), GitError> {
    let text = optional(git, &["log", "-1", "--format=%s%n%b"])?.unwrap_or_default();
    let (subject, body) = text.split_once('\n').unwrap_or((&text, ""));
    Ok((subject.to_owned(), body.trim().to_owned()))
}

/// Runs git and returns its output without white space at the end, or `None` if git fails or prints nothing.
fn optional(git: &Git, args: &[&str]) -> Result<Option<String>, GitError> {
    let output = match git.run(args) {
        Ok(output) => output,
        Err(GitError::Failed { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&output).trim_end().to_owned();
    Ok((!text.is_empty()).then_some(text))
}
