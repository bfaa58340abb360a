//! Appending where a service cannot: what is there comes, a local file is put behind it, and the whole goes back.

use std::io::{Seek, SeekFrom};

use camino::Utf8PathBuf;
use cliq_http::{Client, Download, Request};
use tempfile::NamedTempFile;

use crate::error::file_error;
use crate::files::digest;
use crate::{ConnectorError, Context, LocalFile};

/// Expected content. The file ends with this value.
pub(crate) struct AppendedContent {
    pub(crate) file: LocalFile,
    _part: NamedTempFile,
}

/// Fetches what is there, to a temporary file beside the ledgers of pushes.
pub(crate) fn fetch_before(
    cx: &Context<'_>,
    client: &Client,
    request: &Request,
) -> Result<Download, ConnectorError> {
    let dir = cx.cliq_dir.join("push");
    std::fs::create_dir_all(&dir).map_err(|error| file_error("make", &dir, &error))?;
    let download = client.download(request, dir.as_std_path(), cx.bounds.file, &|_, _| {})?;
    // 304 answers a condition, and none was set.
    download.ok_or_else(|| {
        ConnectorError::new(format!("{} says that nothing changed, and was not asked", request.host()))
    })
}

/// Puts a file behind what was there.
pub(crate) fn append(before: Download, file: &LocalFile) -> Result<AppendedContent, ConnectorError> {
    let mut part = before.file;
    let path = Utf8PathBuf::from_path_buf(part.path().to_owned())
        .map_err(|path| ConnectorError::new(format!("{} is not UTF-8", path.display())))?;
    let (mut more, _) = cliq_fs::open_regular(&file.path)?;
    let copied =
        part.as_file_mut().seek(SeekFrom::End(0)).and_then(|_| std::io::copy(&mut more, part.as_file_mut()));
    copied.map_err(|error| file_error("write", &path, &error))?;
    let (sha256, size) = digest(&path)?;
    Ok(AppendedContent { file: LocalFile { path, size, sha256 }, _part: part })
}
