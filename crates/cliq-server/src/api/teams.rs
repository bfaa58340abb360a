//! Teams that can run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use cliq_dashboard::graph_of_team;
use cliq_web::{
    DiagnosticDocument, Json, Path, Problem, Query, Reader, TeamDocument, TeamSummary, diagnostics,
    find_team, list_teams, team_document,
};
use cliq_workflow::ValidatedWorkflow;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// The teams.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Teams {
    teams: Vec<TeamSummary>,
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
    /// Whether the team is being written: an input that nothing refers to is a warning then.
    #[serde(default)]
    draft: bool,
}

/// Whether a team can run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Validation {
    /// Whether it has no errors.
    valid: bool,
    /// Problems of the team.
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

/// Lists the teams that are installed on the server or bundled with it.
#[utoipa::path(get, path = "/api/v1/teams", operation_id = "list_teams", tag = "teams", responses((status = 200, body = Teams), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<Teams>, Problem> {
    Ok(axum::Json(Teams { teams: app.core.blocking(list_teams).await? }))
}

/// A team with its inputs, phases and problems.
#[utoipa::path(get, path = "/api/v1/teams/{scope}/{name}", operation_id = "get_team", tag = "teams",
    params(("scope" = String, Path, description = "The scope, such as `@cliq`.", pattern = "^@[a-z][a-z0-9-]*$"),
        ("name" = String, Path, description = "The name in the scope.", pattern = "^[a-z][a-z0-9-]*$")),
    responses((status = 200, body = TeamDocument), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((scope, name)): Path<(String, String)>,
) -> Result<axum::Json<TeamDocument>, Problem> {
    let name = format!("{scope}/{name}");
    let found = app.core.blocking(move |host| {
        let (_, checked) = find_team(host, &name)?;
        Ok(team_document(&name, &checked))
    });
    Ok(axum::Json(found.await?))
}

/// The phases of a team as a picture.
#[utoipa::path(get, path = "/api/v1/teams/{scope}/{name}/graph", operation_id = "get_team_graph", tag = "teams",
    params(("scope" = String, Path, description = "The scope, such as `@cliq`.", pattern = "^@[a-z][a-z0-9-]*$"),
        ("name" = String, Path, description = "The name in the scope.", pattern = "^[a-z][a-z0-9-]*$"), GraphQuery),
    responses((status = 200, content((String = "image/svg+xml"), (String = "text/plain; charset=utf-8"))), Reading, Changing))]
pub(crate) async fn graph(
    _: Reader,
    State(app): State<Arc<App>>,
    Path((scope, name)): Path<(String, String)>,
    Query(query): Query<GraphQuery>,
) -> Result<impl IntoResponse, Problem> {
    let name = format!("{scope}/{name}");
    let found = app.core.blocking(move |host| {
        let (_, checked) = find_team(host, &name)?;
        checked.workflow.ok_or_else(|| Problem::unprocessable("the team has errors", Vec::new()))
    });
    let workflow: ValidatedWorkflow = found.await?;
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
    State(app): State<Arc<App>>,
    Json(text): Json<TeamText>,
) -> Result<axum::Json<Validation>, Problem> {
    let checked = app.core.blocking(move |host| {
        let files = NamedRoles { roles: text.roles, agents: host.agents_outside_teams(), draft: text.draft };
        let checked = cliq_workflow::check(&text.team_yml, &files);
        Ok(Validation { valid: checked.workflow.is_some(), diagnostics: diagnostics(&checked) })
    });
    Ok(axum::Json(checked.await?))
}

/// Returns the JSON Schema of team.yml, for editors.
#[utoipa::path(get, path = "/api/v1/teams/schema", operation_id = "get_team_schema", tag = "teams",
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn schema(_: Reader) -> axum::Json<serde_json::Value> {
    axum::Json(cliq_workflow::json_schema())
}

/// A team of which only the names of role files are known, on this host.
struct NamedRoles {
    roles: Vec<String>,
    agents: Vec<String>,
    draft: bool,
}

impl cliq_workflow::TeamFiles for NamedRoles {
    fn is_draft(&self) -> bool {
        self.draft
    }
    fn has_role(&self, name: &str) -> bool {
        self.roles.iter().any(|role| role == name)
    }
    fn role_names(&self) -> Vec<String> {
        self.roles.clone()
    }
    fn role_texts(&self) -> Vec<String> {
        Vec::new()
    }
    fn entry(&self, _: &camino::Utf8Path) -> cliq_workflow::EntryFile {
        cliq_workflow::EntryFile::Unknown
    }
    fn installed_agents(&self) -> Vec<String> {
        self.agents.clone()
    }
}
