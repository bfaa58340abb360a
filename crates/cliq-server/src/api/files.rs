//! Files of a run's workspace.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use super::input::{Path, Query};
use crate::access::Reader;
use crate::app::App;
use crate::problem::Problem;
use crate::project_files;

/// The most entries of a directory that are listed.
const MAX_ENTRIES: usize = 5000;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FileKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A link or something else, which cannot be read here.
    Other,
}

/// An entry of a directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FileEntry {
    /// Its name.
    pub(crate) name: String,
    /// Its path from the workspace.
    pub(crate) path: String,
    /// What it is.
    pub(crate) kind: FileKind,
    /// Its size in bytes.
    pub(crate) size: u64,
}

/// The entries of a directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Directory {
    /// Its path from the workspace.
    path: String,
    /// Its entries: directories first, by name.
    entries: Vec<FileEntry>,
}

/// Which file or directory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileQuery {
    /// The path from the workspace. Without it, the workspace itself.
    #[serde(default)]
    path: String,
}

/// The entries of a directory of a workspace.
pub(crate) fn entries(workspace: &camino::Utf8Path, relative: &str) -> Result<Vec<FileEntry>, Problem> {
    let dir = project_files::locate(workspace, relative)?;
    let read = dir.read_dir_utf8().map_err(|_| Problem::not_found("it is no directory"))?;
    let mut entries: Vec<FileEntry> = read
        .filter_map(Result::ok)
        .take(MAX_ENTRIES)
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            let kind = match meta.file_type() {
                kind if kind.is_dir() => FileKind::Directory,
                kind if kind.is_file() => FileKind::File,
                _ => FileKind::Other,
            };
            let name = entry.file_name().to_owned();
            let path = camino::Utf8Path::new(relative).join(&name).into_string();
            Some(FileEntry { name, path, kind, size: meta.len() })
        })
        .collect();
    entries.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
    Ok(entries)
}

/// Lists a directory of a run's workspace.
#[utoipa::path(get, path = "/api/v1/runs/{id}/files", operation_id = "list_files", tag = "runs", params(("id" = String, Path, description = "The run."), FileQuery),
    responses((status = 200, body = Directory), Reading))]
pub(crate) async fn files(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<FileQuery>,
) -> Result<axum::Json<Directory>, Problem> {
    let run = app.run(&id).await?;
    app.project(&run)?;
    let entries = entries(&run.workspace, &query.path)?;
    Ok(axum::Json(Directory { path: query.path, entries }))
}

/// The content of a file of a run's workspace, at most 64 MiB. It is sent for saving, not for showing.
#[utoipa::path(get, path = "/api/v1/runs/{id}/files/content", operation_id = "get_file", tag = "runs",
    params(("id" = String, Path, description = "The run."), FileQuery),
    responses((status = 200, body = Vec<u8>, content_type = "application/octet-stream"), Reading))]
pub(crate) async fn content(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<FileQuery>,
) -> Result<impl IntoResponse, Problem> {
    let run = app.run(&id).await?;
    app.project(&run)?;
    let read = tokio::task::spawn_blocking(move || project_files::read(&run.workspace, &query.path));
    let bytes = read.await.map_err(|error| Problem::unavailable(error.to_string()))??;
    // A browser saves the file. If it were shown, it would be a page of this server.
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, bytes))
}
