//! Drafts of teams (docs/studio.md).

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cliq_dashboard::graph_of_team;
use cliq_project::{DraftName, Host};
use cliq_web::{
    BuilderTask, DraftContent, DraftDocument, DraftFileDocument, DraftProblemDocument, DraftTrial, Editor,
    InstalledDraft, Json, Path, Problem, ProposedChange, PublishedDraft, Query, Reader, draft_name,
    draft_path, drafts_of, install_draft, publish_draft, try_draft, unsaved_texts, validate_draft,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;

/// Name of a draft in an address.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct DraftPathParameter {
    /// Name of the draft.
    #[param(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    draft: String,
}

/// File of a draft in a query.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileQuery {
    /// Path below the draft, such as `roles/writer.md`.
    #[param(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}){0,5}$")]
    path: String,
}

/// Version of a file of a draft in a query.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct VersionQuery {
    /// Path below the draft.
    #[param(pattern = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}(/[A-Za-z0-9_-][A-Za-z0-9._-]{0,40}){0,5}$")]
    path: String,
    /// Version that was read.
    version: String,
}

/// List of drafts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftList {
    drafts: Vec<DraftDocument>,
}

/// Draft that is to be created.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDraft {
    /// Name of the draft.
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    name: String,
    /// `@scope/name` of the team that is copied. A new team without it.
    #[serde(default)]
    team: Option<String>,
}

/// Text of a file.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SavedText {
    /// Text of the file.
    text: String,
    /// Version that was read, or `null` for a new file.
    #[serde(default)]
    version: Option<String>,
}

/// Version of a file that was saved.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SavedVersion {
    version: String,
}

/// Texts that are not saved yet.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnsavedFiles {
    /// Texts by path; `null` for a file that is removed.
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
}

/// Problems of a draft, and its phases as a picture.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftValidationDocument {
    /// Whether no file has an error.
    valid: bool,
    /// Problems of all files.
    problems: Vec<DraftProblemDocument>,
    /// Phases as SVG, if team.yml has no errors.
    graph: Option<String>,
}

/// Description of a new team.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewTeam {
    /// Work of the team.
    #[schema(min_length = 1)]
    intent: String,
    /// Name of the draft. That of the team without it.
    #[serde(default)]
    #[schema(pattern = "^[a-z][a-z0-9-]{0,63}$")]
    draft: Option<String>,
}

/// Description of a change.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamChange {
    /// Description of the change.
    #[schema(min_length = 1)]
    instruction: String,
    /// Role that is changed alone.
    #[serde(default)]
    role: Option<String>,
}

/// Lists the drafts of the server.
#[utoipa::path(get, path = "/api/v1/drafts", operation_id = "list_drafts", tag = "drafts", responses((status = 200, body = DraftList), Reading))]
pub(crate) async fn list(_: Reader, State(app): State<Arc<App>>) -> Result<axum::Json<DraftList>, Problem> {
    let drafts = app.core.blocking(|host| Ok(drafts_of(host)?.list()?)).await?;
    Ok(axum::Json(DraftList { drafts: drafts.into_iter().map(DraftDocument::from).collect() }))
}

/// Creates a draft: a new team, or a copy of one.
#[utoipa::path(post, path = "/api/v1/drafts", operation_id = "create_draft", tag = "drafts", request_body = NewDraft,
    responses((status = 201, body = DraftContent), Reading, Changing))]
pub(crate) async fn create(
    _: Editor,
    State(app): State<Arc<App>>,
    Json(new): Json<NewDraft>,
) -> Result<(StatusCode, axum::Json<DraftContent>), Problem> {
    let content = app.core.blocking(move |host| {
        let name = DraftName::parse(&new.name)
            .map_err(|error| Problem::unprocessable("the name is wrong", vec![error.to_string()]))?;
        let drafts = drafts_of(host)?;
        match new.team {
            Some(team) => drafts.create_from_team(&name, &team)?,
            None => drafts.create(&name)?,
        }
        content(host, &name)
    });
    Ok((StatusCode::CREATED, axum::Json(content.await?)))
}

