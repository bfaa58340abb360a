//! Teams that can run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cliq_project::{FoundTeam, Host};
use cliq_workflow::{Checked, Severity, ValidatedWorkflow};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use super::input::{Json, Path, Query};
use crate::access::Reader;
use crate::app::App;
use crate::pages::graph_of_team;
use crate::problem::Problem;

/// A team in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TeamSummary {
    /// `@scope/name`
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: Option<String>,
    /// `installed` or `bundled`.
    pub(crate) source: String,
    /// Whether it has no errors.
    pub(crate) valid: bool,
}

/// The teams.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Teams {
    teams: Vec<TeamSummary>,
}

/// A problem of a team.yml.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DiagnosticDocument {
    /// A stable name for this kind of problem.
    pub(crate) code: String,
    /// `error` or `warning`.
    pub(crate) severity: String,
    /// What is wrong.
    pub(crate) message: String,
    /// Where in team.yml: the line, from 1.
    pub(crate) line: usize,
    /// The column, from 1.
    pub(crate) column: usize,
    /// How to mend it.
    pub(crate) help: String,
}

/// An input of a team.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InputDocument {
    /// Its name.
    pub(crate) name: String,
    /// What it is for.
    pub(crate) description: Option<String>,
    /// Whether a run must be given it.
    pub(crate) required: bool,
    /// Its value where a run is given none.
    pub(crate) default: Option<String>,
}

/// A phase of a team.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PhaseDocument {
    /// Its name.
    pub(crate) name: String,
    /// Its kind.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Whether it idles until a gate routes to it.
    pub(crate) support: bool,
    /// The agent, where the team names one.
    pub(crate) agent: Option<String>,
    /// Phases that must be done before it starts.
    pub(crate) depends_on: Vec<String>,
    /// For gates: where it may route to.
    pub(crate) route_targets: Vec<String>,
}

/// A team.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TeamDocument {
    /// `@scope/name`
    pub(crate) name: String,
    /// What it does.
    pub(crate) description: Option<String>,
    /// Its version.
    pub(crate) version: Option<String>,
    /// Words to find it by.
    pub(crate) tags: Vec<String>,
    /// When to choose it.
    pub(crate) use_when: Vec<String>,
    /// When not to.
    pub(crate) not_for: Vec<String>,
    /// Whether it has no errors.
    pub(crate) valid: bool,
    /// Its inputs.
    pub(crate) inputs: Vec<InputDocument>,
    /// Its phases.
    pub(crate) phases: Vec<PhaseDocument>,
    /// Problems of its team.yml.
    pub(crate) diagnostics: Vec<DiagnosticDocument>,
}

/// A team.yml that is to be checked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamText {
    /// The text of team.yml.
    team_yml: String,
    /// The names of its role files, without directory and ending.
    #[serde(default)]
    roles: Vec<String>,
}

/// Whether a team can run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Validation {
    /// Whether it has no errors.
    valid: bool,
    /// Its problems.
    diagnostics: Vec<DiagnosticDocument>,
}

/// The form of a picture.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GraphFormat {
    /// SVG.
    #[default]
    Svg,
    /// Mermaid.
    Mermaid,
    /// Graphviz.
    Dot,
    /// A list for people.
    Text,
}

/// The form of a picture.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct GraphQuery {
    /// SVG unless said otherwise.
    #[serde(default)]
    #[param(inline)]
    format: GraphFormat,
}

/// The teams that are installed or bundled.
pub(crate) fn summaries(host: &Host) -> Result<Vec<TeamSummary>, Problem> {
    // A directory that does not exist: teams of the server's working directory are not listed.
    let found = host.list_teams(camino::Utf8Path::new("/nonexistent"))?;
    Ok(found
        .into_iter()
        .map(|team| TeamSummary {
            name: team.name,
            description: team.description,
            source: team.source.as_str().to_owned(),
            valid: team.valid,
        })
        .collect())
}

fn diagnostics(checked: &Checked) -> Vec<DiagnosticDocument> {
    let document = |d: &cliq_workflow::Diagnostic| DiagnosticDocument {
        code: d.code.to_owned(),
        severity: if d.severity == Severity::Error { "error" } else { "warning" }.to_owned(),
        message: d.message.clone(),
        line: d.span.line,
        column: d.span.column,
        help: d.help.clone(),
    };
    checked.diagnostics.iter().map(document).collect()
}

/// A team by its name, checked.
pub(crate) fn find(host: &Host, name: &str) -> Result<(FoundTeam, Checked), Problem> {
    let segment = |part: &str| cliq_protocol::PhaseName::parse(part).is_ok();
    let right = name
        .strip_prefix('@')
        .and_then(|rest| rest.split_once('/'))
        .is_some_and(|(a, b)| segment(a) && segment(b));
    if !right {
        return Err(Problem::not_found("there is no team of this name"));
    }
    let found = host.find_team(name).map_err(|error| Problem::not_found(error.to_string()))?;
    let checked = found.folder.check();
    Ok((found, checked))
}

