//! Errors of evaluations.

use camino::Utf8PathBuf;
use cliq_backends::BackendError;
use cliq_fs::FsError;
use cliq_model::StoreError;
use cliq_project::ProjectError;
use cliq_protocol::without_credentials;
use cliq_settings::SettingsError;

/// Error of an evaluation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// A repository of a case cannot be cloned.
    #[error("cannot clone {}: {}", without_credentials(url), without_credentials(message))]
    Git {
        /// Address.
        url: String,
        /// Message of git.
        message: String,
    },
    /// The folder of a case contains the directory of the evaluation.
    #[error(
        "the workspace of case `{case}` is {folder}, which contains the cliq home: name a folder without it"
    )]
    FolderInside {
        /// Case.
        case: String,
        /// Folder.
        folder: Utf8PathBuf,
    },
    /// Another process works on the evaluation.
    #[error("evaluation {0} is being worked on by another process")]
    Busy(String),
    /// The evaluation does not exist.
    #[error("there is no evaluation `{0}`")]
    Unknown(String),
    /// The stored suite cannot be read.
    #[error("cannot read the stored suite of evaluation {id}: {source}")]
    Stored {
        /// Evaluation.
        id: String,
        /// Cause.
        source: serde_json::Error,
    },
    /// An expression is wrong, or cannot be evaluated.
    #[error("cannot evaluate `{expression}`: {message}")]
    Expression {
        /// Expression.
        expression: String,
        /// Cause.
        message: String,
    },
    /// A baseline cannot be read.
    #[error("cannot read the baseline {path}: {message}")]
    Baseline {
        /// File.
        path: Utf8PathBuf,
        /// Cause.
        message: String,
    },
    /// A suite cannot be edited.
    #[error("cannot add a case to {path}: {message}")]
    Suite {
        /// File.
        path: Utf8PathBuf,
        /// Cause.
        message: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
    /// A project cannot be made.
    #[error(transparent)]
    Project(#[from] ProjectError),
    /// A setting cannot be made.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A run cannot be started or followed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
