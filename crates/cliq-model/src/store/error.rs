//! Errors of stores, each with its remedy.

use std::io;

use camino::Utf8PathBuf;

/// Error of a store: a database with signals, reviews, runs and everything else, or a server in front of one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another process has the database locked.
    #[error(
        "{database} is locked by another program and stayed so for {seconds} s; nothing was changed. End what holds it (a database browser in a transaction?) and try again"
    )]
    Locked {
        /// The database.
        database: String,
        /// Waiting time in seconds.
        seconds: u64,
    },
    /// The database can be read but not written.
    #[error(
        "{database} cannot be written; nothing was changed. Make the file and its directory writable, or set CLIQ_HOME to another place"
    )]
    ReadOnly {
        /// The database.
        database: String,
    },
    /// The file is damaged or not a database.
    #[error(
        "{database} is damaged, or is not a database ({message}); nothing was changed. Put a copy in its place, or move it away to begin with an empty database"
    )]
    Corrupt {
        /// The database.
        database: String,
        /// Message of the library.
        message: String,
    },
    /// A newer cliq made it.
    #[error(
        "{database} has format {found}, and this cliq knows formats up to {known}; nothing was changed. Use the newer cliq, or set CLIQ_HOME to another place"
    )]
    Newer {
        /// The database.
        database: String,
        /// Format of the database.
        found: i64,
        /// The newest format that is known.
        known: i64,
    },
    /// Another program made or changed it.
    #[error(
        "{database} belongs to another program, or was changed by one: its tables are not those of its format; nothing was changed. Move it away to begin with an empty database, put a copy in its place, or set CLIQ_HOME to another place"
    )]
    Foreign {
        /// The database.
        database: String,
    },
    /// There is something else than a file at its path.
    #[error("{database} is {kind}: move it away, or set CLIQ_HOME to another place")]
    NotAFile {
        /// The database.
        database: String,
        /// Description, such as "a directory".
        kind: &'static str,
    },
    /// The disk is full.
    #[error("cannot write to {database}: disk full; {}", stored(*object))]
    Full {
        /// The database.
        database: String,
        /// Object that was to be stored, such as "the run". `None` for a read.
        object: Option<&'static str>,
    },
    /// The database cannot be opened.
    #[error("cannot open {database}: {message}. Is its directory there, and writable?")]
    Open {
        /// The database.
        database: String,
        /// Message of the system.
        message: String,
    },
    /// The server of the database does not answer, or does not let cliq in.
    #[error(
        "{database} cannot be used: {message}. Does the server run, and is `database.url` right? What was not confirmed may not be stored"
    )]
    Unreachable {
        /// The database.
        database: String,
        /// Message of the system or the server.
        message: String,
    },
    /// A cell of a row contains something that cliq never writes there.
    #[error(
        "cannot read row `{row}` of table `{table}` in {database}: column `{column}`: {reason}. The cell was changed by another program: put the right value there, or a copy of the database in its place"
    )]
    InvalidRow {
        /// The database.
        database: String,
        /// Table of the row.
        table: &'static str,
        /// Column of the cell.
        column: &'static str,
        /// Id of the row: its key, or what is readable of it.
        row: String,
        /// Reason. Contains no value of a text that may be secret.
        reason: String,
    },
    /// Anything else that the database says.
    #[error("{database}: {source}")]
    Database {
        /// The database.
        database: String,
        /// Error of the database library.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A file of the bridge, or the directory of the database.
    #[error("cannot {action} {path}: {source}")]
    File {
        /// Attempted action.
        action: &'static str,
        /// To what.
        path: Utf8PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// Error with cause and remedy in its message, such as that of a server that has the store.
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// Creates an error with this message, which contains cause and remedy.
    pub fn new(message: impl Into<String>) -> Self {
        Self::Other(message.into())
    }
}

/// Consequence of a full disk.
fn stored(object: Option<&'static str>) -> String {
    object.map_or_else(
        || "free some space and try again".to_owned(),
        |object| format!("{object} was not stored. Free some space and try again"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_names_the_object_that_was_not_stored() {
        let text = |object| StoreError::Full { database: "/db".to_owned(), object }.to_string();
        for object in ["the run", "the signal", "the review"] {
            let expected =
                format!("cannot write to /db: disk full; {object} was not stored. Free some space");
            assert!(text(Some(object)).starts_with(&expected), "{object}");
        }
        assert!(!text(None).contains("stored"), "nothing was to be written");
    }
}
