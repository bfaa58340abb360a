//! Sessions of browsers: sign-in and sign-out.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_dashboard::{PageError, Visitor, sign_in_page, signed_in_page, signed_out_page};
use cliq_model::{Scope, Secret};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_web::{Form, Problem, Query, SIGN_IN_PATH, Via, get, post};
use serde::Deserialize;

use super::audit::record_sign_in;
use super::gatekeeper::SESSION;
use super::{COOKIE, oidc};
use crate::app::App;

/// Returns the routes of sign-in and sign-out.
pub(crate) fn session_router() -> Router<Arc<App>> {
    Router::new()
        .route(SIGN_IN_PATH, get(page).merge(post(submit)))
        .route("/signin/oidc", get(oidc::begin))
        .route("/signin/oidc/callback", get(oidc::complete))
        .route("/signout", post(sign_out))
}

#[derive(Debug, Deserialize)]
pub(super) struct Code {
    code: Option<String>,
    /// Page to show after the sign-in.
    to: Option<String>,
}

/// Maximum length of the path of a page, in bytes.
const MAX_PATH: usize = 500;

/// Returns the path if it is one of a page of this server, else that of the first page: a link must not lead to another site.
fn page_path(to: Option<&str>) -> &str {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~?=&%#".contains(&byte);
    to.filter(|to| {
        let is_here = to.starts_with('/') && !to.starts_with("//");
        is_here && to.len() <= MAX_PATH && to.bytes().all(is_plain)
    })
    .unwrap_or("/")
}

/// Signs in by the code of a link, or returns the page that asks for a token.
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Query(query): Query<Code>,
) -> Result<Response, PageError> {
    let Some(code) = query.code else {
        return Ok(sign_in(&app, None).into_response());
    };
    match app.gatekeeper.use_sign_in(&code).await? {
        Some((label, scope)) => begin(&app, &label, scope, None, page_path(query.to.as_deref())).await,
        None => Ok(sign_in(&app, Some("This link was used before, or has expired.")).into_response()),
    }
}

/// Signs in by a token.
pub(super) async fn submit(State(app): State<Arc<App>>, form: Form) -> Result<Response, PageError> {
    let token = form.get("token").unwrap_or_default();
    match app.gatekeeper.check(token, Via::Token).await? {
        Some(caller) => {
            let parent = Some(caller.token.as_str()).filter(|id| !id.is_empty());
            begin(&app, &caller.label, caller.scope, parent, page_path(None)).await
        }
        None => Ok(sign_in(&app, Some("This token is not valid.")).into_response()),
    }
}

/// Returns the page that asks for a token, or leads to the provider.
pub(super) fn sign_in(app: &App, failure: Option<&str>) -> axum::response::Html<String> {
    sign_in_page(failure, app.provider.as_ref().map(|provider| provider.options().label.as_str()))
}

/// Opens a session and returns the page that leads to the path of another.
async fn begin(
    app: &App,
    label: &str,
    scope: Scope,
    parent: Option<&str>,
    to: &str,
) -> Result<Response, PageError> {
    let secret = app.gatekeeper.open_session(label, scope, parent).await?;
    record_sign_in(app, label, None, if parent.is_some() { "token" } else { "link" }, secret.is_some()).await;
    signed_in(app, secret, SESSION, to)
}

/// Returns the page after a sign-in, with the cookie of the session.
pub(super) fn signed_in(
    app: &App,
    secret: Option<Secret>,
    duration: std::time::Duration,
    to: &str,
) -> Result<Response, PageError> {
    let secret = secret.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    let (secure, age) = (secure(app), duration.as_secs());
    let cookie =
        format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}", secret.reveal());
    Ok(([(header::SET_COOKIE, cookie)], signed_in_page(to)).into_response())
}

/// Returns the attribute of cookies that are sent over TLS only, if browsers reach the server so.
pub(super) fn secure(app: &App) -> &'static str {
    let is_public = app.provider.as_ref().is_some_and(|p| p.options().public_url.starts_with("https://"));
    if app.options.tls.is_some() || is_public { "; Secure" } else { "" }
}

/// Ends the session, and that of the provider.
pub(super) async fn sign_out(visitor: Visitor, State(app): State<Arc<App>>) -> Result<Response, PageError> {
    if visitor.caller.via == Via::Cookie {
        app.core.runs.revoke_token(&visitor.caller.token).await?;
    }
    let cookie = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    let at_provider = match (&app.provider, visitor.caller.person) {
        (Some(provider), Some(person)) => {
            let provider = Arc::clone(provider);
            spawn_blocking(move || provider.sign_out_url(&person)).await.ok().flatten()
        }
        _ => None,
    };
    // A form must not lead to another site: the page does.
    Ok(match at_provider {
        Some(url) => ([(header::SET_COOKIE, cookie)], signed_out_page(&url)).into_response(),
        None => ([(header::SET_COOKIE, cookie)], Redirect::to(SIGN_IN_PATH)).into_response(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sign_in_leads_to_pages_of_this_server_only() {
        for page in ["/", "/runs/0198-ab", "/runs?q=a&state=running#top"] {
            assert_eq!(page_path(Some(page)), page);
        }
        let foreign =
            ["", "runs", "//example.com", "/\\example.com", "https://example.com", "/a b", "/a;b", "/\"><x"];
        for page in foreign {
            assert_eq!(page_path(Some(page)), "/", "{page}");
        }
        assert_eq!(page_path(Some(&format!("/{}", "a".repeat(MAX_PATH)))), "/");
        assert_eq!(page_path(None), "/");
    }
}
