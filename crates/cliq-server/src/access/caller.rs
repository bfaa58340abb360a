//! The caller of a request, and what handlers demand of it.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cliq_runs::Scope;

use crate::problem::Problem;

/// How a caller proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Via {
    /// A token in the header `Authorization`.
    Token,
    /// The cookie of a browser's session.
    Cookie,
}

/// A caller with a valid token.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The id of its token; empty for the tokens that are not in the store.
    pub(crate) token: String,
    /// What the token is called.
    pub(crate) label: String,
    /// What it may do.
    pub(crate) scope: Scope,
    /// How it was sent.
    pub(crate) via: Via,
}

/// A caller that may read.
pub(crate) struct Reader;
/// A caller that may start and change runs.
pub(crate) struct Runner(pub(crate) Caller);
/// A caller that may do everything.
pub(crate) struct Admin;

fn demand(parts: &Parts, scope: Scope) -> Result<Caller, Problem> {
    let caller = parts.extensions.get::<Caller>().ok_or_else(Problem::unauthorized)?;
    if caller.scope < scope {
        let (has, needs) = (caller.scope.as_str(), scope.as_str());
        return Err(Problem::forbidden(format!("the token has the scope `{has}`, and this needs `{needs}`")));
    }
    Ok(caller.clone())
}

impl<S: Sync> FromRequestParts<S> for Reader {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        demand(parts, Scope::Read).map(|_| Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Runner {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        demand(parts, Scope::Run).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        demand(parts, Scope::Admin).map(|_| Self)
    }
}
