//! Registered projects.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cliq_model::Instance;
use cliq_web::{Admin, Json, Path, Problem, Reader, find_project, register_project};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::errors::{Changing, Reading};
use crate::app::App;

/// The registered projects.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Instances {
    instances: Vec<Instance>,
}

/// A project that is to be registered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewInstance {
    /// Directory on the server's machine in which `cliq init` was run.
    #[schema(pattern = "^/[^\\x00]*$", example = "/work/project")]
    path: String,
}

/// Lists the registered projects.
#[utoipa::path(get, path = "/api/v1/instances", operation_id = "list_instances", tag = "instances", responses((status = 200, body = Instances), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<Instances>, Problem> {
    Ok(axum::Json(Instances { instances: app.core.runs.instances().await? }))
}

/// Registers a project: runs can be started in it, and those that people start there by `cliq run` are shown.
#[utoipa::path(post, path = "/api/v1/instances", operation_id = "register_instance", tag = "instances", request_body = NewInstance,
    responses((status = 201, body = Instance), Reading, Changing))]
pub(crate) async fn register(
    _: Admin,
    State(app): State<Arc<App>>,
    Json(new): Json<NewInstance>,
) -> Result<impl IntoResponse, Problem> {
    Ok((StatusCode::CREATED, axum::Json(register_project(&app.core, &new.path).await?)))
}

/// A registered project.
#[utoipa::path(get, path = "/api/v1/instances/{id}", operation_id = "get_instance", tag = "instances", params(("id" = String, Path, description = "The project.")),
    responses((status = 200, body = Instance), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Instance>, Problem> {
    Ok(axum::Json(find_project(&app.core, &id).await?))
}

/// Forgets a project. Its files and the record of its runs stay.
#[utoipa::path(delete, path = "/api/v1/instances/{id}", operation_id = "forget_instance", tag = "instances", params(("id" = String, Path, description = "The project.")),
    responses((status = 204, description = "It is forgotten."), Reading))]
pub(crate) async fn forget(
    _: Admin,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    find_project(&app.core, &id).await?;
    app.core.runs.forget_instance(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}
