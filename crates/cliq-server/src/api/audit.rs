//! The audit log, and sessions of browsers. For admins.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cliq_model::{AuditEntry, AuditFilter, Token, TokenKind};
use cliq_protocol::Timestamp;
use cliq_supervisor::internals::clock;
use cliq_web::{Admin, Path, Problem, Query};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;

/// The most entries of a page.
const MAX_PAGE: u32 = 1000;

/// A page of the audit log, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditPage {
    entries: Vec<AuditEntry>,
    /// The number from which the next page goes on; `null` if there are no more entries now.
    next: Option<i64>,
}

/// Filter for entries.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditQuery {
    /// Of this actor: label of a token, name or mail address of a person.
    actor: Option<String>,
    /// Recorded at this time or later, in ISO-8601 with its zone.
    #[param(format = DateTime)]
    since: Option<String>,
    /// Recorded before this time, in ISO-8601 with its zone.
    #[param(format = DateTime)]
    until: Option<String>,
    /// With a greater number.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// The most entries of a page. 100 unless said otherwise.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

fn time(field: &str, text: Option<String>) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = text else { return Ok(None) };
    let wrong =
        |_| Problem::bad_request(format!("`{field}` is a time in ISO-8601, such as 2026-01-31T12:00:00Z"));
    Timestamp::parse(&text).map(Some).map_err(wrong)
}

/// Lists recorded actions, oldest first. Entries are never changed or removed.
#[utoipa::path(get, path = "/api/v1/audit", operation_id = "list_audit", tag = "server", params(AuditQuery), responses((status = 200, body = AuditPage), Reading))]
pub(crate) async fn list(
    _: Admin,
    State(app): State<Arc<App>>,
    Query(query): Query<AuditQuery>,
) -> Result<axum::Json<AuditPage>, Problem> {
    let limit = query.limit.unwrap_or(100);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
    }
    if query.after.is_some_and(|after| after < 0) || query.actor.as_ref().is_some_and(|a| a.contains('\0')) {
        return Err(Problem::bad_request("`after` is a number, and `actor` is a line of text"));
    }
    let filter = AuditFilter {
        actor: query.actor,
        since: time("since", query.since)?,
        until: time("until", query.until)?,
        after: Some(query.after.unwrap_or(0)),
        before: None,
        limit: limit + 1,
    };
    let mut entries = app.core.audit.audit(&filter).await?;
    let has_more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    let next = entries.last().filter(|_| has_more).map(|last| last.id);
    Ok(axum::Json(AuditPage { entries, next }))
}

/// A session of a browser.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Session {
    #[serde(flatten)]
    token: Token,
    /// Verified mail address of a person who signed in by a provider.
    mail: Option<String>,
}

/// Sessions of browsers, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Sessions {
    sessions: Vec<Session>,
}

/// Lists the sessions of browsers that are valid.
#[utoipa::path(get, path = "/api/v1/sessions", operation_id = "list_sessions", tag = "server", responses((status = 200, body = Sessions), Reading))]
pub(crate) async fn sessions(_: Admin, State(app): State<Arc<App>>) -> Result<axum::Json<Sessions>, Problem> {
    let sessions = app.core.sign_ins.sessions(clock::now()).await?;
    let session = |token: Token| Session { mail: token.person.as_ref().and_then(|p| p.mail.clone()), token };
    Ok(axum::Json(Sessions { sessions: sessions.into_iter().map(session).collect() }))
}

/// Ends a session: the browser has to sign in again.
#[utoipa::path(delete, path = "/api/v1/sessions/{id}", operation_id = "end_session", tag = "server", params(("id" = String, Path, description = "The session.")),
    responses((status = 204, description = "It has ended."), Reading))]
pub(crate) async fn end_session(
    _: Admin,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let found = app.core.runs.token(&id).await?.filter(|token| token.kind == TokenKind::Session);
    if found.is_none() || !app.core.runs.revoke_token(&id).await? {
        return Err(Problem::not_found("there is no such session"));
    }
    Ok(StatusCode::NO_CONTENT)
}
