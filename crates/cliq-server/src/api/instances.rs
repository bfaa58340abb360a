//! Registered projects.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use camino::Utf8Path;
use cliq_fs::CliqDir;
use cliq_runs::Instance;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::errors::{Changing, Reading};
use super::input::{Json, Path};
use crate::access::{Admin, Reader};
use crate::app::App;
use crate::clock;
use crate::problem::Problem;

/// The registered projects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Instances {
    instances: Vec<Instance>,
}

/// A project that is to be registered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewInstance {
    /// Its directory on the server's machine: one in which `cliq init` was run.
    path: String,
}

/// Lists the registered projects.
#[utoipa::path(get, path = "/api/v1/instances", operation_id = "list_instances", tag = "instances", responses((status = 200, body = Instances), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<Instances>, Problem> {
    Ok(axum::Json(Instances { instances: app.runs.instances().await? }))
}

/// Registers the project in a directory.
pub(crate) async fn register(app: &App, path: &str) -> Result<Instance, Problem> {
    let no_project =
        || Problem::unprocessable("it is no directory of a project: `cliq init` makes it one", Vec::new());
    let path = Utf8Path::new(path);
    if !path.is_absolute() || path.as_str().contains('\0') {
        return Err(Problem::unprocessable("`path` is an absolute path", Vec::new()));
    }
    let dir = CliqDir::open(path).map_err(|_| no_project())?;
    let id = cliq_fs::read_text(&dir.id_file(), 256).unwrap_or_default();
    let plain = |id: &&str| {
        !id.is_empty() && id.len() <= 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    let id = Some(id.trim()).filter(plain).unwrap_or("cliq-project").to_owned();
    let instance = Instance { id, path: dir.workspace().to_owned(), registered_at: clock::now() };
    Ok(app.runs.add_instance(&instance).await?)
}

/// Registers a project: runs can be started in it, and those that people start there by `cliq run` are shown.
#[utoipa::path(post, path = "/api/v1/instances", operation_id = "register_instance", tag = "instances", request_body = NewInstance,
    responses((status = 201, body = Instance), Reading, Changing))]
pub(crate) async fn register_project(
    _: Admin,
    State(app): State<Arc<App>>,
    Json(new): Json<NewInstance>,
) -> Result<impl IntoResponse, Problem> {
    Ok((StatusCode::CREATED, axum::Json(register(&app, &new.path).await?)))
}

/// A registered project.
pub(crate) async fn find(app: &App, id: &str) -> Result<Instance, Problem> {
    let found = app.runs.instance(id).await?;
    found.ok_or_else(|| Problem::not_found("there is no registered project of this id"))
}

/// A registered project.
#[utoipa::path(get, path = "/api/v1/instances/{id}", operation_id = "get_instance", tag = "instances", params(("id" = String, Path, description = "The project.")),
    responses((status = 200, body = Instance), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Instance>, Problem> {
    Ok(axum::Json(find(&app, &id).await?))
}

/// Forgets a project. Its files and the record of its runs stay.
#[utoipa::path(delete, path = "/api/v1/instances/{id}", operation_id = "forget_instance", tag = "instances", params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "It is forgotten."), Reading))]
pub(crate) async fn forget(
    _: Admin,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find(&app, &id).await?;
    app.runs.forget_instance(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
