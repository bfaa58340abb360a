//! Pull requests, as every host has them.

use cliq_http::CallError;
use serde::Serialize;

/// An open pull request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PullRequest {
    /// Number on the host.
    pub number: u64,
    /// URL of the page.
    pub url: String,
    /// Title.
    pub title: String,
    /// The branch that it is of.
    pub branch: String,
    /// The branch that it is for.
    pub base: String,
}

/// A pull request that is to be made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NewPullRequest {
    /// The branch that it is of. It has been pushed.
    pub branch: String,
    /// The branch that it is for.
    pub base: String,
    /// Title.
    pub title: String,
    /// Description in markdown.
    pub body: String,
    /// Whether it is a draft.
    pub draft: bool,
    /// Labels. Not supported by Bitbucket.
    pub labels: Vec<String>,
    /// Requested reviewers: names on the host. GitHub only.
    pub reviewers: Vec<String>,
}

/// Reason why a host could not be asked, or refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeHostError {
    /// The call failed, or the host refused.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The host answered something else than its API describes.
    #[error("{host} answered without `{field}`: is that the address of its API?")]
    Answer {
        /// The host.
        host: String,
        /// Name of the missing field.
        field: &'static str,
    },
}
