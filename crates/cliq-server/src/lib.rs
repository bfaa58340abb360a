//! Server of cliq (docs/server.md): listener, access control, HTTP API, A2A agent, push notifications, meshes.
//!
//! [`Server::bind`] prepares everything, [`Server::run`] serves until its stop token is cancelled. Runs belong to
//! [`cliq_supervisor`], pages to [`cliq_dashboard`]; the state that both share with the API is [`cliq_web::Core`].
//!
//! * `api/` has a file per resource of the HTTP API, which OpenAPI describes.
//! * `a2a/` makes teams callable by A2A clients.
//! * `access/` controls access; `listener.rs` limits the cost of a connection.
//! * `review_pages.rs` serves one review for a run without a server.
//!
//! The library prints nothing and reads neither the environment nor the home directory.

mod a2a;
mod access;
mod access_log;
mod api;
mod app;
mod certificate;
mod demo_site;
mod hooks;
mod listener;
mod mcp;
mod metrics;
mod options;
mod review_pages;
mod run_figures;
mod server;
mod trace;
mod wire_event;

pub use a2a::{A2aOptions, TaskEventsFile, agent_card};
pub use access::{GroupScopes, OidcClient, OptionsError, ProviderOptions};
pub use api::openapi;
pub use cliq_web::SIGN_IN_PATH;
pub use demo_site::DemoSite;
pub use options::{ServerOptions, TlsFiles};
pub use review_pages::ReviewPages;
pub use server::{Server, ServerError, ServerStore};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
