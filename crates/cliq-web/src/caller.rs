//! Caller of a request, and the scopes that handlers require.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cliq_model::{Person, Scope};

use crate::problem::Problem;

/// Carrier of a caller's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// Header `Authorization`.
    Token,
    /// Cookie of a browser session.
    Cookie,
}

/// Caller with a valid token.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Id of the token. Empty for tokens that are not in the store.
    pub token: String,
    /// Label of the token.
    pub label: String,
    /// Scope of the token.
    pub scope: Scope,
    /// Carrier of the token.
    pub via: Via,
    /// Person who signed in by a provider.
    pub person: Option<Person>,
}

impl Caller {
    /// Returns the name for records: the verified mail address of a person, otherwise the label of the token.
    #[must_use]
    pub fn actor(&self) -> &str {
        self.mail().unwrap_or(&self.label)
    }

    /// Returns the verified mail address of a person who signed in by a provider.
    #[must_use]
    pub fn mail(&self) -> Option<&str> {
        self.person.as_ref()?.mail.as_deref()
    }
}

/// Caller that may read.
#[derive(Debug)]
pub struct Reader;
/// Caller that may start and change runs.
#[derive(Debug)]
pub struct Runner(
    /// Caller.
    pub Caller,
);
/// Caller that may answer reviews: as [`Runner`], or a person with a verified mail address, who answers in their own name.
#[derive(Debug)]
pub struct Reviewer(
    /// Caller.
    pub Caller,
);
/// Caller that may write, try, install and publish teams.
#[derive(Debug)]
pub struct Editor(
    /// Caller.
    pub Caller,
);
/// Caller that may do everything.
#[derive(Debug)]
pub struct Admin;

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

impl<S: Sync> FromRequestParts<S> for Editor {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        demand(parts, Scope::Edit).map(Self)
    }
}

impl<S: Sync> FromRequestParts<S> for Reviewer {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let caller = demand(parts, Scope::Read)?;
        if caller.mail().is_some() { Ok(Self(caller)) } else { demand(parts, Scope::Run).map(Self) }
    }
}

impl<S: Sync> FromRequestParts<S> for Admin {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        demand(parts, Scope::Admin).map(|_| Self)
    }
}
