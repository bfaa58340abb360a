//! Addresses of the pages.

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use cliq_web::{Core, Problem, get, post};

use crate::delta::{SentPages, differences};
use crate::mission::{Boards, forget_after_changes};
use crate::page::{PageError, with_navigation};
use crate::visitor::Visitor;
use crate::{
    assets, audit, changes, compare, evaluations, handoff, live, log, mission, new_run, plans, projects,
    review, run, runs, signals, studio, teams, tokens, triggers, usage, views, workspace,
};

/// Returns the routes of the dashboard. Access control puts the caller into each request before it arrives here.
pub fn router<S: Clone + Send + Sync + 'static>(core: Arc<Core>) -> Router<S> {
    let boards = Arc::<Boards>::default();
    let router = Router::new();
    #[cfg(debug_assertions)]
    let router = router.route("/design", get(crate::design::page));
    router
        .route("/", get(mission::page))
        .route("/runs", get(runs::page))
        .route("/runs/new", get(new_run::page).merge(post(new_run::submit)))
        .route("/runs/cancel", post(runs::cancel))
        .route("/runs/{id}", get(run::page))
        .route("/runs/{id}/cancel", post(run::cancel))
        .route("/runs/{id}/forms", get(mission::run_forms))
        .route("/runs/{id}/resume", post(run::resume))
        .route("/runs/{id}/steer", post(run::steering::send))
        .route("/runs/{id}/changes", get(changes::page).merge(post(changes::comment)))
        .route("/runs/{id}/timeline", get(run::timeline::page))
        .route("/runs/{id}/transcripts", get(run::transcripts::list))
        .route("/runs/{id}/transcripts/{name}", get(run::transcripts::page))
        .route("/runs/{id}/artifacts", get(run::artifacts::page))
        .route("/runs/{id}/cost", get(run::cost::page))
        .route("/runs/{id}/events", get(run::events::page))
        .route("/runs/{id}/logs", get(run::outputs::page))
        .route("/runs/{id}/logs/{name}", get(log::page))
        .route("/runs/{id}/handoffs/{from}/{to}", get(handoff::page))
        .route("/runs/{id}/files", get(workspace::page))
        .route("/runs/{id}/document", get(workspace::document))
        .route("/reviews", get(review::list))
        .route("/reviews/{id}", get(review::page).merge(post(review::answer)))
        .route("/reviews/{id}/form", get(mission::answer_form))
        .route("/reviews/{id}/comments", post(review::comments::of_visitor))
        .route("/compare", get(compare::page))
        .route("/teams", get(teams::list))
        .route("/teams/{scope}/{name}", get(teams::page))
        .route("/studio", get(studio::list).merge(post(studio::create)))
        .route("/studio/generate", post(studio::generate))
        .route("/studio/{draft}", get(studio::editor::page))
        .route("/studio/{draft}/save", post(studio::editor::save))
        .route("/studio/{draft}/add", post(studio::editor::add))
        .route("/studio/{draft}/remove-file", post(studio::editor::remove_file))
        .route("/studio/{draft}/remove", post(studio::remove))
        .route("/studio/{draft}/try", get(studio::trial::page).merge(post(studio::trial::submit)))
        .route("/studio/{draft}/change", get(studio::change::page).merge(post(studio::change::propose)))
        .route("/studio/{draft}/accept", post(studio::change::accept))
        .route("/studio/{draft}/install", get(studio::install::page).merge(post(studio::install::install)))
        .route("/studio/{draft}/publish", post(studio::install::publish))
        .route("/evaluations", get(evaluations::list))
        .route("/evaluations/{id}", get(evaluations::page))
        .route("/evaluations/{id}/trials/{number}", get(evaluations::trial))
        .route("/plans", get(plans::list))
        .route("/plans/{instance}/{plan}", get(plans::page).merge(post(plans::command)))
        .route("/signals", get(signals::page))
        .route("/signals/{id}/retry", post(signals::retry))
        .route("/projects", get(projects::page).merge(post(projects::register)))
        .route("/projects/{id}/forget", post(projects::forget))
        .route("/tokens", get(tokens::page).merge(post(tokens::create)))
        .route("/tokens/{id}/revoke", post(tokens::revoke))
        .route("/triggers", get(triggers::list))
        .route("/triggers/{name}", get(triggers::page))
        .route("/triggers/{name}/test", post(triggers::test))
        .route("/triggers/{name}/pause", post(triggers::pause))
        .route("/triggers/{name}/resume", post(triggers::resume))
        .route("/audit", get(audit::page))
        .route("/usage", get(usage::page))
        .route("/views", post(views::save))
        .route("/live", get(live::stream))
        .route("/assets/{name}", get(assets::asset))
        .layer(axum::middleware::from_fn(with_navigation))
        .layer(axum::middleware::from_fn_with_state(Arc::<SentPages>::default(), differences))
        .layer(axum::middleware::from_fn_with_state(Arc::clone(&boards), forget_after_changes))
        .layer(Extension(boards))
        .layer(Extension(Arc::<live::OpenPages>::default()))
        .with_state(core)
}

/// Returns the response to an unknown address: a page for a person, a problem document for a program.
pub async fn not_found(visitor: Option<Visitor>) -> Response {
    let problem = Problem::not_found("there is nothing at this address");
    match visitor {
        Some(visitor) => PageError::from(problem).render(&visitor),
        None => problem.into_response(),
    }
}
