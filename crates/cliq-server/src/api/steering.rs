//! Steering messages of a run (docs/steering.md).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cliq_web::{Json, Path, Problem, Reader, Runner, SteeringDocument, find_run, new_steering};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::errors::{Changing, Reading};
use crate::app::App;

/// New steering message.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewMessage {
    /// Guidance for the agents, at most 16 KiB: an addition to the task, which it does not replace.
    #[schema(min_length = 1, max_length = 16384, pattern = r"\S")]
    text: String,
    /// Phase that receives the message. Without it, all phases do.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    phase: Option<String>,
    /// Id of the message. A message that is sent again with its id has no effect.
    #[schema(pattern = "^[!-~]{1,128}$")]
    id: Option<String>,
}

/// Steering messages of a run, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SteeringList {
    messages: Vec<SteeringDocument>,
}

/// Sends guidance to a run that has not ended. Agents that listen receive it at once, others when they start.
#[utoipa::path(post, path = "/api/v1/runs/{id}/steering", operation_id = "steer_run", tag = "runs", params(("id" = String, Path, description = "The run.")),
    request_body = NewMessage, responses((status = 201, body = SteeringDocument), Reading, Changing))]
pub(crate) async fn send(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(new): Json<NewMessage>,
) -> Result<impl IntoResponse, Problem> {
    let run = app.run(&id).await?;
    let new = new_steering(&caller, new.id.as_deref(), &new.text, new.phase.as_deref())?;
    let message = app.core.supervisor.steer(&run.id, new).await.map_err(Problem::of_steering)?;
    // A message that was sent before may have been delivered.
    let (_, document) = find_run(&app.core, &id).await?;
    let known = document.steering.into_iter().find(|known| known.id == message.id);
    Ok((StatusCode::CREATED, axum::Json(known.unwrap_or_else(|| SteeringDocument::pending(&message)))))
}

/// Lists the steering messages of a run with their deliveries.
#[utoipa::path(get, path = "/api/v1/runs/{id}/steering", operation_id = "list_steering", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = SteeringList), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<SteeringList>, Problem> {
    let (_, document) = find_run(&app.core, &id).await?;
    Ok(axum::Json(SteeringList { messages: document.steering }))
}
