//! Plans of registered projects.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cliq_gateway::PlanName;
use cliq_lifecycle::{Command, WorkId, plan_document};
use cliq_project::Project;
use cliq_web::{Json, Path, Problem, Query, Reader, Runner, find_project, list_plans, new_steering};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// Plans.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanList {
    /// Documents of `cliq plan status --json` (`docs/signals.md`).
    #[schema(value_type = Vec<Object>)]
    pub(crate) plans: Vec<Value>,
}

/// Events of a plan.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlanEvents {
    /// Events as `cliq plan events --json` has them, oldest first.
    #[schema(value_type = Vec<Object>)]
    events: Vec<Value>,
}

/// Range of events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AfterQuery {
    /// Only events with numbers above this one.
    #[serde(default)]
    #[param(minimum = 0)]
    after: i64,
}

/// Command for a plan.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(tag = "command", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum PlanCommand {
    /// Start it.
    Start,
    /// Give it up.
    Cancel,
    /// Do a plan that is done again, from the planning on.
    StartOver,
    /// Do its waves again.
    Reimplement,
    /// Review it again.
    RequestReview,
    /// Take up what was given up.
    Reopen,
    /// Answer a question that an agent asks.
    Answer {
        /// Number of the question. Required if there are several.
        #[serde(default, deserialize_with = "cliq_web::whole_number")]
        #[schema(minimum = 1, maximum = 9_007_199_254_740_991_i64)]
        question: Option<u64>,
        /// The answer.
        #[schema(pattern = "[A-Za-z0-9]")]
        text: String,
    },
    /// Send guidance to the agents that start from now on.
    Steer {
        /// Guidance, at most 16 KiB: an addition to the work, which it does not replace.
        #[schema(min_length = 1, max_length = 16384, pattern = r"\S")]
        text: String,
        /// Task whose agents receive it, such as `w1-t2`, or `plan` for agents of the plan itself. Without it, all agents do.
        task: Option<String>,
        /// Id of the message. A message that is sent again with its id has no effect.
        #[schema(pattern = "^[!-~]{1,128}$")]
        id: Option<String>,
    },
}

/// The project of an id in an address, and the name of its plan.
async fn locate(app: &App, id: &str, plan: &str) -> Result<(Project, PlanName), Problem> {
    let instance = find_project(&app.core, id).await?;
    let project = app.core.open_project(&instance).await?;
    let name = PlanName::parse(plan).map_err(|_| Problem::not_found("there is no plan of this name"))?;
    Ok((project, name))
}

/// Lists the plans of a project.
#[utoipa::path(get, path = "/api/v1/instances/{id}/plans", operation_id = "list_plans", tag = "plans", params(("id" = String, Path, description = "The project.")),
    responses((status = 200, body = PlanList), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<PlanList>, Problem> {
    let instance = find_project(&app.core, &id).await?;
    Ok(axum::Json(PlanList { plans: list_plans(&app.core, Some(instance.path.as_str())).await? }))
}

/// A plan with its tasks, jobs and questions.
#[utoipa::path(get, path = "/api/v1/instances/{id}/plans/{plan}", operation_id = "get_plan", tag = "plans",
    params(("id" = String, Path, description = "The project."), ("plan" = String, Path, description = "The plan.")),
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, plan)): Path<(String, String)>,
) -> Result<axum::Json<Value>, Problem> {
    let (project, name) = locate(&app, &id, &plan).await?;
    let (stored, row) = app.core.plans().load(project.dir().workspace().as_str(), name.as_str()).await?;
    Ok(axum::Json(plan_document(&stored, &row)))
}

/// Lists the events of a plan.
#[utoipa::path(get, path = "/api/v1/instances/{id}/plans/{plan}/events", operation_id = "list_plan_events", tag = "plans",
    params(("id" = String, Path, description = "The project."), ("plan" = String, Path, description = "The plan."), AfterQuery),
    responses((status = 200, body = PlanEvents), Reading))]
pub(crate) async fn events(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((id, plan)): Path<(String, String)>,
    Query(query): Query<AfterQuery>,
) -> Result<axum::Json<PlanEvents>, Problem> {
    if query.after < 0 {
        return Err(Problem::bad_request("`after` is a number from 0 on"));
    }
    let (project, name) = locate(&app, &id, &plan).await?;
    let workspace = project.dir().workspace().as_str();
    app.core.plans().load(workspace, name.as_str()).await?;
    let events = app.core.signals.events(workspace, name.as_str(), query.after).await?;
    Ok(axum::Json(PlanEvents { events: events.iter().map(|event| json!(event)).collect() }))
}

/// Does something with a plan. A daemon (`cliq daemon`) carries it out.
#[utoipa::path(post, path = "/api/v1/instances/{id}/plans/{plan}", operation_id = "command_plan", tag = "plans", request_body = PlanCommand,
    params(("id" = String, Path, description = "The project."), ("plan" = String, Path, description = "The plan.")),
    responses((status = 202, description = "It is done, or will be by the daemon."), Reading, Changing))]
pub(crate) async fn command(
    Runner(caller): Runner,
    State(app): State<Arc<App>>,
    Path((id, plan)): Path<(String, String)>,
    Json(command): Json<PlanCommand>,
) -> Result<StatusCode, Problem> {
    let (project, name) = locate(&app, &id, &plan).await?;
    let plans = app.core.plans();
    let command = match command {
        PlanCommand::Start => {
            project.start_plan(&plans, &name).await?;
            return Ok(StatusCode::ACCEPTED);
        }
        PlanCommand::Cancel => Command::Cancel,
        PlanCommand::StartOver => Command::StartOver,
        PlanCommand::Reimplement => Command::Reimplement,
        PlanCommand::RequestReview => Command::RequestReview,
        PlanCommand::Reopen => Command::Reopen,
        PlanCommand::Answer { text, .. } if text.trim().is_empty() => {
            return Err(Problem::unprocessable("the answer is empty", Vec::new()));
        }
        PlanCommand::Answer { question, text } => {
            Command::Answer { question, text: text.trim_end().to_owned() }
        }
        PlanCommand::Steer { text, task, id } => {
            let task = task.as_deref().map(str::parse::<WorkId>).transpose();
            let task = task.map_err(|_| Problem::conflict("the plan has no such task"))?;
            let message = new_steering(&caller, id.as_deref(), &text, None)?.received_at(cliq_fs::now());
            Command::Guide { message, task }
        }
    };
    project.command_plan(&plans, &name, command).await?;
    Ok(StatusCode::ACCEPTED)
}
