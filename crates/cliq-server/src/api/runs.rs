//! Runs: start, list, look at, cancel, resume.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use cliq_dashboard::graph_of_run;
use cliq_model::{RunCursor, RunFilter, RunSpec, RunState};
use cliq_protocol::{Budget, RunId, Timestamp};
use cliq_supervisor::RunRules;
use cliq_supervisor::internals::{check_budget, check_phase};
use cliq_web::{
    Caller, Json, Path, Problem, Query, Reader, RunDocument, RunSummary, Runner, find_run, list_runs,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// The most runs of a page.
const MAX_PAGE: u32 = 200;
/// The most characters of a search.
const MAX_SEARCH: usize = 500;

/// Request for a run: a team in a new workspace, or the team of a registered project.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// The team, `@scope/name`. Needed unless `instance` has an assembled team.
    #[schema(example = "@cliq/hello-world", pattern = "^@[a-z][a-z0-9-]*/[a-z][a-z0-9-]*$")]
    pub(crate) team: Option<String>,
    /// The registered project to run in. Without it, a fresh workspace is made.
    pub(crate) instance: Option<String>,
    /// Title of the run. Default: the first line of the requirement, or the name of the team.
    #[schema(max_length = 1000)]
    pub(crate) title: Option<String>,
    /// Requirement for the team.
    #[schema(max_length = 1048576)]
    pub(crate) requirement: Option<String>,
    /// Values for inputs of the team.
    #[serde(default)]
    pub(crate) inputs: BTreeMap<String, String>,
    /// Repositories that are cloned into the fresh workspace: https and ssh addresses of public hosts.
    #[serde(default)]
    #[schema(max_items = 20)]
    pub(crate) repos: Vec<String>,
    /// The agent for phases that name none.
    pub(crate) agent: Option<String>,
    /// The most phases that work at the same time.
    #[serde(default, deserialize_with = "cliq_web::whole_number")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub(crate) max_parallel: Option<u32>,
    /// The most tokens that the run's language models may use.
    #[serde(default, deserialize_with = "cliq_web::whole_number")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    pub(crate) budget_tokens: Option<u64>,
    /// The most US dollars that the run's language models may cost.
    #[schema(exclusive_minimum = 0.0)]
    pub(crate) budget_usd: Option<f64>,
}

impl NewRun {
    fn into_request(self, caller: &Caller) -> cliq_supervisor::NewRun {
        let Self {
            team,
            instance,
            title,
            requirement,
            inputs,
            repos,
            agent,
            max_parallel,
            budget_tokens,
            budget_usd,
        } = self;
        let budget = Budget { tokens: budget_tokens, usd: budget_usd };
        // The sandbox of a run of the API is that of settings and team.
        let sandbox = None;
        let trace = crate::trace::incoming();
        let spec =
            RunSpec { team, title, requirement, inputs, agent, max_parallel, budget, repos, sandbox, trace };
        cliq_supervisor::NewRun::new(spec).with_instance(instance).with_caller(&caller.label)
    }
}

/// Options of a resumption.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resumption {
    /// Phase that runs again, with all phases that depend on it. Without it, the run continues where it stopped.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9_-]*$")]
    from: Option<String>,
    /// As for a new run, in its place.
    #[serde(default, deserialize_with = "cliq_web::whole_number")]
    #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
    budget_tokens: Option<u64>,
    /// As for a new run, in its place.
    #[schema(exclusive_minimum = 0.0)]
    budget_usd: Option<f64>,
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunPage {
    runs: Vec<RunSummary>,
    /// The cursor of the next page; `null` on the last.
    next: Option<String>,
}

/// Filter for runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// In one of these states, separated by commas.
    #[param(
        example = "queued,running",
        pattern = "^((queued|starting|running|completed|escalated|failed|cancelled)?,)*(queued|starting|running|completed|escalated|failed|cancelled)?$"
    )]
    state: Option<String>,
    /// Of this team.
    team: Option<String>,
    /// In this registered project.
    instance: Option<String>,
    /// Of the caller with this label.
    caller: Option<String>,
    /// Requested at this time or later, in ISO-8601 with its zone.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Requested before this time, in ISO-8601 with its zone.
    #[param(format = DateTime)]
    until: Option<String>,
    /// Words, each of which begins a word of the title, the team, the reason or the id.
    #[param(max_length = 500)]
    q: Option<String>,
    /// The cursor of a page: `next` of the page before.
    #[param(pattern = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")]
    cursor: Option<String>,
    /// The most runs of a page. 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

