//! Routes of the sign-in by a provider: redirect to the provider, and callback.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use cliq_dashboard::PageError;
use cliq_model::SignInAttempt;
use cliq_orchestrator::internals::spawn_blocking;
use cliq_supervisor::internals::clock;
use cliq_web::{Problem, Query};
use serde::Deserialize;

use super::{Provider, SignInError, digest_of, is_same_digest};
use crate::access::audit::record_sign_in;
use crate::access::session::{secure, sign_in, signed_in};
use crate::app::App;

/// Cookie that ties an attempt to its browser. The provider sends the browser back from another site: it cannot be strict.
const COOKIE: &str = "cliq_sign_in";
/// Time for the person at the provider.
const ATTEMPT: Duration = Duration::from_secs(10 * 60);

fn provider(app: &App) -> Result<Arc<Provider>, Problem> {
    app.provider.clone().ok_or_else(|| Problem::not_found("this server has no provider to sign in by"))
}

/// Runs work that sends requests to the provider.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SignInError> + Send + 'static,
) -> Result<Result<T, SignInError>, Problem> {
    spawn_blocking(work).await.map_err(|error| Problem::unavailable(error.to_string()))
}

/// Sends a browser to the provider.
pub(crate) async fn begin(State(app): State<Arc<App>>) -> Result<Response, PageError> {
    let provider = provider(&app)?;
    let beginning = match blocking(move || provider.begin()).await? {
        Ok(beginning) => beginning,
        Err(error) => {
            tracing::error!(%error, "cannot begin a sign-in");
            let page =
                sign_in(&app, Some("The provider does not respond. Try again, or sign in with a token."));
            return Ok((axum::http::StatusCode::SERVICE_UNAVAILABLE, page).into_response());
        }
    };
    let attempt = SignInAttempt {
        state: digest_of(&beginning.state),
        browser: digest_of(&beginning.browser),
        nonce: beginning.nonce,
        verifier: beginning.verifier,
        expires_at: clock::after(ATTEMPT),
    };
    app.core.sign_ins.add_sign_in(&attempt, clock::now()).await?;
    let (secure, age) = (secure(&app), ATTEMPT.as_secs());
    let cookie = format!(
        "{COOKIE}={}; HttpOnly; SameSite=Lax; Path=/signin/oidc; Max-Age={age}{secure}",
        beginning.browser
    );
    Ok(([(header::SET_COOKIE, cookie)], Redirect::to(&beginning.url)).into_response())
}

/// Parameters with which the provider sends a browser back.
#[derive(Debug, Deserialize)]
pub(crate) struct Back {
    code: Option<String>,
    state: Option<String>,
    error: Option<String>,
}

/// Completes a sign-in: once, in the browser that began it.
pub(crate) async fn complete(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Query(back): Query<Back>,
) -> Result<Response, PageError> {
    let provider = provider(&app)?;
    let failed = |text: &str| (axum::http::StatusCode::FORBIDDEN, sign_in(&app, Some(text))).into_response();
    let attempt = match &back.state {
        Some(state) => app.core.sign_ins.take_sign_in(&digest_of(state)).await?,
        None => None,
    };
    let Some(attempt) = attempt.filter(|attempt| clock::now() < attempt.expires_at) else {
        return Ok(failed("This sign-in was completed before, or has expired. Begin again."));
    };
    let browser = cookie_of(&headers).is_some_and(|secret| is_same_digest(&secret, &attempt.browser));
    if !browser {
        return Ok(failed("This sign-in was begun in another browser. Begin again."));
    }
    let Some(code) = back.code else {
        tracing::warn!(error = back.error.as_deref().unwrap_or("none"), "the provider refused a sign-in");
        return Ok(failed("The provider refused the sign-in."));
    };
    let session = provider.options().session;
    let done = blocking(move || provider.complete(&code, &attempt.nonce, &attempt.verifier)).await?;
    let signed = match done {
        Ok(signed) => signed,
        Err(error) => {
            tracing::warn!(%error, "a sign-in failed");
            let (actor, text) = match &error {
                SignInError::NoScope(account) => (account.as_str(), error.to_string()),
                _ => ("unknown", "The provider did not confirm the sign-in. Begin again.".to_owned()),
            };
            record_sign_in(&app, actor, None, "provider", false).await;
            return Ok(failed(&text));
        }
    };
    let (name, mail) = (signed.person.name.clone(), signed.person.mail.clone());
    let secret = app.gatekeeper.open_session_of(signed.person, signed.scope, session).await?;
    let actor = mail.as_deref().unwrap_or(&name);
    record_sign_in(&app, actor, mail.as_deref(), "provider", secret.is_some()).await;
    signed_in(&app, secret, session, "/")
}

fn cookie_of(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(header::COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut cookies =
        lines.flat_map(|line| line.split(';')).filter_map(|cookie| cookie.trim().split_once('='));
    cookies.find(|(name, _)| *name == COOKIE).map(|(_, value)| value.to_owned())
}
