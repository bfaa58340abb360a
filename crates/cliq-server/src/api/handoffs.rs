//! Handoffs between phases.

use std::sync::Arc;

use axum::extract::State;
use cliq_web::{HandoffSummary, Path, Problem, Reader, list_handoffs, read_handoff};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::errors::Reading;
use crate::app::App;

/// The handoffs of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Handoffs {
    handoffs: Vec<HandoffSummary>,
}

/// Lists the handoffs of a run.
#[utoipa::path(get, path = "/api/v1/runs/{id}/handoffs", operation_id = "list_handoffs", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = Handoffs), Reading))]
pub(crate) async fn handoffs(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Handoffs>, Problem> {
    let run = app.run(&id).await?;
    let handoffs = app.core.in_project(&run, |run, _| Ok(list_handoffs(run))).await?;
    Ok(axum::Json(Handoffs { handoffs }))
}

/// A handoff (`docs/protocol.md`), at most 16 MiB.
#[utoipa::path(get, path = "/api/v1/runs/{id}/handoffs/{from}/{to}", operation_id = "get_handoff", tag = "runs",
    params(("id" = String, Path, description = "The run."), ("from" = String, Path, description = "The phase that wrote it."),
        ("to" = String, Path, description = "The phase that reads it.")),
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn handoff(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, from, to)): Path<(String, String, String)>,
) -> Result<axum::Json<Value>, Problem> {
    let run = app.run(&id).await?;
    let text = app.core.in_project(&run, move |run, _| read_handoff(run, &from, &to)).await?;
    let value: Value = cliq_protocol::lenient_json(text.as_bytes())
        .map_err(|_| Problem::not_found("the handoff is not whole"))?;
    Ok(axum::Json(value))
}
