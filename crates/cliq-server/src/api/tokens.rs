//! Tokens of callers.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cliq_model::{Scope, Token};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::errors::{Changing, Reading};
use crate::app::App;
use cliq_web::{Admin, Json, Path, Problem, SIGN_IN_PATH, create_token};

/// Tokens without their secrets.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Tokens {
    tokens: Vec<Token>,
}

/// A token that is to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenWish {
    /// Label of the token.
    #[schema(min_length = 1, max_length = 100)]
    #[schema(
        pattern = "^[^\\s\\x00-\\x1f\\x7f-\\x9f]([^\\x00-\\x1f\\x7f-\\x9f]{0,98}[^\\s\\x00-\\x1f\\x7f-\\x9f])?$"
    )]
    label: String,
    /// Scope of the token. Default: `read`.
    #[serde(default = "read_only")]
    scope: Scope,
    /// In how many days it expires. Without it, never.
    #[serde(default, deserialize_with = "cliq_web::whole_number")]
    #[schema(minimum = 1, maximum = 3650)]
    expires_days: Option<u32>,
}

fn read_only() -> Scope {
    Scope::Read
}

/// A token that was made. It is shown this once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TokenMade {
    /// The public part, by which it is listed and revoked.
    id: String,
    /// The token.
    token: String,
}

/// A link that signs a browser in, once, within 15 minutes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SignInLink {
    /// The path and query of the link.
    path: String,
}

/// Lists tokens, newest first, without their secrets.
#[utoipa::path(get, path = "/api/v1/tokens", operation_id = "list_tokens", tag = "server", responses((status = 200, body = Tokens), Reading))]
pub(crate) async fn list(_: Admin, State(app): State<Arc<App>>) -> Result<axum::Json<Tokens>, Problem> {
    Ok(axum::Json(Tokens { tokens: app.core.runs.tokens().await? }))
}

/// Makes a token.
#[utoipa::path(post, path = "/api/v1/tokens", operation_id = "create_token", tag = "server", request_body = TokenWish,
    responses((status = 201, body = TokenMade), Reading, Changing))]
pub(crate) async fn create(
    _: Admin,
    State(app): State<Arc<App>>,
    Json(wish): Json<TokenWish>,
) -> Result<impl IntoResponse, Problem> {
    let secret = create_token(&app.core, &wish.label, wish.scope, wish.expires_days).await?;
    let made = TokenMade { id: secret.id().to_owned(), token: secret.reveal().to_owned() };
    Ok((StatusCode::CREATED, axum::Json(made)))
}

/// Revokes a token: it is refused from now on.
#[utoipa::path(delete, path = "/api/v1/tokens/{id}", operation_id = "revoke_token", tag = "server", params(("id" = String, Path, description = "The public part of the token.")),
    responses((status = 204, description = "It is revoked."), Reading))]
pub(crate) async fn revoke(
    _: Admin,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    if !app.core.runs.revoke_token(&id).await? {
        return Err(Problem::not_found("there is no such token"));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Makes a link that signs a browser in with all rights, once, within 15 minutes.
#[utoipa::path(post, path = "/api/v1/sign-in-links", operation_id = "create_sign_in_link", tag = "server", responses((status = 201, body = SignInLink), Reading))]
pub(crate) async fn sign_in_link(
    _: Admin,
    State(app): State<Arc<App>>,
) -> Result<impl IntoResponse, Problem> {
    let code = app.gatekeeper.make_sign_in("sign-in link", Scope::Admin).await?;
    let code = code.ok_or_else(|| Problem::unavailable("the system has no random numbers"))?;
    let path = format!("{SIGN_IN_PATH}?code={}", code.reveal());
    Ok((StatusCode::CREATED, axum::Json(SignInLink { path })))
}
