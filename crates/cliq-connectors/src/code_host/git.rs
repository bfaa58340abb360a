//! Properties of a git working directory.

use camino::{Utf8Path, Utf8PathBuf};
use cliq_git::Git;

use super::remote::{Remote, RemoteError};

/// Reason why git does not know it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// git cannot be run.
    #[error("cannot run git: {0}")]
    Spawn(std::io::Error),
    /// The directory is in no repository.
    #[error("{0} is in no git repository")]
    NoRepository(Utf8PathBuf),
    /// No branch is checked out.
    #[error("no branch is checked out: `git switch BRANCH` chooses one")]
    NoBranch,
    /// The remote does not exist.
    #[error("there is no remote `{0}`: `git remote add {0} URL` adds it")]
    NoRemote(String),
    /// The remote does not belong to a code host.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// A working directory of git.
#[derive(Debug, Clone)]
pub struct Repository {
    git: Git,
}

impl Repository {
    /// The repository that a directory is in.
    ///
    /// # Errors
    /// Returns an error if the directory is not inside a repository, or git cannot be run.
    pub fn open(dir: &Utf8Path) -> Result<Self, GitError> {
        let git = Git::new(dir);
        match cliq_git::is_repository(&git).map_err(unusable)? {
            true => Ok(Self { git }),
            false => Err(GitError::NoRepository(dir.to_owned())),
        }
    }

    /// The branch that is checked out.
    ///
    /// # Errors
    /// There is none.
    pub fn branch(&self) -> Result<String, GitError> {
        cliq_git::current_branch(&self.git).map_err(unusable)?.ok_or(GitError::NoBranch)
    }

    /// The address of a remote, as it is written in the configuration; where that is none of a code host, as git rewrites it
    /// (`insteadOf`): one may lead to a mirror, the other be a short form.
    ///
    /// # Errors
    /// No remote has this name, or the remote does not belong to a code host.
    pub fn remote(&self, name: &str) -> Result<Remote, GitError> {
        let written = cliq_git::written_address(&self.git, name).map_err(unusable)?;
        if let Some(remote) = written.and_then(|address| Remote::parse(&address).ok()) {
            return Ok(remote);
        }
        let address = cliq_git::rewritten_address(&self.git, name).map_err(unusable)?;
        Ok(Remote::parse(&address.ok_or_else(|| GitError::NoRemote(name.to_owned()))?)?)
    }

    /// The branch that a remote begins with: as git knows it from cloning, else as the remote says.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn default_branch(&self, remote: &str) -> Result<Option<String>, GitError> {
        cliq_git::default_branch(&self.git, remote).map_err(unusable)
    }

    /// Whether a remote has a branch.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn is_pushed(&self, remote: &str, branch: &str) -> Result<bool, GitError> {
        cliq_git::has_remote_branch(&self.git, remote, branch).map_err(unusable)
    }

    /// Subject and text of the last commit.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn last_commit(&self) -> Result<(String, String), GitError> {
        cliq_git::last_message(&self.git).map_err(unusable)
    }
}

fn unusable(error: cliq_git::GitError) -> GitError {
    GitError::Spawn(std::io::Error::other(error))
}
