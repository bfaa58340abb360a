//! Teams from git repositories, at a commit.

use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_git::{CloneRequest, Git, GitError, PROGRAM};
use cliq_packages::{GitSource, Origin};
use cliq_protocol::without_credentials;

use crate::{Host, ProjectError};

/// Time limit for `git clone`.
const CLONE_TIMEOUT: Duration = Duration::from_secs(60 * 60);

impl Host {
    /// Copies a repository into a new directory, at a commit or at what the source names. No code of it is executed. Gives the origin.
    pub(crate) fn clone_team(
        &self,
        source: &GitSource,
        commit: Option<&str>,
        into: &Utf8Path,
    ) -> Result<Origin, ProjectError> {
        let program = self.environment.find_program(PROGRAM).ok_or(ProjectError::NoGit)?;
        let git = Git::new(".").with_program(program.clone()).with_timeout(CLONE_TIMEOUT);
        let failed = |error: GitError| {
            let message = match error {
                GitError::TimedOut { seconds, .. } => format!("it took longer than {} min", seconds / 60),
                error => error.output(),
            };
            ProjectError::GitFailed { url: source.url.clone(), message }
        };
        let named = source.reference.as_deref();
        let commit = commit.or(named.filter(|reference| is_commit(reference)));
        let request = CloneRequest {
            url: &source.url,
            into: into.as_std_path(),
            branch: if commit.is_some() { None } else { named },
            is_shallow: commit.is_none(),
            host: None,
        };
        cliq_git::clone(&git, &request).map_err(failed)?;
        let copy = Git::new(into.as_std_path()).with_program(program).with_timeout(CLONE_TIMEOUT);
        if let Some(commit) = commit {
            cliq_git::checkout_detached(&copy, commit).map_err(failed)?;
        }
        Ok(Origin::Git {
            url: without_credentials(&source.url).into_owned(),
            reference: source.reference.clone(),
            commit: copy.text(["rev-parse", "HEAD"]).map_err(failed)?,
        })
    }
}

fn is_commit(reference: &str) -> bool {
    reference.len() == 40 && reference.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// A new temporary directory, and a path in it that does not exist.
pub(crate) fn temporary() -> Result<(tempfile::TempDir, Utf8PathBuf), ProjectError> {
    let temporary = tempfile::tempdir()?;
    let path = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| ProjectError::NotUtf8("the temporary directory".to_owned()))?
        .join("team");
    Ok((temporary, path))
}
