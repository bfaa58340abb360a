//! Runs: start, list, look at, cancel, resume.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use cliq_orchestrator::{Record, RunView};
use cliq_project::{Project, ProjectError};
use cliq_protocol::Budget;
use cliq_runs::{Run, RunCursor, RunFilter, RunId, RunOrigin, RunRequest, RunState, RunTotals};
use cliq_workflow::ValidatedWorkflow;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use super::input::{Json, Path, Query};
use crate::access::{Caller, Reader, Runner};
use crate::app::App;
use crate::clock;
use crate::pages::graph_of_run;
use crate::problem::Problem;
use crate::supervisor::{ChangeError, check_repository, status_document};

/// The most runs of a page.
const MAX_PAGE: u32 = 200;

/// What is to be run: a team in a fresh workspace, or the team of a registered project.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewRun {
    /// The team, `@scope/name`. Needed unless `instance` has an assembled team.
    #[schema(example = "@cliq/hello-world")]
    pub(crate) team: Option<String>,
    /// The registered project to run in. Without it, a fresh workspace is made.
    pub(crate) instance: Option<String>,
    /// What the team is to do.
    #[schema(max_length = 1048576)]
    pub(crate) requirement: Option<String>,
    /// Values for inputs of the team.
    #[serde(default)]
    pub(crate) inputs: BTreeMap<String, String>,
    /// Repositories that are cloned into the fresh workspace: https and ssh addresses of public hosts.
    #[serde(default)]
    pub(crate) repos: Vec<String>,
    /// The agent for phases that name none.
    pub(crate) agent: Option<String>,
    /// The most phases that work at the same time.
    #[schema(minimum = 1)]
    pub(crate) max_parallel: Option<u32>,
    /// The most tokens that the run's language models may use.
    #[schema(minimum = 1)]
    pub(crate) budget_tokens: Option<u64>,
    /// The most US dollars that the run's language models may cost.
    #[schema(exclusive_minimum = 0.0)]
    pub(crate) budget_usd: Option<f64>,
}

/// How a run goes on.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Resumption {
    /// The phase that runs again, with all that depend on it. Without it, the run goes on where it stopped.
    from: Option<String>,
    /// As for a new run, in its place.
    #[schema(minimum = 1)]
    budget_tokens: Option<u64>,
    /// As for a new run, in its place.
    #[schema(exclusive_minimum = 0.0)]
    budget_usd: Option<f64>,
}

/// A run in a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(crate) struct RunSummary {
    /// Its id, a UUID.
    pub(crate) id: String,
    /// The name of its team.
    pub(crate) team: String,
    /// Where it stands.
    pub(crate) state: RunState,
    /// Where it comes from.
    pub(crate) origin: RunOrigin,
    /// The registered project that it works in; `null` for a workspace of its own.
    pub(crate) instance: Option<String>,
    /// Who asked for it.
    pub(crate) caller: String,
    /// Why it did not complete.
    pub(crate) reason: Option<String>,
    /// The phase that the reason is about.
    pub(crate) phase: Option<String>,
    /// Whether a caller wants it cancelled.
    pub(crate) cancel_requested: bool,
    /// When it was asked for, UTC.
    pub(crate) queued_at: String,
    /// When it began, UTC.
    pub(crate) started_at: Option<String>,
    /// When it ended, UTC.
    pub(crate) ended_at: Option<String>,
    /// What it used.
    pub(crate) usage: RunTotals,
    /// The number of its last event.
    pub(crate) last_event: i64,
}

/// A run with its phases.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunDocument {
    #[serde(flatten)]
    pub(crate) summary: RunSummary,
    /// What the team is to do.
    pub(crate) requirement: Option<String>,
    /// Values for inputs of the team.
    pub(crate) inputs: BTreeMap<String, String>,
    /// The directory that it works in.
    pub(crate) workspace: String,
    /// How often it was resumed because its orchestrator died.
    pub(crate) recoveries: u32,
    /// Its phases, as in `cliq status --json`; those of a team phase have `run`.
    #[schema(value_type = Vec<Object>)]
    pub(crate) phases: Value,
}

