//! Errors of connectors.

use cliq_http::CallError;

/// Reason why something was not fetched or published. Says what happened, where, and how to mend it; never shows a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
#[non_exhaustive]
pub struct ConnectorError {
    /// Cause, for people.
    pub message: String,
    /// The status of the answer, where there was one that was no success.
    pub status: Option<u16>,
}

impl ConnectorError {
    /// An error in words.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), status: None }
    }

    /// Whether the service says that there is no such thing.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.status, Some(404 | 410))
    }

    /// The same error with words before it, such as the name of an entry.
    pub(crate) fn within(mut self, place: &str) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The same error with a remedy, where the service refused the credentials.
    pub(crate) fn hint_on_refusal(mut self, hint: &str) -> Self {
        if matches!(self.status, Some(401 | 403)) {
            self.message = format!("{} ({hint})", self.message);
        }
        self
    }
}

impl From<CallError> for ConnectorError {
    fn from(error: CallError) -> Self {
        let mut message = error.message;
        if message.ends_with("has an address that is not public") {
            message.push_str(" (a caller of the server chose it; `pull.allow_hosts` names exceptions)");
        }
        Self { message, status: error.status }
    }
}

impl From<cliq_fs::FsError> for ConnectorError {
    fn from(error: cliq_fs::FsError) -> Self {
        Self::new(error.to_string())
    }
}

/// The error of a file.
pub(crate) fn file_error(action: &str, path: &camino::Utf8Path, error: &std::io::Error) -> ConnectorError {
    ConnectorError::new(format!("cannot {action} {path}: {error}"))
}
