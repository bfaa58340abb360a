//! Statements, their arguments and their rows, the same for both databases.

use cliq_protocol::Timestamp;

use crate::error::DatabaseError;
use crate::postgres::PostgresRow;
use crate::sqlite_row::SqliteRow;

/// An argument of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
    /// Stored as text.
    OptionalTime(Option<Timestamp>),
    Integer(i64),
    OptionalInteger(Option<i64>),
    OptionalReal(Option<f64>),
}

impl<'a> From<&'a str> for Argument<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Argument<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<Option<&'a str>> for Argument<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::OptionalText(text)
    }
}

impl From<Timestamp> for Argument<'_> {
    fn from(time: Timestamp) -> Self {
        Self::OptionalTime(Some(time))
    }
}

impl From<Option<Timestamp>> for Argument<'_> {
    fn from(time: Option<Timestamp>) -> Self {
        Self::OptionalTime(time)
    }
}

impl From<i64> for Argument<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for Argument<'_> {
    fn from(flag: bool) -> Self {
        Self::Integer(i64::from(flag))
    }
}

impl From<Option<i64>> for Argument<'_> {
    fn from(number: Option<i64>) -> Self {
        Self::OptionalInteger(number)
    }
}

impl From<Option<f64>> for Argument<'_> {
    fn from(number: Option<f64>) -> Self {
        Self::OptionalReal(number)
    }
}

/// A list of arguments.
macro_rules! arguments {
    ($($argument:expr),* $(,)?) => { &[$($crate::statement::Argument::from($argument)),*] };
}
pub(crate) use arguments;

/// Result of a statement.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// Rows of the result.
    pub(crate) rows: Vec<Row>,
    /// Number of changed rows.
    pub(crate) changed: u64,
    /// The id of the row that it inserted. SQLite only: PostgreSQL returns it as a row.
    pub(crate) inserted: i64,
}

#[derive(Debug)]
pub(crate) enum Row {
    Sqlite(SqliteRow),
    #[cfg_attr(not(feature = "postgres"), expect(dead_code, reason = "nothing makes such rows"))]
    Postgres(PostgresRow),
}

impl Row {
    pub(crate) fn text(&self, column: &str) -> Result<String, DatabaseError> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => Ok(row.text(column)?),
        }
    }

    pub(crate) fn optional_text(&self, column: &str) -> Result<Option<String>, DatabaseError> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => Ok(row.optional_text(column)?),
        }
    }

    pub(crate) fn integer(&self, column: &str) -> Result<i64, DatabaseError> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => Ok(row.integer(column)?),
        }
    }

    pub(crate) fn optional_integer(&self, column: &str) -> Result<Option<i64>, DatabaseError> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => Ok(row.optional_integer(column)?),
        }
    }

    pub(crate) fn optional_real(&self, column: &str) -> Result<Option<f64>, DatabaseError> {
        match self {
            Self::Sqlite(row) => row.get(column),
            Self::Postgres(row) => Ok(row.optional_real(column)?),
        }
    }

    /// Reads a number that the statement has counted.
    pub(crate) fn count(&self, column: &str) -> Result<u64, DatabaseError> {
        let number = self.integer(column)?;
        u64::try_from(number).map_err(|error| DatabaseError::column(column, error))
    }
}