fn content(host: &Host, name: &DraftName) -> Result<DraftContent, Problem> {
    let files = drafts_of(host)?.files(name)?.into_iter().map(DraftFileDocument::from).collect();
    Ok(DraftContent { name: name.to_string(), files })
}

/// Returns a draft with its files.
#[utoipa::path(get, path = "/api/v1/drafts/{draft}", operation_id = "get_draft", tag = "drafts", params(DraftPathParameter),
    responses((status = 200, body = DraftContent), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
) -> Result<axum::Json<DraftContent>, Problem> {
    let name = draft_name(&path.draft)?;
    Ok(axum::Json(app.core.blocking(move |host| content(host, &name)).await?))
}

/// Removes a draft with its files.
#[utoipa::path(delete, path = "/api/v1/drafts/{draft}", operation_id = "remove_draft", tag = "drafts", params(DraftPathParameter),
    responses((status = 204), Reading, Changing))]
pub(crate) async fn remove(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
) -> Result<StatusCode, Problem> {
    let name = draft_name(&path.draft)?;
    app.core.blocking(move |host| Ok(drafts_of(host)?.remove(&name)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Returns a file of a draft.
#[utoipa::path(get, path = "/api/v1/drafts/{draft}/file", operation_id = "get_draft_file", tag = "drafts", params(DraftPathParameter, FileQuery),
    responses((status = 200, body = DraftFileDocument), Reading, Changing))]
pub(crate) async fn file(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Query(query): Query<FileQuery>,
) -> Result<axum::Json<DraftFileDocument>, Problem> {
    let (name, file) = (draft_name(&path.draft)?, draft_path(&query.path)?);
    let found = app.core.blocking(move |host| Ok(drafts_of(host)?.file(&name, &file)?)).await?;
    Ok(axum::Json(found.into()))
}

/// Saves a file over the version that was read, or creates it. A file that was saved by someone else since is not overwritten.
#[utoipa::path(put, path = "/api/v1/drafts/{draft}/file", operation_id = "save_draft_file", tag = "drafts", params(DraftPathParameter, FileQuery),
    request_body = SavedText, responses((status = 200, body = SavedVersion), Reading, Changing))]
pub(crate) async fn save(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Query(query): Query<FileQuery>,
    Json(saved): Json<SavedText>,
) -> Result<axum::Json<SavedVersion>, Problem> {
    let (name, file) = (draft_name(&path.draft)?, draft_path(&query.path)?);
    let version = app.core.blocking(move |host| {
        Ok(drafts_of(host)?.save(&name, &file, &saved.text, saved.version.as_deref())?)
    });
    Ok(axum::Json(SavedVersion { version: version.await? }))
}

/// Removes a file of a draft, if it has the version that was read.
#[utoipa::path(delete, path = "/api/v1/drafts/{draft}/file", operation_id = "remove_draft_file", tag = "drafts", params(DraftPathParameter, VersionQuery),
    responses((status = 204), Reading, Changing))]
pub(crate) async fn remove_file(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Query(query): Query<VersionQuery>,
) -> Result<StatusCode, Problem> {
    let (name, file) = (draft_name(&path.draft)?, draft_path(&query.path)?);
    app.core.blocking(move |host| Ok(drafts_of(host)?.remove_file(&name, &file, &query.version)?)).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Checks a draft with texts that are not saved yet, as `cliq team validate --draft` does. Nothing is stored.
#[utoipa::path(post, path = "/api/v1/drafts/{draft}/validate", operation_id = "validate_draft", tag = "drafts", params(DraftPathParameter),
    request_body = UnsavedFiles, responses((status = 200, body = DraftValidationDocument), Reading, Changing))]