/// A page of runs, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunPage {
    runs: Vec<RunSummary>,
    /// The cursor of the next page; `null` on the last.
    next: Option<String>,
}

/// Which runs.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListQuery {
    /// In one of these states, separated by commas.
    #[param(example = "queued,running")]
    state: Option<String>,
    /// Of this team.
    team: Option<String>,
    /// In this registered project.
    instance: Option<String>,
    /// The cursor of a page: `next` of the page before.
    cursor: Option<String>,
    /// The most runs of a page. 50 unless said otherwise.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
}

impl RunSummary {
    pub(crate) fn of(run: &Run) -> Self {
        Self {
            id: run.id.to_string(),
            team: run.team.clone(),
            state: run.life.state,
            origin: run.origin,
            instance: run.instance.clone(),
            caller: run.caller.clone(),
            reason: run.reason.clone(),
            phase: run.phase.clone(),
            cancel_requested: run.life.cancel_requested,
            queued_at: run.queued_at.clone(),
            started_at: run.started_at.clone(),
            ended_at: run.ended_at.clone(),
            usage: run.totals,
            last_event: run.last_event,
        }
    }
}

/// The runs that a filter gives, with the cursor of the next page.
pub(crate) async fn summaries(
    app: &App,
    mut filter: RunFilter,
) -> Result<(Vec<RunSummary>, Option<String>), Problem> {
    // One more than requested: it shows whether there is a next page.
    let limit = filter.limit as usize;
    filter.limit += 1;
    let mut runs = app.runs.runs(&filter).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next = runs.last().filter(|_| more).map(|run| run.id.to_string());
    Ok((runs.iter().map(RunSummary::of).collect(), next))
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
        RunId::parse(cursor).map(RunCursor).ok_or_else(|| Problem::bad_request("`cursor` is no cursor"))
    });
    let limit = query.limit.unwrap_or(50);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
    }
    let filter = RunFilter {
        states: states.collect::<Result<_, _>>()?,
        team: query.team,
        instance: query.instance,
        after: after.transpose()?,
        limit,
    };
    let (runs, next) = summaries(&app, filter).await?;
    Ok(axum::Json(RunPage { runs, next }))
}

/// Starts a run. It waits in a queue until a place is free.
#[utoipa::path(post, path = "/api/v1/runs", operation_id = "start_run", tag = "runs", request_body = NewRun,
    responses((status = 201, body = RunSummary, headers(("location" = String, description = "The address of the run."))), Reading, Changing))]
pub(crate) async fn start(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Json(new): Json<NewRun>,
) -> Result<impl IntoResponse, Problem> {
    let run = create(&app, &caller, new).await?;
    let location = format!("/api/v1/runs/{}", run.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], axum::Json(RunSummary::of(&run))))
}

/// Checks what is asked for and puts it into the queue.
pub(crate) async fn create(app: &Arc<App>, caller: &Caller, new: NewRun) -> Result<Run, Problem> {
    let mut errors: Vec<String> = new.repos.iter().filter_map(|url| check_repository(url).err()).collect();
    if new.instance.is_some() && !new.repos.is_empty() {
        errors.push("`repos` are cloned into fresh workspaces only: leave out `instance`".to_owned());
    }
    if new.max_parallel == Some(0) || new.budget_tokens == Some(0) {
        errors.push("`max_parallel` and `budget_tokens` are whole numbers from 1 on".to_owned());
    }
    if new.budget_usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0) {
        errors.push("`budget_usd` is a number above 0".to_owned());
    }
    // What becomes an argument of a program cannot have a zero byte, and nothing else needs one.
    let texts =
        new.inputs.iter().flat_map(|(key, value)| [key, value]).chain(&new.agent).chain(&new.requirement);
    if texts.into_iter().any(|text| text.contains('\0'))
        || new.inputs.keys().any(|key| key.is_empty() || key.contains('='))
    {
        errors.push("a text has a zero byte, or an input has no proper name".to_owned());
    }
    if !errors.is_empty() {
        return Err(Problem::unprocessable("the run cannot be started", errors));
    }
    let instance = match &new.instance {
        None => None,
        Some(id) => Some(app.runs.instance(id).await?.ok_or_else(|| {
            Problem::unprocessable(format!("there is no registered project `{id}`"), Vec::new())
        })?),
    };
    let host = app.options.host.clone();
    let (reference, path) = (new.team.clone(), instance.as_ref().map(|instance| instance.path.clone()));
    let workflow = tokio::task::spawn_blocking(move || find_workflow(&host, reference, path))
        .await
        .map_err(|error| Problem::unavailable(error.to_string()))??;
    check_inputs(&workflow, &new.inputs)?;
    let id = RunId::generate();
    let workspace = match &instance {
        Some(instance) => instance.path.clone(),
        None => app.options.workspace_root.join(id.as_str()),
    };
    let mut run = Run::new(id, workflow.name, RunOrigin::Server, workspace, clock::now());
    run.instance = instance.map(|instance| instance.id);
    run.caller.clone_from(&caller.label);
    run.request = RunRequest {
        team: new.team,
        requirement: new.requirement,
        inputs: new.inputs,
        agent: new.agent,
        max_parallel: new.max_parallel,
        budget: Budget { tokens: new.budget_tokens, usd: new.budget_usd },
        repos: new.repos,
        ..RunRequest::default()
    };
    Ok(app.supervisor.submit(run).await?)
}

