//! Signals over the API: a way into the queue (docs/signals.md).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cliq_gateway::{Filter, NewSignal, Signal, SignalStatus};
use cliq_web::{Json, Path, Problem, Query, Reader, Runner, find_project};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// The most signals of a list.
const MAX_LIST: u32 = 1000;

/// Signals.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignalList {
    /// Signals as `cliq signal list --json` has them, oldest first.
    #[schema(value_type = Vec<Object>)]
    signals: Vec<Value>,
}

/// A signal that is to be put into the queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalToEmit {
    /// Such as `implement_finished`; a wrong one is refused with the list of all.
    #[serde(rename = "type")]
    kind: String,
    /// The plan that it is about.
    plan: String,
    /// An object, or free text.
    #[schema(value_type = Option<Object>)]
    payload: Option<Value>,
}

/// Filter for signals.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignalQuery {
    /// Of this registered project.
    instance: Option<String>,
    /// About this plan.
    plan: Option<String>,
    /// `pending`, `processing`, `done` or `failed`.
    #[param(pattern = "^(pending|processing|done|failed)$")]
    status: Option<String>,
    /// The newest so many. 100 unless said otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

fn status(word: &str) -> Result<SignalStatus, Problem> {
    SignalStatus::parse(word).ok_or_else(|| {
        let words = SignalStatus::ALL.map(SignalStatus::as_str).join(", ");
        Problem::bad_request(format!("`status` is one of: {words}"))
    })
}

/// Lists signals, the oldest first.
#[utoipa::path(get, path = "/api/v1/signals", operation_id = "list_signals", tag = "plans", params(SignalQuery), responses((status = 200, body = SignalList), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Query(query): Query<SignalQuery>,
) -> Result<axum::Json<SignalList>, Problem> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=MAX_LIST).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_LIST}")));
    }
    let project = match &query.instance {
        None => None,
        Some(id) => Some(find_project(&app.core, id).await?.path.into_string()),
    };
    let status = query.status.as_deref().map(status).transpose()?;
    let filter = Filter { project, plan: query.plan, status, limit: Some(limit) };
    let signals = app.core.signals.signals(&filter).await?;
    Ok(axum::Json(SignalList { signals: signals.iter().map(|signal| json!(signal)).collect() }))
}

/// Puts a signal into the queue.
#[utoipa::path(post, path = "/api/v1/instances/{id}/signals", operation_id = "emit_signal", tag = "plans", request_body = SignalToEmit,
    params(("id" = String, Path, description = "The project.")), responses((status = 201, body = Object), Reading, Changing))]
pub(crate) async fn emit(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(new): Json<SignalToEmit>,
) -> Result<impl IntoResponse, Problem> {
    let instance = find_project(&app.core, &id).await?;
    let payload = match new.payload {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    let signal = NewSignal::parse(&new.kind, &new.plan, &payload)
        .map_err(|refused| Problem::unprocessable("the signal is refused", refused.problems))?;
    let id = app.core.signals.create(instance.path.as_str(), &signal).await?;
    Ok((StatusCode::CREATED, axum::Json(json!(find(&app, &id.to_string()).await?))))
}

async fn find(app: &App, id: &str) -> Result<Signal, Problem> {
    let unknown = || Problem::not_found("there is no signal of this number");
    let id: i64 = id.parse().map_err(|_| unknown())?;
    app.core.signals.signal(id).await?.ok_or_else(unknown)
}

/// A signal with its payload and its result.
#[utoipa::path(get, path = "/api/v1/signals/{id}", operation_id = "get_signal", tag = "plans", params(("id" = String, Path, description = "Its number.")),
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    Ok(axum::Json(json!(find(&app, &id).await?)))
}

/// Makes a failed signal pending again.
#[utoipa::path(post, path = "/api/v1/signals/{id}/retry", operation_id = "retry_signal", tag = "plans", params(("id" = String, Path, description = "Its number.")),
    responses((status = 200, body = Object), Reading, Changing))]
pub(crate) async fn retry(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    let signal = find(&app, &id).await?;
    if !app.core.signals.retry(signal.id).await? {
        return Err(Problem::conflict("only a failed signal can be made pending again"));
    }
    Ok(axum::Json(json!(find(&app, &id).await?)))
}
