//! Cells of a row, parsed into the types of the model. A cell that does not parse is an error that names table, column and row.

use std::fmt::Display;

use cliq_protocol::{RunId, TeamName, Timestamp, shorten};
use serde::de::DeserializeOwned;

use crate::error::DatabaseError;
use crate::statement::Row;

/// Maximum length of a quoted value, in bytes.
const MAX_QUOTED: usize = 60;

/// A row of a table.
#[derive(Clone, Copy)]
pub(crate) struct Cells<'a> {
    row: &'a Row,
    table: &'static str,
    /// Columns that identify the row.
    key: &'static [&'static str],
}

impl<'a> Cells<'a> {
    /// The cells of a row of `table`. Errors name the row by its values in the columns of `key`.
    pub(crate) fn new(row: &'a Row, table: &'static str, key: &'static [&'static str]) -> Self {
        Self { row, table, key }
    }

    /// Returns the error of a cell. The reason may be shown and logged: it contains no value that may be secret.
    pub(crate) fn invalid(&self, column: &'static str, reason: impl Display) -> DatabaseError {
        let value = |column: &&'static str| match (self.row.text(column), self.row.integer(column)) {
            (Ok(text), _) => shorten(&text, MAX_QUOTED).into_owned(),
            (_, Ok(number)) => number.to_string(),
            _ => "?".to_owned(),
        };
        let row = self.key.iter().map(value).collect::<Vec<_>>().join(" ");
        DatabaseError::InvalidRow { table: self.table, column, row, reason: reason.to_string() }
    }

    pub(crate) fn text(&self, column: &'static str) -> Result<String, DatabaseError> {
        self.row.text(column).map_err(|_| self.invalid(column, "the cell has no text"))
    }

    pub(crate) fn optional_text(&self, column: &'static str) -> Result<Option<String>, DatabaseError> {
        self.row
            .optional_text(column)
            .map_err(|_| self.invalid(column, "the cell has neither a text nor NULL"))
    }

    pub(crate) fn integer(&self, column: &'static str) -> Result<i64, DatabaseError> {
        self.row.integer(column).map_err(|_| self.invalid(column, "the cell has no whole number"))
    }

    pub(crate) fn optional_integer(&self, column: &'static str) -> Result<Option<i64>, DatabaseError> {
        self.row
            .optional_integer(column)
            .map_err(|_| self.invalid(column, "the cell has neither a whole number nor NULL"))
    }

    pub(crate) fn optional_real(&self, column: &'static str) -> Result<Option<f64>, DatabaseError> {
        self.row
            .optional_real(column)
            .map_err(|_| self.invalid(column, "the cell has neither a number nor NULL"))
    }

    pub(crate) fn flag(&self, column: &'static str) -> Result<bool, DatabaseError> {
        match self.integer(column)? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.invalid(column, format!("{other} is neither 0 nor 1"))),
        }
    }

    /// Reads a number that is not negative.
    pub(crate) fn count<N: TryFrom<i64>>(&self, column: &'static str) -> Result<N, DatabaseError> {
        let number = self.integer(column)?;
        N::try_from(number)
            .map_err(|_| self.invalid(column, format!("{number} is not a number of this column")))
    }

    /// Reads a word that stands for a value.
    pub(crate) fn word<T>(
        &self,
        column: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<T, DatabaseError> {
        let text = self.text(column)?;
        parse(&text).ok_or_else(|| self.unknown(column, &text))
    }

    /// Reads a word that stands for a value, or NULL.
    pub(crate) fn optional_word<T>(
        &self,
        column: &'static str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, DatabaseError> {
        let Some(text) = self.optional_text(column)? else { return Ok(None) };
        parse(&text).map(Some).ok_or_else(|| self.unknown(column, &text))
    }

    /// Returns the error of a word without a meaning.
    pub(crate) fn unknown(&self, column: &'static str, text: &str) -> DatabaseError {
        self.invalid(column, format!("{:?} is not a value of this column", shorten(text, MAX_QUOTED)))
    }

    pub(crate) fn run_id(&self, column: &'static str) -> Result<RunId, DatabaseError> {
        self.word(column, RunId::parse_uuid)
    }

    pub(crate) fn team(&self, column: &'static str) -> Result<TeamName, DatabaseError> {
        let text = self.text(column)?;
        TeamName::parse(&text).map_err(|error| {
            self.invalid(
                column,
                format!("{:?} is not the name of a team: {error}", shorten(&text, MAX_QUOTED)),
            )
        })
    }

    pub(crate) fn time(&self, column: &'static str) -> Result<Timestamp, DatabaseError> {
        self.word(column, |text| Timestamp::parse(text).ok())
    }

    pub(crate) fn optional_time(&self, column: &'static str) -> Result<Option<Timestamp>, DatabaseError> {
        self.optional_word(column, |text| Timestamp::parse(text).ok())
    }

    /// Decodes a JSON document. The error contains the position and no value.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str) -> Result<T, DatabaseError> {
        self.decode(column, &self.text(column)?)
    }

    /// As [`Self::json`], for a cell that may be NULL.
    pub(crate) fn optional_json<T: DeserializeOwned>(
        &self,
        column: &'static str,
    ) -> Result<Option<T>, DatabaseError> {
        self.optional_text(column)?.map(|text| self.decode(column, &text)).transpose()
    }

    fn decode<T: DeserializeOwned>(&self, column: &'static str, text: &str) -> Result<T, DatabaseError> {
        serde_json::from_str(text).map_err(|error| {
            let (line, place) = (error.line(), error.column());
            self.invalid(column, format!("not the JSON of this column (line {line}, column {place})"))
        })
    }
}
