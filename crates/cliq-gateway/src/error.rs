//! Names of files in errors of the system.

use std::io;

use cliq_model::StoreError;

/// Names a file in the errors of the system.
pub(crate) trait ErrorContext<T> {
    fn at(self, action: &'static str, path: &camino::Utf8Path) -> Result<T, StoreError>;
}

impl<T> ErrorContext<T> for io::Result<T> {
    fn at(self, action: &'static str, path: &camino::Utf8Path) -> Result<T, StoreError> {
        self.map_err(|source| StoreError::File { action, path: path.to_owned(), source })
    }
}
