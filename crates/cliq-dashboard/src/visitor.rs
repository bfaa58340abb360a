//! Signed-in person who looks at a page.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Redirect;
use cliq_model::Scope;
use cliq_web::{Caller, Problem, SIGN_IN_PATH};

/// Signed-in person with read access. Others are redirected to the sign-in page.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// Caller with a valid session.
    pub caller: Caller,
}

impl Visitor {
    /// Whether the person may start and change runs.
    pub fn may_run(&self) -> bool {
        self.caller.scope >= Scope::Run
    }

    /// Whether the person may write teams.
    pub fn may_edit(&self) -> bool {
        self.caller.scope >= Scope::Edit
    }

    /// Returns the caller if their scope suffices for a form.
    ///
    /// # Errors
    /// Returns a problem if the scope is too small.
    pub fn demand(&self, scope: Scope) -> Result<&Caller, Problem> {
        if self.caller.scope < scope {
            let detail = format!(
                "you are signed in with the scope `{}`, and this needs `{}`",
                self.caller.scope.as_str(),
                scope.as_str()
            );
            return Err(Problem::forbidden(detail));
        }
        Ok(&self.caller)
    }
}

impl Visitor {
    /// Returns the caller if they may answer reviews: with the scope `run`, or in the name of their verified mail address.
    ///
    /// # Errors
    /// Returns a problem if the scope is too small.
    pub fn demand_reviewer(&self) -> Result<&Caller, Problem> {
        if self.caller.mail().is_some() { Ok(&self.caller) } else { self.demand(Scope::Run) }
    }
}

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Redirect;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Redirect> {
        match parts.extensions.get::<Caller>() {
            Some(caller) => Ok(Self { caller: caller.clone() }),
            None => Err(Redirect::to(SIGN_IN_PATH)),
        }
    }
}

impl<S: Sync> axum::extract::OptionalFromRequestParts<S> for Visitor {
    type Rejection = std::convert::Infallible;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Self::Rejection> {
        Ok(parts.extensions.get::<Caller>().map(|caller| Self { caller: caller.clone() }))
    }
}
