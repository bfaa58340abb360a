//! Errors of backends.

use cliq_fs::{FsError, LockError};
use cliq_project::ProjectError;

const RESUME: &str = "`cliq run --resume` goes on where it stopped";

/// Reason why a run could not be started, or ended without its own doing.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BackendError {
    /// The project cannot be used.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FsError),
    /// Another run of the project is active.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The container engine failed.
    #[cfg(feature = "docker")]
    #[error(transparent)]
    Docker(#[from] crate::DockerError),
    /// The cluster failed.
    #[cfg(feature = "kubernetes")]
    #[error(transparent)]
    Kubernetes(#[from] crate::KubernetesError),
    /// No cliq home is known.
    #[error("cannot find the cliq home: neither CLIQ_HOME nor HOME is set")]
    NoHome,
    /// The process cannot be started.
    #[error("cannot start {program}: {source}")]
    Spawn {
        /// Program of the process.
        program: String,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The socket for reviews cannot be served.
    #[error("cannot listen at {path}: {message}")]
    ReviewSocket {
        /// Path of the socket.
        path: String,
        /// Error of the system.
        message: String,
    },
    /// The image has no `cliq` program.
    #[error("cannot start `cliq` in the image `{image}`: the program is not found there")]
    NoProgram {
        /// Name of the image.
        image: String,
    },
    /// The run exceeded its memory limit.
    #[error("the run was killed: out of memory, limit {limit} (`{setting}`)")]
    OutOfMemory {
        /// Memory limit, for people.
        limit: String,
        /// Setting of the limit.
        setting: &'static str,
    },
    /// The container or process of the run was ended by a signal.
    #[error("the {subject} of the run was ended by signal {signal}: by a person, or by {other}")]
    Killed {
        /// Subject that was ended.
        subject: &'static str,
        /// Number of the signal.
        signal: i64,
        /// Other possible sender.
        other: &'static str,
    },
    /// The run ended without its own doing.
    #[error("{0}")]
    Ended(String),
    /// The run did not start.
    #[error("{message}")]
    NotStarted {
        /// Reason.
        message: String,
        /// Remedy.
        hint: Option<&'static str>,
    },
    /// The set-up of the backend is incomplete.
    #[error("{message}")]
    Unprepared {
        /// Missing part.
        message: String,
        /// Remedy.
        hint: &'static str,
    },
}

impl BackendError {
    /// Remedy for people.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            #[cfg(feature = "docker")]
            Self::Docker(error) => error.hint(),
            #[cfg(feature = "kubernetes")]
            Self::Kubernetes(error) => error.hint(),
            Self::NoHome => Some("set CLIQ_HOME to a directory"),
            Self::NoProgram { .. } => {
                Some("deploy/Dockerfile makes an image with it; `docker.image` names the image")
            }
            Self::OutOfMemory { .. } | Self::Killed { .. } | Self::Ended(_) => Some(RESUME),
            Self::NotStarted { hint, .. } => *hint,
            Self::Unprepared { hint, .. } => Some(hint),
            _ => None,
        }
    }
}
