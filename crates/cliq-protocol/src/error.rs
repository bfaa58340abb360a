//! Errors of decoding.

use std::fmt;

/// A field that is missing, has the wrong type or holds a value that the format does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FieldError {
    /// The field, as a path from the top: `data.verdict.outcome`. Empty for the whole value.
    pub field: String,
    /// Expected value.
    pub expected: String,
    /// Actual value.
    pub found: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            write!(f, "expected {}, found {}", self.expected, self.found)
        } else {
            write!(f, "field `{}`: expected {}, found {}", self.field, self.expected, self.found)
        }
    }
}

impl std::error::Error for FieldError {}

/// Reason why bytes are not a value of the format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes are not JSON.
    #[error("not JSON: {message} (line {line}, column {column})")]
    Json {
        /// Message of the JSON reader, without the position.
        message: String,
        /// Line of the fault, from 1.
        line: usize,
        /// Column of the fault in bytes, from 1.
        column: usize,
    },
    /// The bytes are JSON of another shape.
    #[error(transparent)]
    Field(#[from] FieldError),
}

impl From<serde_json::Error> for DecodeError {
    fn from(error: serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let full = error.to_string();
        let message = full.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&full);
        // The reader quotes names that it does not know.
        Self::Json { message: crate::shorten(message, 300).into_owned(), line, column }
    }
}
