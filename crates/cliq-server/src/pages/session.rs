//! Signing in and out.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_runs::Scope;
use maud::html;
use serde::Deserialize;

use super::{PageError, Visitor, layout};
use crate::access::{COOKIE, SESSION, SIGN_IN_PATH, Via};
use crate::api::{Form, Query};
use crate::app::App;
use crate::problem::Problem;

#[derive(Debug, Deserialize)]
pub(super) struct Code {
    code: Option<String>,
}

/// The page that signs in: by the code of a link, or by a token.
pub(super) async fn sign_in_page(
    State(app): State<Arc<App>>,
    Query(query): Query<Code>,
) -> Result<Response, PageError> {
    let Some(code) = query.code else {
        return Ok(ask(None));
    };
    match app.gatekeeper.use_sign_in(&code).await? {
        Some((label, scope)) => begin(&app, &label, scope, None).await,
        None => Ok(ask(Some("This link was used before, or has expired."))),
    }
}

fn ask(why: Option<&str>) -> Response {
    let content = html! {
        h1 { "Sign in" }
        @if let Some(why) = why { p.warning role="alert" { (why) } }
        form.stack method="post" action=(SIGN_IN_PATH) {
            label for="token" { "Token" }
            input #token name="token" type="password" autocomplete="current-password" required;
            button.primary type="submit" { "Sign in" }
        }
        p.hint {
            "On the machine of the server, " code { "cliq server open" } " prints a link that signs in, and "
            code { "cliq server token create --label NAME" } " makes a token."
        }
    };
    layout::bare("Sign in", &content).into_response()
}

/// Signs in by a token.
pub(super) async fn sign_in(State(app): State<Arc<App>>, form: Form) -> Result<Response, PageError> {
    let token = form.get("token").unwrap_or_default();
    match app.gatekeeper.check(token, Via::Token).await? {
        Some(caller) => {
            let parent = Some(caller.token.as_str()).filter(|id| !id.is_empty());
            begin(&app, &caller.label, caller.scope, parent).await
        }
        None => Ok(ask(Some("This token is not valid."))),
    }
}

/// Opens a session and leads to the runs.
async fn begin(app: &App, label: &str, scope: Scope, parent: Option<&str>) -> Result<Response, PageError> {
    let secret = app.gatekeeper.open_session(label, scope, parent).await?;
    let secret = secret.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    let secure = if app.options.tls.is_some() { "; Secure" } else { "" };
    let age = SESSION.as_secs();
    let cookie =
        format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}", secret.reveal());
    // A page and no redirect: a browser that came from elsewhere sends a strict cookie from the next page on.
    let content = html! {
        meta http-equiv="refresh" content="0; url=/";
        h1 { "Signed in" }
        p { a href="/" { "All runs" } }
    };
    Ok(([(header::SET_COOKIE, cookie)], layout::bare("Signed in", &content)).into_response())
}

/// Ends the session.
pub(super) async fn sign_out(visitor: Visitor, State(app): State<Arc<App>>) -> Result<Response, PageError> {
    if visitor.caller.via == Via::Cookie {
        app.runs.revoke_token(&visitor.caller.token).await?;
    }
    let cookie = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN_PATH)).into_response())
}
