//! Changes that a run made in its workspace.

use std::sync::Arc;

use axum::extract::State;
use cliq_model::Run;
use cliq_project::Project;
use cliq_web::{ActivationDiff, Path, Problem, Query, Reader, RunCheckpoint, changes_of, checkpoints_of};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;

/// Changes of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Changes {
    activations: Vec<ActivationDiff>,
}

/// Checkpoints of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunCheckpoints {
    checkpoints: Vec<RunCheckpoint>,
}

/// Selection of changes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChangesQuery {
    /// The phase, the item `PHASE.INDEX`, or the activation `PHASE.N`. Without it, the whole run.
    of: Option<String>,
    /// Whether the differences are in the answer.
    #[serde(default)]
    patch: bool,
}

/// Returns the changes that a run, a phase or one activation made in the workspace, from its checkpoints.
#[utoipa::path(get, path = "/api/v1/runs/{id}/changes", operation_id = "get_changes", tag = "runs",
    params(("id" = String, Path, description = "The run."), ChangesQuery), responses((status = 200, body = Changes), Reading))]
pub(crate) async fn changes(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<ChangesQuery>,
) -> Result<axum::Json<Changes>, Problem> {
    let run = app.run(&id).await?;
    let read =
        move |run: &Run, project: &Project| changes_of(project, &run.id, query.of.as_deref(), query.patch);
    let activations = app.core.in_project(&run, read).await?;
    Ok(axum::Json(Changes { activations }))
}

/// Lists the checkpoints of a run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/checkpoints", operation_id = "list_checkpoints", tag = "runs",
    params(("id" = String, Path, description = "The run.")), responses((status = 200, body = RunCheckpoints), Reading))]
pub(crate) async fn checkpoints(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<RunCheckpoints>, Problem> {
    let run = app.run(&id).await?;
    let read = |run: &Run, project: &Project| checkpoints_of(project, &run.id);
    let checkpoints = app.core.in_project(&run, read).await?;
    Ok(axum::Json(RunCheckpoints { checkpoints }))
}
