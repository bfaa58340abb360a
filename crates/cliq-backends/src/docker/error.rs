//! Errors of the container engine.

use bollard::errors::Error;

/// Reason why a container was not started, or not followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DockerError {
    /// No engine answers.
    #[error("no container engine answers at {address}: {why}")]
    NoEngine {
        /// Address that was tried.
        address: String,
        /// Cause.
        why: String,
    },
    /// The user may not speak to it.
    #[error("this user may not speak to the container engine at {address}")]
    Forbidden {
        /// Address of the engine.
        address: String,
    },
    /// The image does not exist, and it cannot be fetched.
    #[error("there is no image `{image}` here, and it cannot be fetched: {why}")]
    NoImage {
        /// The image.
        image: String,
        /// Message of the engine.
        why: String,
    },
    /// The engine refused a request.
    #[error("the container engine cannot {action}: {why}")]
    Refused {
        /// Requested action.
        action: &'static str,
        /// Message of the engine.
        why: String,
    },
    /// A file that keeps the order of those who wait.
    #[error("cannot use {path}: {error}")]
    File {
        /// The file or directory.
        path: camino::Utf8PathBuf,
        /// Error of the system.
        error: std::io::Error,
    },
}

impl DockerError {
    /// Returns a remedy, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoEngine { .. } => Some(
                "start Docker or Podman, or say where it is (`docker.host`, DOCKER_HOST); `cliq run --no-docker` works without",
            ),
            Self::Forbidden { .. } => {
                Some("be a member of the group `docker`, or use Podman; `cliq run --no-docker` works without")
            }
            Self::NoImage { .. } => Some(
                "`docker build -f deploy/Dockerfile --target runner -t cliq-runner .` makes one; `docker.image` names another",
            ),
            Self::Refused { .. } | Self::File { .. } => None,
        }
    }

    /// The engine's refusal of a request, or that it is away.
    pub(crate) fn of(action: &'static str, address: &str, error: &Error) -> Self {
        match error {
            Error::DockerResponseServerError { message, .. } => {
                Self::Refused { action, why: message.trim().to_owned() }
            }
            Error::JsonDataError { message, .. } => {
                Self::Refused { action, why: ["its answer is not understood: ", message].concat() }
            }
            error if is_forbidden(error) => Self::Forbidden { address: address.to_owned() },
            error => Self::NoEngine { address: address.to_owned(), why: plain(error) },
        }
    }
}

/// The status of an engine's answer.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        // What Podman says of a container that goes away while it is looked at.
        Error::DockerResponseServerError { status_code: 500, message }
            if message.contains("no such container") =>
        {
            Some(404)
        }
        Error::DockerResponseServerError { status_code, .. } => Some(*status_code),
        _ => None,
    }
}

fn is_forbidden(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The innermost cause: the outer ones name the parts of a library.
fn plain(error: &Error) -> String {
    match error {
        Error::RequestTimeoutError => return "it did not answer in time".to_owned(),
        Error::SocketNotFoundError(path) => return format!("there is no socket {path}"),
        _ => {}
    }
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
