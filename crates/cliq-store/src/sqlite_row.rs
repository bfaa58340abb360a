//! Rows of SQLite, detached from their statement.

use std::sync::Arc;

use rusqlite::types::{FromSql, FromSqlError, Value, ValueRef};

use crate::error::DatabaseError;

/// Values of a row with the names of its columns.
#[derive(Debug)]
pub(crate) struct SqliteRow {
    columns: Arc<[String]>,
    values: Vec<Value>,
}

impl SqliteRow {
    pub(crate) fn new(columns: Arc<[String]>, values: Vec<Value>) -> Self {
        Self { columns, values }
    }

    /// The value of a column.
    pub(crate) fn get<T: FromSql>(&self, column: &str) -> Result<T, DatabaseError> {
        let place = self.columns.iter().position(|name| name == column);
        let value = place.and_then(|place| self.values.get(place)).ok_or(FromSqlError::InvalidType);
        value
            .and_then(|value| T::column_result(ValueRef::from(value)))
            .map_err(|error| DatabaseError::column(column, error))
    }
}
