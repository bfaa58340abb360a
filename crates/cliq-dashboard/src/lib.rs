//! The dashboard: HTML for people, rendered on the server (docs/dashboard.md). It works without script; `assets/app.js` keeps an
//! open page up to date.
//!
//! [`router`] has the pages for people who are signed in, [`link_router`] the pages of reviews for people with a link. A file per page;
//! `layout.rs` is their common frame, `elements.rs` their parts, `graph.rs` the picture of a team or run.
//!
//! All text of agents is rendered as text: `maud` escapes it, and `text.rs` removes what controls a terminal.

mod ansi;
mod assets;
mod audit;
mod changes;
mod chart;
mod compare;
mod delta;
#[cfg(debug_assertions)]
mod design;
mod diff;
mod elements;
mod evaluations;
mod graph;
mod handoff;
mod icons;
mod layout;
mod live;
mod log;
mod markdown;
mod mission;
mod new_run;
mod page;
mod plans;
mod preview;
mod projects;
mod review;
mod router;
mod run;
mod runs;
mod sign_in;
mod signals;
mod studio;
mod team_cards;
mod team_runs;
mod teams;
mod text;
mod tokens;
mod triggers;
mod usage;
mod views;
mod visitor;
mod workspace;

pub use graph::{graph_of_run, graph_of_team};
pub use page::PageError;
pub use review::{ReviewSite, assets_router, link_router};
pub use router::{not_found, router};
pub use sign_in::{sign_in_page, signed_in_page, signed_out_page};
pub use visitor::Visitor;

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
