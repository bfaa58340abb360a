//! Statements, their arguments and their rows, the same for both databases.

use crate::error::DatabaseError;
use crate::postgres::PostgresRow;
use crate::sqlite_row::SqliteRow;

/// An argument of a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument<'a> {
    Text(&'a str),
    OptionalText(Option<&'a str>),
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

    pub(crate) fn flag(&self, column: &str) -> Result<bool, DatabaseError> {
        Ok(self.integer(column)? != 0)
    }

    pub(crate) fn count(&self, column: &str) -> Result<u64, DatabaseError> {
        Ok(u64::try_from(self.integer(column)?).unwrap_or(0))
    }
}