pub(crate) fn document(name: &str, checked: &Checked) -> TeamDocument {
    let diagnostics = diagnostics(checked);
    let Some(workflow) = &checked.workflow else {
        return TeamDocument {
            name: name.to_owned(),
            description: None,
            version: None,
            tags: Vec::new(),
            use_when: Vec::new(),
            not_for: Vec::new(),
            valid: false,
            inputs: Vec::new(),
            phases: Vec::new(),
            diagnostics,
        };
    };
    let names = |ids: &[cliq_workflow::PhaseId]| {
        ids.iter().map(|id| workflow.phase(*id).name.to_string()).collect::<Vec<_>>()
    };
    TeamDocument {
        name: workflow.name.clone(),
        description: workflow.description.clone(),
        version: workflow.version.as_ref().map(ToString::to_string),
        tags: workflow.tags.clone(),
        use_when: workflow.use_when.clone(),
        not_for: workflow.not_for.clone(),
        valid: true,
        inputs: workflow
            .inputs
            .iter()
            .map(|input| InputDocument {
                name: input.name.clone(),
                description: input.description.clone(),
                required: input.required && input.default.is_none(),
                default: input.default.clone(),
            })
            .collect(),
        phases: workflow
            .phases()
            .map(|(_, phase)| PhaseDocument {
                name: phase.name.to_string(),
                kind: phase.kind.to_string(),
                support: phase.support,
                agent: phase.agent.clone(),
                depends_on: names(&phase.depends_on),
                route_targets: names(&phase.route_targets),
            })
            .collect(),
        diagnostics,
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Problem::unavailable(error.to_string()))?
}

/// Lists the teams that are installed on the server or bundled with it.
#[utoipa::path(get, path = "/api/v1/teams", operation_id = "list_teams", tag = "teams", responses((status = 200, body = Teams), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<Teams>, Problem> {
    let host = app.options.host.clone();
    Ok(axum::Json(Teams { teams: blocking(move || summaries(&host)).await? }))
}

/// A team with its inputs, phases and problems.
#[utoipa::path(get, path = "/api/v1/teams/{scope}/{name}", operation_id = "get_team", tag = "teams",
    params(("scope" = String, Path, description = "The scope, such as `@cliq`."), ("name" = String, Path, description = "The name in the scope.")),
    responses((status = 200, body = TeamDocument), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((scope, name)): Path<(String, String)>,
) -> Result<axum::Json<TeamDocument>, Problem> {
    let host = app.options.host.clone();
    let name = format!("{scope}/{name}");
    blocking(move || find(&host, &name).map(|(_, checked)| axum::Json(document(&name, &checked)))).await
}

/// The phases of a team as a picture.
#[utoipa::path(get, path = "/api/v1/teams/{scope}/{name}/graph", operation_id = "get_team_graph", tag = "teams",
    params(("scope" = String, Path, description = "The scope, such as `@cliq`."), ("name" = String, Path, description = "The name in the scope."), GraphQuery),
    responses((status = 200, content((String = "image/svg+xml"), (String = "text/plain; charset=utf-8"))), Reading, Changing))]
pub(crate) async fn graph(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((scope, name)): Path<(String, String)>,
    Query(query): Query<GraphQuery>,
) -> Result<impl IntoResponse, Problem> {
    let host = app.options.host.clone();
    let name = format!("{scope}/{name}");
    let workflow: ValidatedWorkflow = blocking(move || {
        let (_, checked) = find(&host, &name)?;
        checked.workflow.ok_or_else(|| Problem::unprocessable("the team has errors", Vec::new()))
    })
    .await?;
    let text = "text/plain; charset=utf-8";
    let (kind, picture) = match query.format {
        GraphFormat::Svg => ("image/svg+xml", graph_of_team(&workflow)),
        GraphFormat::Mermaid => (text, workflow.to_mermaid()),
        GraphFormat::Dot => (text, workflow.to_dot()),
        GraphFormat::Text => (text, workflow.to_text()),
    };
    Ok(([(header::CONTENT_TYPE, kind)], picture))
}

/// Checks the text of a team.yml, as `cliq team validate` does. Nothing is stored.
#[utoipa::path(post, path = "/api/v1/teams/validate", operation_id = "validate_team", tag = "teams", request_body = TeamText,
    responses((status = 200, body = Validation), Reading, Changing))]
pub(crate) async fn validate(
    _: Reader,
    State(_): State<Arc<App>>,
    Json(text): Json<TeamText>,
) -> Result<axum::Json<Validation>, Problem> {
    blocking(move || {
        let checked = cliq_workflow::check(&text.team_yml, &NamedRoles(text.roles));
        let valid = checked.workflow.is_some();
        Ok(axum::Json(Validation { valid, diagnostics: diagnostics(&checked) }))
    })
    .await
}

/// A team of which only the names of role files are known.
struct NamedRoles(Vec<String>);

impl cliq_workflow::TeamFiles for NamedRoles {
    fn has_role(&self, name: &str) -> bool {
        self.0.iter().any(|role| role == name)
    }
    fn role_names(&self) -> Vec<String> {
        self.0.clone()
    }
    fn role_texts(&self) -> Vec<String> {
        Vec::new()
    }
    fn entry(&self, _: &camino::Utf8Path) -> cliq_workflow::EntryFile {
        cliq_workflow::EntryFile::Unknown
    }
    fn installed_agents(&self) -> Vec<String> {
        Vec::new()
    }
}
