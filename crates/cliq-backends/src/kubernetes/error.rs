//! Errors of the Kubernetes backend.

use kube::Error;

use super::NotOnClaim;
use super::job_status::one_line;

/// Reason why a run was not started, or not followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KubernetesError {
    /// Nothing says where a cluster is.
    #[error("no cluster is known here: {0}")]
    NoCluster(String),
    /// The API server does not answer.
    #[error("the API server of the cluster ({address}) does not answer: {why}")]
    Away {
        /// Address of the API server.
        address: String,
        /// Cause.
        why: String,
    },
    /// The cluster does not know who asks.
    #[error("the cluster rejected the credentials: {0}")]
    Unauthorized(String),
    /// The user lacks a right.
    #[error("the cluster forbids to {action}: {why}")]
    Forbidden {
        /// Requested action.
        action: &'static str,
        /// Message of the API server.
        why: String,
    },
    /// The API server refused a request.
    #[error("the cluster cannot {action}: {why}")]
    Refused {
        /// Requested action.
        action: &'static str,
        /// Message of the API server.
        why: String,
    },
    /// The claim is not there.
    #[error("there is no PersistentVolumeClaim `{claim}` in the namespace `{namespace}`")]
    NoClaim {
        /// The claim.
        claim: String,
        /// The namespace.
        namespace: String,
    },
    /// Something that the run needs is not on the claim.
    #[error(transparent)]
    NotOnClaim(#[from] NotOnClaim),
    /// Settings and variables are more than a Secret can have.
    #[error("the settings and variables of the run have {size} bytes: a Secret has 1 MiB at most")]
    TooBig {
        /// Their size.
        size: usize,
    },
}

impl KubernetesError {
    /// Returns a remedy, if one is known.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoCluster(_) => Some(
                "KUBECONFIG or ~/.kube/config names one, `kubernetes.context` chooses; `cliq run --no-docker` works on this machine",
            ),
            Self::Away { .. } => Some("`cliq run --no-docker` works on this machine"),
            Self::Unauthorized(_) => {
                Some("sign in to the cluster anew: `kubectl auth whoami` shows who one is")
            }
            Self::Forbidden { .. } => Some(
                "docs/kubernetes.md in the repository of cliq lists the rights that cliq needs; the Role of its deploy/helm/cliq grants them",
            ),
            Self::NoClaim { .. } => Some(
                "deploy/helm/cliq makes one; `kubernetes.claim` names another, `kubernetes.namespace` its place",
            ),
            Self::NotOnClaim(_) => Some(
                "runs in a cluster work on a shared volume: move the project there, or `cliq run --no-docker` works on this machine",
            ),
            Self::Refused { .. } | Self::TooBig { .. } => None,
        }
    }

    /// Whether it may be over in a moment.
    #[must_use]
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Away { .. })
    }

    pub(crate) fn of(action: &'static str, address: &str, error: &Error) -> Self {
        let away = |why: String| Self::Away { address: address.to_owned(), why };
        match error {
            Error::Api(status) => {
                let why = one_line(if status.message.is_empty() { &status.reason } else { &status.message });
                match status.code {
                    401 => Self::Unauthorized(why),
                    // Quotas and policies answer with the same status as missing rights.
                    403 if why.contains(" cannot ") => Self::Forbidden { action, why },
                    429 | 500 | 502..=504 => away(why),
                    _ => Self::Refused { action, why },
                }
            }
            Error::Auth(error) => Self::Unauthorized(innermost(error)),
            Error::SerdeError(error) => {
                Self::Refused { action, why: format!("its answer is not understood: {error}") }
            }
            error => away(innermost(error)),
        }
    }
}

/// The innermost cause: the outer ones name the parts of a library.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The status of an answer.
pub(crate) fn status(error: &Error) -> Option<u16> {
    match error {
        Error::Api(status) => Some(status.code),
        _ => None,
    }
}