fn find_workflow(
    host: &cliq_project::Host,
    reference: Option<String>,
    instance: Option<camino::Utf8PathBuf>,
) -> Result<ValidatedWorkflow, Problem> {
    match (reference, instance) {
        (Some(name), _) => {
            // A path would let a caller choose any folder of the machine.
            // Capabilities of the A2A agent are for its callers, where they are enabled.
            if !name.starts_with('@') || name.contains("..") || name.starts_with("@builder/") {
                return Err(Problem::unprocessable(
                    format!("`{name}` is no team: write @scope/name"),
                    Vec::new(),
                ));
            }
            let found = host.find_team(&name)?;
            let checked = found.folder.check();
            checked.workflow.ok_or_else(|| {
                let line = |d: &cliq_workflow::Diagnostic| {
                    format!("line {}: {} ({})", d.span.line, d.message, d.help)
                };
                Problem::unprocessable(
                    format!("team {name} has errors"),
                    checked.diagnostics.iter().map(line).collect(),
                )
            })
        }
        (None, Some(path)) => {
            let project = Project::open(&path, host.clone())
                .map_err(|_| Problem::conflict("the project is gone from its directory"))?;
            project.workflow().map_err(|error| match error {
                ProjectError::NoTeam => {
                    Problem::unprocessable("no team is assembled in the project: name a `team`", Vec::new())
                }
                other => other.into(),
            })
        }
        (None, None) => Err(Problem::unprocessable("name a `team` or an `instance`", Vec::new())),
    }
}

fn check_inputs(workflow: &ValidatedWorkflow, given: &BTreeMap<String, String>) -> Result<(), Problem> {
    let missing = workflow
        .inputs
        .iter()
        .filter(|input| input.required && input.default.is_none() && !given.contains_key(&input.name));
    let unknown = given.keys().filter(|key| !workflow.inputs.iter().any(|input| input.name == **key));
    let errors: Vec<String> = missing
        .map(|input| {
            let about = input.description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
            format!("input `{}` is missing{about}", input.name)
        })
        .chain(unknown.map(|key| format!("the team has no input `{key}`")))
        .collect();
    if errors.is_empty() {
        Ok(())
    } else {
        Err(Problem::unprocessable("the inputs do not fit the team", errors))
    }
}

/// The state of a run after its stored events.
async fn view_of_events(app: &Arc<App>, run: &Run) -> Result<RunView, Problem> {
    const PAGE: u32 = 1000;
    let (mut view, mut after) = (RunView::empty(), 0);
    loop {
        let rows = app.runs.run_events(&run.id, after, PAGE).await?;
        // Events of the server's own are no records of the journal.
        rows.iter()
            .filter_map(|row| Record::decode(row.data.as_bytes()).ok())
            .for_each(|record| view.apply(&record));
        match rows.last() {
            Some(last) => after = last.id,
            None => return Ok(view),
        }
    }
}

