//! Properties of a git working directory.

use camino::{Utf8Path, Utf8PathBuf};

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
    dir: Utf8PathBuf,
}

impl Repository {
    /// The repository that a directory is in.
    ///
    /// # Errors
    /// Returns an error if the directory is not inside a repository, or git cannot be run.
    pub fn open(dir: &Utf8Path) -> Result<Self, GitError> {
        let this = Self { dir: dir.to_owned() };
        this.ask(&["rev-parse", "--git-dir"])?.ok_or_else(|| GitError::NoRepository(dir.to_owned()))?;
        Ok(this)
    }

    /// The branch that is checked out.
    ///
    /// # Errors
    /// There is none.
    pub fn branch(&self) -> Result<String, GitError> {
        self.ask(&["symbolic-ref", "--quiet", "--short", "HEAD"])?.ok_or(GitError::NoBranch)
    }

    /// The address of a remote, as it is written in the configuration; where that is none of a code host, as git rewrites it
    /// (`insteadOf`): one may lead to a mirror, the other be a short form.
    ///
    /// # Errors
    /// No remote has this name, or the remote does not belong to a code host.
    pub fn remote(&self, name: &str) -> Result<Remote, GitError> {
        let configured = |key: &str| self.ask(&["config", "--get", &format!("remote.{name}.{key}")]);
        let written = match configured("pushurl")? {
            Some(address) => Some(address),
            None => configured("url")?,
        };
        if let Some(remote) = written.and_then(|address| Remote::parse(&address).ok()) {
            return Ok(remote);
        }
        let address = self.ask(&["remote", "get-url", "--push", "--", name])?;
        Ok(Remote::parse(&address.ok_or_else(|| GitError::NoRemote(name.to_owned()))?)?)
    }

    /// The branch that a remote begins with: as git knows it from cloning, else as the remote says.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn default_branch(&self, remote: &str) -> Result<Option<String>, GitError> {
        let found =
            self.ask(&["symbolic-ref", "--quiet", "--short", &format!("refs/remotes/{remote}/HEAD")])?;
        if let Some(branch) =
            found.and_then(|name| name.strip_prefix(&format!("{remote}/")).map(str::to_owned))
        {
            return Ok(Some(branch));
        }
        let said = self.ask(&["ls-remote", "--symref", "--", remote, "HEAD"])?.unwrap_or_default();
        let reference =
            said.lines().find_map(|line| line.strip_prefix("ref: refs/heads/")?.split_whitespace().next());
        Ok(reference.map(str::to_owned))
    }

    /// Whether a remote has a branch.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn is_pushed(&self, remote: &str, branch: &str) -> Result<bool, GitError> {
        Ok(self.ask(&["ls-remote", "--heads", "--", remote, &format!("refs/heads/{branch}")])?.is_some())
    }

    /// Subject and text of the last commit.
    ///
    /// # Errors
    /// git cannot be run.
    pub fn last_commit(&self) -> Result<(String, String), GitError> {
        let text = self.ask(&["log", "-1", "--format=%s%n%b"])?.unwrap_or_default();
        let (subject, body) = text.split_once('\n').unwrap_or((&text, ""));
        Ok((subject.to_owned(), body.trim().to_owned()))
    }

    /// Runs git and returns its output, or `None` if git fails.
    fn ask(&self, arguments: &[&str]) -> Result<Option<String>, GitError> {
        let output = match cliq_git::Git::new(&self.dir).run(arguments) {
            Ok(output) => output,
            Err(cliq_git::GitError::Failed { .. }) => return Ok(None),
            Err(error) => return Err(GitError::Spawn(std::io::Error::other(error))),
        };
        let text = String::from_utf8_lossy(&output).trim_end().to_owned();
        Ok((!text.is_empty()).then_some(text))
    }
}
