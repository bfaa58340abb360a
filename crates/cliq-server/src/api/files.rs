//! Files of a run's workspace.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cliq_model::Run;
use cliq_project::Project;
use cliq_supervisor::internals::workspace_files;
use cliq_web::{FileEntry, Path, Problem, Query, Reader, list_directory};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;

/// The entries of a directory.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Directory {
    /// Path relative to the workspace.
    path: String,
    /// Entries: directories first, then by name.
    entries: Vec<FileEntry>,
}

/// Path of a file or directory.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileQuery {
    /// The path from the workspace. Without it, the workspace itself.
    #[serde(default)]
    path: String,
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
    let path = query.path.clone();
    let list = move |run: &Run, _: &Project| list_directory(&run.workspace, &path);
    let entries = app.core.in_project(&run, list).await?;
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
    let read = move |run: &Run, _: &Project| Ok(workspace_files::read(&run.workspace, &query.path)?);
    let bytes = app.core.in_project(&run, read).await?;
    // A browser saves the file. If it were shown, it would be a page of this server.
    let headers =
        [(header::CONTENT_TYPE, "application/octet-stream"), (header::CONTENT_DISPOSITION, "attachment")];
    Ok((headers, bytes))
}
