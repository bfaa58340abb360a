//! The server as an A2A agent (docs/a2a.md): teams that any A2A client can call.
//!
//! A task is a run. Its updates are the run's events, translated by `updates.rs`: there is no second log, so that a
//! stream goes on from any place after any break.
//!
//! * `json_rpc.rs`, `http_json.rs`: the two bindings. `agent.rs`: what each call does, for both.
//! * `new_task.rs`: a message becomes a task; `follow_up.rs`: one that goes to a task; `lookup.rs`: tasks of a caller. `view.rs`: a run as a task. `stream.rs`: its updates as they happen.
//! * `card.rs`: the agent card. `artifacts.rs`: the end of a task. `push/`: push notifications. `mesh.rs`: joining meshes. `builder/`: teams made by a model.

mod agent;
mod artifacts;
mod builder;
mod card;
pub(crate) mod card_document;
mod events_file;
mod follow_up;
mod http_json;
mod json_rpc;
mod lookup;
pub(crate) mod mesh;
mod new_task;
pub(crate) mod options;
mod push;
mod stream;
mod updates;
pub(crate) mod view;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use cliq_a2a::AgentCard;

use crate::app::App;
use cliq_web::{Caller, Problem, Via, get, post};

pub(crate) use artifacts::TaskArtifacts;
pub use card::agent_card;
pub use events_file::TaskEventsFile;
pub(crate) use mesh::join;
pub use options::A2aOptions;
pub(crate) use push::deliver;

/// The routes of A2A. Without `--a2a` there is nothing at them.
pub(crate) fn router() -> Router<Arc<App>> {
    Router::new()
        .route(AgentCard::PATH, get(card::card))
        // Where agents of 0.2 had it: some clients still look here.
        .route("/.well-known/agent.json", get(card::card))
        .route(AgentCard::KEYS_PATH, get(card::keys))
        .route(AgentCard::JSON_RPC_PATH, post(json_rpc::call))
        // Some clients add a slash to the address of the card.
        .route(&format!("{}/", AgentCard::JSON_RPC_PATH), post(json_rpc::call))
        .nest(AgentCard::HTTP_JSON_PATH, http_json::router())
}

/// A caller of A2A: it has a token.
pub(crate) struct A2aCaller(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for A2aCaller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        if app.options.a2a.is_none() {
            return Err(Problem::not_found(
                "this server is not an A2A agent: `cliq server start --a2a` makes it one",
            ));
        }
        let caller = parts.extensions.get::<Caller>().filter(|caller| caller.via == Via::Token);
        caller.cloned().map(Self).ok_or_else(Problem::unauthorized)
    }
}

impl A2aCaller {
    /// Owner of the tasks that it sees: those that were made with the same token.
    pub(crate) fn owner(&self) -> String {
        // The tokens that are not in the store have no id.
        if self.0.token.is_empty() { format!("@{}", self.0.label) } else { self.0.token.clone() }
    }
}
