//! Failures of git.

use std::io;
use std::path::PathBuf;

/// Failure of a call of git, or of the files around it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    /// The program is not installed.
    #[error("cannot run git: the program is not on PATH; install git 2.38 or newer")]
    NotFound,
    /// The program cannot be started.
    #[error("cannot run git: {0}")]
    Start(io::Error),
    /// Git ended with another status than success.
    #[error("git {command} failed: {}", reason(output))]
    Failed {
        /// Name of the subcommand.
        command: String,
        /// Exit status, or `None` if a signal ended git.
        status: Option<i32>,
        /// The end of what git printed.
        output: String,
    },
    /// A hook of the repository failed, and git with it. This is no conflict.
    #[error("the hook {hook} failed in git {command}: {}", if output.is_empty() { "it printed nothing" } else { output })]
    Hook {
        /// Name of the subcommand.
        command: String,
        /// Name of the hook.
        hook: String,
        /// The end of what git and the hook printed.
        output: String,
    },
    /// Git did not end in time. It was killed.
    #[error("git {command} did not end within {seconds} s")]
    TimedOut {
        /// Name of the subcommand.
        command: String,
        /// The deadline, in seconds.
        seconds: u64,
    },
    /// The output exceeds its limit.
    #[error("git {command} printed more than {limit} bytes")]
    TooLarge {
        /// Name of the subcommand.
        command: String,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A file beside git's own cannot be used.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The action, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// Another process holds the lock of the repository.
    #[error("cannot change the repository {}: another cliq has been changing it for {seconds} s", path.display())]
    Locked {
        /// Directory of the repository.
        path: PathBuf,
        /// Time waited, in seconds.
        seconds: u64,
    },
    /// A change within a submodule or a repository of a worktree has no place in the workspace.
    #[error("cannot carry {path} back: {reason}")]
    NotCarried {
        /// Path of the submodule or the repository.
        path: String,
        /// Reason with a hint.
        reason: String,
    },
}

impl GitError {
    /// Returns a mapper of I/O errors.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// The end of what git printed, or the whole message if git printed nothing.
    #[must_use]
    pub fn output(&self) -> String {
        match self {
            Self::Failed { output, .. } | Self::Hook { output, .. } if !output.is_empty() => output.clone(),
            _ => self.to_string(),
        }
    }
}

/// Line of an output that states the reason: the last error, else the last line that is no hint.
fn reason(output: &str) -> &str {
    let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty()).rev();
    let is_error = |line: &&str| line.starts_with("fatal: ") || line.starts_with("error: ");
    lines()
        .find(is_error)
        .or_else(|| lines().find(|line| !line.starts_with("hint:")))
        .unwrap_or("git printed no reason")
}