pub(crate) async fn validate(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Json(unsaved): Json<UnsavedFiles>,
) -> Result<axum::Json<DraftValidationDocument>, Problem> {
    let (name, unsaved) = (draft_name(&path.draft)?, unsaved_texts(unsaved.files)?);
    let document = app.core.blocking(move |host| {
        let checked = validate_draft(host, &name, &unsaved)?;
        let graph = checked.check.workflow.as_ref().map(graph_of_team);
        Ok(DraftValidationDocument { valid: checked.valid, problems: checked.problems, graph })
    });
    Ok(axum::Json(document.await?))
}

/// Runs a draft with scripted agents: which phases run, with which prompts. No model is asked, and no command of the draft runs.
#[utoipa::path(post, path = "/api/v1/drafts/{draft}/try", operation_id = "try_draft", tag = "drafts", params(DraftPathParameter),
    request_body = DraftTrial, responses((status = 200, body = Object), Reading, Changing))]
pub(crate) async fn trial(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Json(trial): Json<DraftTrial>,
) -> Result<axum::Json<serde_json::Value>, Problem> {
    let report = Box::pin(try_draft(app.core.host(), &draft_name(&path.draft)?, trial)).await?;
    let document = serde_json::to_value(report).map_err(|error| Problem::unavailable(error.to_string()))?;
    Ok(axum::Json(document))
}

/// Has a model change a draft, and returns the change. Nothing is saved.
#[utoipa::path(post, path = "/api/v1/drafts/{draft}/improve", operation_id = "improve_draft", tag = "drafts", params(DraftPathParameter),
    request_body = TeamChange, responses((status = 200, body = ProposedChange), Reading, Changing))]
pub(crate) async fn improve(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
    Json(change): Json<TeamChange>,
) -> Result<axum::Json<ProposedChange>, Problem> {
    let task = BuilderTask { instruction: change.instruction, role: change.role };
    let name = draft_name(&path.draft)?;
    let changed = cliq_web::improve(app.core.host(), &name, task);
    Ok(axum::Json(Box::pin(changed).await?))
}

/// Has a model make a team from a description, and saves it as a draft.
#[utoipa::path(post, path = "/api/v1/teams/generate", operation_id = "generate_team", tag = "drafts", request_body = NewTeam,
    responses((status = 201, body = DraftContent), Reading, Changing))]
pub(crate) async fn generate(
    _: Editor,
    State(app): State<Arc<App>>,
    Json(new): Json<NewTeam>,
) -> Result<(StatusCode, axum::Json<DraftContent>), Problem> {
    let draft = new.draft.as_deref().map(|name| {
        DraftName::parse(name)
            .map_err(|error| Problem::unprocessable("the name is wrong", vec![error.to_string()]))
    });
    let name = Box::pin(cliq_web::generate(app.core.host(), new.intent, draft.transpose()?)).await?;
    let content = app.core.blocking(move |host| content(host, &name)).await?;
    Ok((StatusCode::CREATED, axum::Json(content)))
}

/// Installs a draft for all projects of the server.
#[utoipa::path(post, path = "/api/v1/drafts/{draft}/install", operation_id = "install_draft", tag = "drafts", params(DraftPathParameter),
    responses((status = 200, body = InstalledDraft), Reading, Changing))]
pub(crate) async fn install(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
) -> Result<axum::Json<InstalledDraft>, Problem> {
    let name = draft_name(&path.draft)?;
    Ok(axum::Json(app.core.blocking(move |host| install_draft(host, &name)).await?))
}

/// Publishes a draft as a package in the registry of its scope.
#[utoipa::path(post, path = "/api/v1/drafts/{draft}/publish", operation_id = "publish_draft", tag = "drafts", params(DraftPathParameter),
    responses((status = 200, body = PublishedDraft), Reading, Changing))]
pub(crate) async fn publish(
    _: Editor,
    State(app): State<Arc<App>>,
    Path(path): Path<DraftPathParameter>,
) -> Result<axum::Json<PublishedDraft>, Problem> {
    let name = draft_name(&path.draft)?;
    Ok(axum::Json(app.core.blocking(move |host| publish_draft(host, &name)).await?))
}