/// Lists runs, newest first.
#[utoipa::path(get, path = "/api/v1/runs", operation_id = "list_runs", tag = "runs", params(ListQuery), responses((status = 200, body = RunPage), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<RunPage>, Problem> {
    let words = query.state.as_deref().unwrap_or_default().split(',').filter(|word| !word.is_empty());
    let states = words.map(|word| {
        RunState::parse(word).ok_or_else(|| {
            let known = RunState::ALL.map(RunState::as_str).join(", ");
            Problem::bad_request(format!("`state` is one or several of: {known}"))
        })
    });
    let after = query.cursor.as_deref().map(|cursor| {
        RunId::parse_uuid(cursor)
            .map(RunCursor)
            .ok_or_else(|| Problem::bad_request("`cursor` is not a cursor"))
    });
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
    }
    if query.q.as_ref().is_some_and(|q| q.chars().count() > MAX_SEARCH) {
        return Err(Problem::bad_request(format!("`q` has at most {MAX_SEARCH} characters")));
    }
    let filter = RunFilter {
        states: states.collect::<Result<_, _>>()?,
        team: query.team,
        instance: query.instance,
        caller: query.caller,
        since: time("since", query.since.as_deref())?,
        until: time("until", query.until.as_deref())?,
        words: RunFilter::words_of(query.q.as_deref().unwrap_or_default()),
        with_trials: false,
        after: after.transpose()?,
        limit,
    };
    let (runs, next) = list_runs(&app.core, filter).await?;
    Ok(axum::Json(RunPage { runs, next }))
}

/// Parses a time of a query.
fn time(field: &str, text: Option<&str>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let wrong =
        |_| Problem::bad_request(format!("`{field}` is a time in ISO-8601, such as 2026-01-31T12:00:00Z"));
    Timestamp::parse(text).map(Some).map_err(wrong)
}

/// Starts a run. It waits in a queue until a place is free.
#[utoipa::path(post, path = "/api/v1/runs", operation_id = "start_run", tag = "runs", request_body = NewRun,
    responses((status = 201, body = RunSummary, headers(("location" = String, description = "The address of the run."))), Reading, Changing))]
pub(crate) async fn start(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Json(new): Json<NewRun>,
) -> Result<impl IntoResponse, Problem> {
    let supervisor = &app.core.supervisor;
    let checked = supervisor.check(new.into_request(&caller), &RunRules::for_token()).await?;
    let run = supervisor.submit(checked).await?;
    let location = format!("/api/v1/runs/{}", run.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(RunSummary::of(&run))))
}

/// A run with its phases.
#[utoipa::path(get, path = "/api/v1/runs/{id}", operation_id = "get_run", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = RunDocument), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<RunDocument>, Problem> {
    Ok(axum::Json(find_run(&app.core, &id).await?.1))
}

/// Cancels a run. One that works ends within seconds; follow its events to see it end.
#[utoipa::path(post, path = "/api/v1/runs/{id}/cancel", operation_id = "cancel_run", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 202, body = RunSummary), Reading, Changing))]
pub(crate) async fn cancel(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let run = app.run(&id).await?;
    let run = app.core.supervisor.cancel(&run.id, &caller.label).await;
    let run = run.map_err(|error| Problem::of_change(error, "cancelled"))?;
    Ok((StatusCode::ACCEPTED, axum::Json(RunSummary::of(&run))))
}

/// Resumes a run that ended: it goes on where it stopped, or from a phase.
#[utoipa::path(post, path = "/api/v1/runs/{id}/resume", operation_id = "resume_run", tag = "runs", params(("id" = String, Path, description = "The run.")),
    request_body = Resumption, responses((status = 202, body = RunSummary), Reading, Changing))]
pub(crate) async fn resume(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(resumption): Json<Resumption>,
) -> Result<impl IntoResponse, Problem> {
    let run = app.run(&id).await?;
    let budget = Budget { tokens: resumption.budget_tokens, usd: resumption.budget_usd };
    check_budget(&budget).map_err(|errors| {
        Problem::unprocessable("the run cannot be resumed", errors.iter().map(ToString::to_string).collect())
    })?;
    // Before its phases are looked at: the team of the project may be that of a later run.
    let checked = app.core.supervisor.check_resumable(&run).await;
    checked.map_err(|error| Problem::of_change(error, "resumed"))?;
    if let Some(from) = resumption.from.clone() {
        app.core.in_project(&run, move |_, project| Ok(check_phase(project, &from)?)).await?;
    }
    let resumed = app.core.supervisor.resume(&run.id, &caller.label, resumption.from, budget).await;
    let run = resumed.map_err(|error| Problem::of_change(error, "resumed"))?;
    Ok((StatusCode::ACCEPTED, axum::Json(RunSummary::of(&run))))
}

/// The timeline of a run: what happened, why it ended, and which files to read.
#[utoipa::path(get, path = "/api/v1/runs/{id}/timeline", operation_id = "get_timeline", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = Object, description = "The document of `cliq explain --json`."), Reading))]
pub(crate) async fn timeline(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    let run = app.run(&id).await?;
    let timeline = app.core.in_project(&run, |run, project| {
        let record = project.recorded_run(Some(run.id.as_str()));
        let record =
            record.map_err(|_| Problem::not_found("the run has not started, or its record is gone"))?;
        Ok(json!(record.timeline(cliq_fs::now())))
    });
    timeline.await.map(axum::Json)
}

/// The phases of a run as a picture.
#[utoipa::path(get, path = "/api/v1/runs/{id}/graph.svg", operation_id = "get_run_graph", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = String, content_type = "image/svg+xml"), Reading))]
pub(crate) async fn graph(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let svg = graph_of_run(&app.core, &id).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], svg))
}
