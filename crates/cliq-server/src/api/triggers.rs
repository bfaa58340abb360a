//! Triggers and their firings (docs/triggers.md).

use std::sync::Arc;

use axum::extract::State;
use cliq_model::FiringState;
use cliq_triggers::{FiringDocument, PlanDocument, TestRequest, TriggerDocument};
use cliq_web::{Json, Path, Problem, Query, Reader, Runner, find_trigger, list_firings, set_trigger_paused};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// The most firings of a page.
const MAX_PAGE: u32 = 200;

/// Triggers in the order of the file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TriggerList {
    triggers: Vec<TriggerDocument>,
    /// Problem of the present text of the file, if it cannot be used. The triggers are then those of its last valid text.
    problem: Option<String>,
}

/// A page of firings, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiringPage {
    firings: Vec<FiringDocument>,
    /// The cursor of the next page; `null` on the last.
    next: Option<i64>,
}

/// Filter for firings.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FiringQuery {
    /// In this state: `pending`, `started`, `skipped` or `failed`.
    #[param(pattern = "^(pending|started|skipped|failed)$")]
    state: Option<String>,
    /// The cursor of a page: `next` of the page before.
    #[param(minimum = 1)]
    cursor: Option<i64>,
    /// The most firings of a page. 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Lists triggers with their state, next ticks and newest firing.
#[utoipa::path(get, path = "/api/v1/triggers", operation_id = "list_triggers", tag = "triggers", responses((status = 200, body = TriggerList), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<TriggerList>, Problem> {
    let triggers = app.core.triggers.list().await?;
    Ok(axum::Json(TriggerList { triggers, problem: app.core.triggers.problem() }))
}

/// A trigger.
#[utoipa::path(get, path = "/api/v1/triggers/{name}", operation_id = "get_trigger", tag = "triggers", params(("name" = String, Path, description = "The trigger.")),
    responses((status = 200, body = TriggerDocument), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<axum::Json<TriggerDocument>, Problem> {
    Ok(axum::Json(find_trigger(&app.core, &name).await?))
}

/// Lists the firings of a trigger, newest first: time, cause, digest of the payload, and the run or the reason for none.
#[utoipa::path(get, path = "/api/v1/triggers/{name}/firings", operation_id = "list_firings", tag = "triggers",
    params(("name" = String, Path, description = "The trigger."), FiringQuery), responses((status = 200, body = FiringPage), Reading))]
pub(crate) async fn firings(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Query(query): Query<FiringQuery>,
) -> Result<axum::Json<FiringPage>, Problem> {
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
    }
    if query.cursor.is_some_and(|cursor| cursor < 1) {
        return Err(Problem::bad_request("`cursor` is not a cursor"));
    }
    let state = query.state.as_deref().map(|word| {
        let wrong = || Problem::bad_request("`state` is one of: pending, started, skipped, failed");
        FiringState::parse(word).ok_or_else(wrong)
    });
    let state = state.transpose()?;
    find_trigger(&app.core, &name).await?;
    let (firings, next) = list_firings(&app.core, Some(name), state, query.cursor, limit).await?;
    Ok(axum::Json(FiringPage { firings, next }))
}

/// Shows the run that a payload would start, or the reason for none. Starts and stores nothing.
#[utoipa::path(post, path = "/api/v1/triggers/{name}/test", operation_id = "test_trigger", tag = "triggers", request_body = TestRequest,
    params(("name" = String, Path, description = "The trigger.")), responses((status = 200, body = PlanDocument), Reading, Changing))]
pub(crate) async fn test(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    Json(request): Json<TestRequest>,
) -> Result<axum::Json<PlanDocument>, Problem> {
    let core = Arc::clone(&app.core);
    let tested = app.core.blocking(move |_| Ok(core.triggers.test(&name, &request))).await?;
    tested.map(axum::Json).ok_or_else(|| Problem::not_found("there is no trigger of this name"))
}

/// Pauses a trigger: its causes start nothing until it is resumed.
#[utoipa::path(post, path = "/api/v1/triggers/{name}/pause", operation_id = "pause_trigger", tag = "triggers", params(("name" = String, Path, description = "The trigger.")),
    responses((status = 200, body = TriggerDocument), Reading, Changing))]
pub(crate) async fn pause(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<axum::Json<TriggerDocument>, Problem> {
    Ok(axum::Json(set_trigger_paused(&app.core, &name, true).await?))
}

/// Resumes a trigger. Ticks and changes while it was paused are not caught up.
#[utoipa::path(post, path = "/api/v1/triggers/{name}/resume", operation_id = "resume_trigger", tag = "triggers", params(("name" = String, Path, description = "The trigger.")),
    responses((status = 200, body = TriggerDocument), Reading, Changing))]
pub(crate) async fn resume(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
) -> Result<axum::Json<TriggerDocument>, Problem> {
    Ok(axum::Json(set_trigger_paused(&app.core, &name, false).await?))
}