/// A run with its phases as they are now.
pub(crate) async fn find(app: &Arc<App>, id: &str) -> Result<(Run, RunDocument), Problem> {
    let run = app.run(id).await?;
    // The view of an active run is not stored with each event.
    let is_active = !run.life.state.is_final();
    let view = match app.hub.view(&run.id).filter(|_| is_active) {
        // Another server has it: what it has told so far is in the database.
        None if is_active && app.runs.is_shared() => Some(view_of_events(app, &run).await?),
        view => view,
    };
    let document = match view {
        Some(view) => {
            let (host, run) = (app.options.host.clone(), run.clone());
            let made = tokio::task::spawn_blocking(move || status_document(&host, &run, &view)).await;
            made.unwrap_or_default()
        }
        None => run.view.clone(),
    };
    let phases = document.get("phases").cloned().unwrap_or_else(|| json!([]));
    let document = RunDocument {
        summary: RunSummary::of(&run),
        requirement: run.request.requirement.clone(),
        inputs: run.request.inputs.clone(),
        workspace: run.workspace.to_string(),
        recoveries: run.life.recoveries,
        phases,
    };
    Ok((run, document))
}

/// A run with its phases.
#[utoipa::path(get, path = "/api/v1/runs/{id}", operation_id = "get_run", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = RunDocument), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<RunDocument>, Problem> {
    Ok(axum::Json(find(&app, &id).await?.1))
}

fn refused(error: ChangeError, wish: &str) -> Problem {
    match error {
        ChangeError::NoRun => Problem::not_found("there is no run of this id"),
        ChangeError::TaskIsOver => Problem::conflict(error.to_string()),
        ChangeError::NotAllowed(why) => Problem::conflict(format!("{why}, and cannot be {wish}")),
        ChangeError::Store(error) => error.into(),
    }
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
    let run = app.supervisor.cancel(&run.id, &caller.label).await;
    let run = run.map_err(|error| refused(error, "cancelled"))?;
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
    if resumption.budget_tokens == Some(0)
        || resumption.budget_usd.is_some_and(|usd| !usd.is_finite() || usd <= 0.0)
    {
        return Err(Problem::unprocessable("a budget is a number above 0", Vec::new()));
    }
    if let Some(from) = &resumption.from {
        check_phase(&app, &run, from)?;
    }
    let budget = Budget { tokens: resumption.budget_tokens, usd: resumption.budget_usd };
    let resumed = app.supervisor.resume(&run.id, &caller.label, resumption.from, budget).await;
    let run = resumed.map_err(|error| refused(error, "resumed"))?;
    Ok((StatusCode::ACCEPTED, axum::Json(RunSummary::of(&run))))
}

/// Checks that a run can go on from a phase.
pub(crate) fn check_phase(app: &App, run: &Run, from: &str) -> Result<(), Problem> {
    let workflow = app.project(run)?.workflow()?;
    let main = || workflow.phases().filter(|(_, phase)| !phase.support).map(|(_, phase)| phase.name.as_str());
    if main().any(|name| name == from) {
        return Ok(());
    }
    let names = main().collect::<Vec<_>>().join(", ");
    Err(Problem::unprocessable(format!("a run of this team can go on from: {names}"), Vec::new()))
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
    let project = app.project(&run)?;
    let made = tokio::task::spawn_blocking(move || {
        project
            .recorded_run(Some(run.id.as_str()))
            .map(|record| json!(record.timeline(cliq_fs::now_millis())))
    });
    let made = made.await.map_err(|error| Problem::unavailable(error.to_string()))?;
    made.map(axum::Json).map_err(|_| Problem::not_found("the run has not begun, or its record is gone"))
}

/// The phases of a run as a picture.
#[utoipa::path(get, path = "/api/v1/runs/{id}/graph.svg", operation_id = "get_run_graph", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = String, content_type = "image/svg+xml"), Reading))]
pub(crate) async fn graph(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, Problem> {
    let svg = graph_of_run(&app, &id).await?;
    Ok(([(header::CONTENT_TYPE, "image/svg+xml")], svg))
}
