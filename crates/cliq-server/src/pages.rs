//! The dashboard: HTML for people, made on the server. It works without script; `assets/app.js` keeps it up to date.
//!
//! All text of agents is shown as text: `maud` escapes it, `text.rs` removes what steers terminals, the policy of `access/guard.rs`
//! runs no script but the server's own.

mod assets;
mod elements;
mod graph;
mod handoff;
mod layout;
mod live;
mod log;
mod markdown;
mod new_run;
mod plans;
mod projects;
mod review;
mod run;
mod runs;
mod session;
mod signals;
mod teams;
mod text;
mod usage;
mod workspace;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use cliq_runs::Scope;
use maud::Markup;

use crate::access::{Caller, SIGN_IN_PATH};
use crate::app::App;
use crate::problem::Problem;
pub(crate) use graph::{graph_of_run, graph_of_team};
pub(crate) use review::{ReviewSite, assets_router, find as find_review, link_router};

/// The routes of the dashboard.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(runs::page))
        .route("/runs/new", get(new_run::page).post(new_run::submit))
        .route("/runs/{id}", get(run::page))
        .route("/runs/{id}/cancel", post(run::cancel))
        .route("/runs/{id}/resume", post(run::resume))
        .route("/runs/{id}/logs/{name}", get(log::page))
        .route("/runs/{id}/handoffs/{from}/{to}", get(handoff::page))
        .route("/runs/{id}/files", get(workspace::page))
        .route("/reviews", get(review::list))
        .route("/reviews/{id}", get(review::page).post(review::answer))
        .route("/teams", get(teams::list))
        .route("/teams/{scope}/{name}", get(teams::page))
        .route("/plans", get(plans::list))
        .route("/plans/{instance}/{plan}", get(plans::page).post(plans::command))
        .route("/signals", get(signals::page))
        .route("/projects", get(projects::page).post(projects::register))
        .route("/usage", get(usage::page))
        .route("/live", get(live::stream))
        .route(SIGN_IN_PATH, get(session::sign_in_page).post(session::sign_in))
        .route("/signout", post(session::sign_out))
        .route("/assets/{name}", get(assets::asset))
}

/// The answer to an address that is not there.
pub(crate) async fn not_found(caller: Option<Visitor>) -> Response {
    let problem = Problem::not_found("there is nothing at this address");
    match caller {
        Some(visitor) => PageError::from(problem).show(&visitor),
        None => problem.into_response(),
    }
}

/// A person who is signed in and may read. Others are sent to the page that signs in.
#[derive(Debug, Clone)]
pub(crate) struct Visitor {
    pub(crate) caller: Caller,
}

impl Visitor {
    /// Whether the person may start and change runs.
    pub(crate) fn may_run(&self) -> bool {
        self.caller.scope >= Scope::Run
    }

    /// Demands a scope for a form that was sent.
    pub(crate) fn demand(&self, scope: Scope) -> Result<&Caller, PageError> {
        if self.caller.scope < scope {
            let detail = format!(
                "you are signed in with the scope `{}`, and this needs `{}`",
                self.caller.scope.as_str(),
                scope.as_str()
            );
            return Err(Problem::forbidden(detail).into());
        }
        Ok(&self.caller)
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

/// A page, or a problem that is shown as a page.
pub(crate) type Page = Result<Html<String>, PageError>;

/// A problem, shown as a page.
#[derive(Debug)]
pub(crate) struct PageError(Problem);

impl From<Problem> for PageError {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<cliq_gateway::GatewayError> for PageError {
    fn from(error: cliq_gateway::GatewayError) -> Self {
        Self(error.into())
    }
}

impl PageError {
    fn show(&self, visitor: &Visitor) -> Response {
        let page = layout::page(visitor, &self.0.title, None, &layout::problem(&self.0));
        (self.0.status(), page).into_response()
    }
}

impl IntoResponse for PageError {
    fn into_response(self) -> Response {
        let page = layout::bare(&self.0.title, &layout::problem(&self.0));
        (self.0.status(), page).into_response()
    }
}

/// A page of the dashboard.
fn show(visitor: &Visitor, title: &str, current: &str, content: &Markup) -> Page {
    Ok(layout::page(visitor, title, Some(current), content))
}
