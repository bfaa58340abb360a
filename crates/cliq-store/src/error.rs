//! Translation of database errors for people.

use std::io::ErrorKind;
use std::time::Duration;

use cliq_model::StoreError;

use crate::location::Location;
use crate::migrations::FORMAT;
use crate::postgres::PostgresError;

/// Error of a database or its library.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    #[error(transparent)]
    Postgres(#[from] PostgresError),
    /// A cell contains something that is not stored there.
    #[error("row `{row}` of `{table}`, column `{column}`: {reason}")]
    InvalidRow { table: &'static str, column: &'static str, row: String, reason: String },
    /// A newer cliq made the database.
    #[error("it has format {0}")]
    Newer(i64),
    /// The tables are not those of the format.
    #[error("it belongs to another program")]
    Foreign,
    /// There is something else than a file.
    #[error("it is {0}")]
    NotAFile(&'static str),
    /// A check found damage.
    #[error("{0}")]
    Damaged(String),
    /// A statement has another result than expected.
    #[error("column `{column}`: {source}")]
    Column { column: String, source: Box<dyn std::error::Error + Send + Sync> },
}

impl DatabaseError {
    pub(crate) fn column(column: &str, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Column { column: column.to_owned(), source: error.into() }
    }

    /// The code of SQLite: its low byte is the kind of error, the others say more about it.
    fn sqlite_code(&self) -> Option<i32> {
        match self {
            Self::Sqlite(rusqlite::Error::SqliteFailure(error, _)) => Some(error.extended_code),
            _ => None,
        }
    }
}

/// Whether a connection is of no use any more. That of SQLite is a file, which stays.
pub(crate) fn is_broken(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Postgres(error) if error.is_broken())
}

/// Whether another program holds the file of an SQLite database.
pub(crate) fn is_locked(error: &DatabaseError) -> bool {
    error.sqlite_code().is_some_and(|code| matches!(code & 0xff, 5 | 6))
}

/// Returns the error for people, with what can be done about it. `object` is what was to be written, such as "the run".
pub(crate) fn explain(
    location: &Location,
    patience: Duration,
    object: Option<&'static str>,
    error: DatabaseError,
) -> StoreError {
    let error = match error {
        DatabaseError::InvalidRow { table, column, row, reason } => {
            return StoreError::InvalidRow { database: location.to_string(), table, column, row, reason };
        }
        DatabaseError::Newer(found) => {
            return StoreError::Newer { database: location.to_string(), found, known: FORMAT };
        }
        DatabaseError::Foreign => return StoreError::Foreign { database: location.to_string() },
        DatabaseError::NotAFile(kind) => {
            return StoreError::NotAFile { database: location.to_string(), kind };
        }
        DatabaseError::Damaged(message) => {
            return StoreError::Corrupt { database: location.to_string(), message };
        }
        other => other,
    };
    match location {
        Location::Sqlite(path) => explain_sqlite(path, patience, object, error),
        Location::Postgres(_) => explain_postgres(location.to_string(), patience, object, error),
    }
}

fn explain_sqlite(
    path: &camino::Utf8Path,
    patience: Duration,
    object: Option<&'static str>,
    error: DatabaseError,
) -> StoreError {
    let database = path.to_string();
    let message = match &error {
        DatabaseError::Sqlite(rusqlite::Error::SqliteFailure(_, Some(message))) => message.clone(),
        other => other.to_string(),
    };
    // 4874: there is no room for the index of the log.
    match error.sqlite_code().map(|code| if code == 4874 { 13 } else { code & 0xff }) {
        Some(5 | 6) => StoreError::Locked { database, seconds: patience.as_secs() },
        Some(8) => StoreError::ReadOnly { database },
        Some(11 | 26) => StoreError::Corrupt { database, message },
        Some(13) => StoreError::Full { database, object },
        // The database says no more than that; what the system says of the file is more.
        Some(14 | 23) => {
            match std::fs::OpenOptions::new().append(true).open(path).map_err(|error| error.kind()) {
                Err(ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied) => {
                    StoreError::ReadOnly { database }
                }
                _ => StoreError::Open { database, message },
            }
        }
        _ => StoreError::Database { database, source: error.into() },
    }
}

fn explain_postgres(
    database: String,
    patience: Duration,
    object: Option<&'static str>,
    error: DatabaseError,
) -> StoreError {
    let broken = is_broken(&error);
    let of_server = match &error {
        DatabaseError::Postgres(error) => error.of_server(),
        _ => None,
    };
    let (code, message) = of_server.unwrap_or_else(|| (None, error.to_string()));
    match code.as_deref() {
        // Lock not available, and a statement that was cancelled for waiting.
        Some("55P03" | "57014" | "40P01") => StoreError::Locked { database, seconds: patience.as_secs() },
        Some("25006") => StoreError::ReadOnly { database },
        Some("53100") => StoreError::Full { database, object },
        Some("XX001" | "XX002") => StoreError::Corrupt { database, message },
        // 28: it refuses the user; 3D000: no such database; 42501: no right; 53300: too many connections.
        Some(code) if code.starts_with("28") || matches!(code, "3D000" | "42501" | "53300") => {
            StoreError::Unreachable { database, message }
        }
        _ if broken => StoreError::Unreachable { database, message },
        _ => StoreError::Database { database, source: error.into() },
    }
}
