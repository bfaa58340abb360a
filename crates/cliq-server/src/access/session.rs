//! Sessions of browsers: sign-in and sign-out.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use cliq_dashboard::{PageError, Visitor, sign_in_page, signed_in_page};
use cliq_runs::Scope;
use cliq_web::{Form, Problem, Query, SIGN_IN_PATH, Via};
use serde::Deserialize;

use super::COOKIE;
use super::gatekeeper::SESSION;
use crate::app::App;

/// Returns the routes of sign-in and sign-out.
pub(crate) fn session_router() -> Router<Arc<App>> {
    Router::new().route(SIGN_IN_PATH, get(page).post(sign_in)).route("/signout", post(sign_out))
}

#[derive(Debug, Deserialize)]
pub(super) struct Code {
    code: Option<String>,
}

/// Signs in by the code of a link, or returns the page that asks for a token.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Query(query): Query<Code>,
) -> Result<Response, PageError> {
    let Some(code) = query.code else {
        return Ok(sign_in_page(None).into_response());
    };
    match app.gatekeeper.use_sign_in(&code).await? {
        Some((label, scope)) => begin(&app, &label, scope, None).await,
        None => Ok(sign_in_page(Some("This link was used before, or has expired.")).into_response()),
    }
}

/// Signs in by a token.
pub(super) async fn sign_in(State(app): State<Arc<App>>, form: Form) -> Result<Response, PageError> {
    let token = form.get("token").unwrap_or_default();
    match app.gatekeeper.check(token, Via::Token).await? {
        Some(caller) => {
            let parent = Some(caller.token.as_str()).filter(|id| !id.is_empty());
            begin(&app, &caller.label, caller.scope, parent).await
        }
        None => Ok(sign_in_page(Some("This token is not valid.")).into_response()),
    }
}

/// Opens a session and returns the page that leads to the runs.
async fn begin(app: &App, label: &str, scope: Scope, parent: Option<&str>) -> Result<Response, PageError> {
    let secret = app.gatekeeper.open_session(label, scope, parent).await?;
    let secret = secret.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    let secure = if app.options.tls.is_some() { "; Secure" } else { "" };
    let age = SESSION.as_secs();
    let cookie =
        format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}", secret.reveal());
    Ok(([(header::SET_COOKIE, cookie)], signed_in_page()).into_response())
}

/// Ends the session.
pub(super) async fn sign_out(visitor: Visitor, State(app): State<Arc<App>>) -> Result<Response, PageError> {
    if visitor.caller.via == Via::Cookie {
        app.core.runs.revoke_token(&visitor.caller.token).await?;
    }
    let cookie = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN_PATH)).into_response())
}
