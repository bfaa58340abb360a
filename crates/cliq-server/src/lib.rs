//! The server of cliq (SPEC section 15): it starts and follows runs, and offers them over HTTP and in a dashboard.
//!
//! [`Server::bind`] prepares everything, [`Server::run`] serves until its stop token is cancelled. A run is a process of its own
//! (`cliq run --headless`) that outlives the server: a server that starts again follows the runs that go on, from where it was.
//!
//! * `supervisor/` starts orchestrators, follows their journals, and makes what they say durable.
//! * `hub.rs` gives new events to subscribers.
//! * `api/` is HTTP for programs, described by OpenAPI; `pages/` is HTML for people.
//! * `a2a/` makes teams callable by A2A clients.
//! * `review_pages.rs` serves one review for a run that has no server.
//! * `access/` decides who may do what; `listener.rs` limits what a connection may cost.
//!
//! The library prints nothing and reads neither the environment nor the home directory by itself.

mod a2a;
mod access;
mod access_log;
mod api;
mod app;
mod clock;
mod demo_site;
mod hub;
mod listener;
mod metrics;
mod options;
mod pages;
mod problem;
mod project_files;
mod review_pages;
mod server;
mod supervisor;
mod tail;

pub use a2a::{A2aOptions, TaskEventsFile, agent_card};
pub use access::SIGN_IN_PATH;
pub use api::openapi;
pub use demo_site::DemoSite;
pub use options::{ServerOptions, TlsFiles};
pub use review_pages::ReviewPages;
pub use server::{Server, ServerError};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
