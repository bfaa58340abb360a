//! Appending: what is there, with a local file behind it.

use std::io::{Seek, SeekFrom};

use camino::Utf8PathBuf;
use tempfile::NamedTempFile;

use crate::error::file_error;
use crate::{ConnectorError, LocalFile};

/// Copies a file to the end of a temporary one. Gives that and its path.
pub(crate) fn append_file(
    mut part: NamedTempFile,
    file: &LocalFile,
) -> Result<(NamedTempFile, Utf8PathBuf), ConnectorError> {
    let path = Utf8PathBuf::from_path_buf(part.path().to_owned())
        .map_err(|path| ConnectorError::new(format!("{} is not UTF-8", path.display())))?;
    let (mut more, _) = cliq_fs::open_regular(&file.path)?;
    let copied =
        part.as_file_mut().seek(SeekFrom::End(0)).and_then(|_| std::io::copy(&mut more, part.as_file_mut()));
    copied.map_err(|error| file_error("write", &path, &error))?;
    Ok((part, path))
}
