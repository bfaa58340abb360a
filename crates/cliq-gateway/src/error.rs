//! What can go wrong with the queue, each with its remedy.

use std::io;

use camino::Utf8PathBuf;

/// Why the queue cannot do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GatewayError {
    /// Another process has the database locked.
    #[error(
        "{path} is locked by another program and stayed so for {seconds} s; nothing was changed. End what holds it (a database browser in a transaction?) and try again"
    )]
    Locked {
        /// The database.
        path: Utf8PathBuf,
        /// How long was waited.
        seconds: u64,
    },
    /// It may be read, and not written.
    #[error(
        "{path} cannot be written; nothing was changed. Make the file and its directory writable, or set CLIQ_HOME to another place"
    )]
    ReadOnly {
        /// The database.
        path: Utf8PathBuf,
    },
    /// It is no database, or damaged.
    #[error(
        "{path} is damaged, or is no database ({message}); nothing was changed. Put a copy in its place, or move it away to begin with an empty queue"
    )]
    Corrupt {
        /// The database.
        path: Utf8PathBuf,
        /// What the library says.
        message: String,
    },
    /// A newer cliq made it.
    #[error(
        "{path} has format {found}, and this cliq knows formats up to {known}; nothing was changed. Use the newer cliq, or set CLIQ_HOME to another place"
    )]
    Newer {
        /// The database.
        path: Utf8PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that is known.
        known: i64,
    },
    /// The disk is full.
    #[error("there is no room left for {path}; what was not written is not in the queue")]
    Full {
        /// The database.
        path: Utf8PathBuf,
    },
    /// It cannot be opened.
    #[error("cannot open {path}: {message}. Is its directory there, and writable?")]
    Open {
        /// The database.
        path: Utf8PathBuf,
        /// What the system says.
        message: String,
    },
    /// Anything else that the database says.
    #[error("{path}: {source}")]
    Database {
        /// The database.
        path: Utf8PathBuf,
        /// What it says.
        source: sqlx::Error,
    },
    /// A file of the bridge.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// What was being done.
        action: &'static str,
        /// To what.
        path: Utf8PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// Names a file in the errors of the system.
pub(crate) trait At<T> {
    fn at(self, action: &'static str, path: &camino::Utf8Path) -> Result<T, GatewayError>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &camino::Utf8Path) -> Result<T, GatewayError> {
        self.map_err(|source| GatewayError::File { action, path: path.to_owned(), source })
    }
}
