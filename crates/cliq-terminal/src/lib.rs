//! The full-screen terminal of cliq (docs/terminal.md).
//!
//! [`State`] is pure: [`State::update`] takes an [`Event`] and returns [`Effect`]s, and [`render`] draws a state. [`run`] is the loop around
//! them: it owns the terminal and asks a [`Source`], which knows where runs come from. Nothing else knows the library that draws.

mod answer_form;
mod app;
mod changes_view;
mod event;
mod form;
mod input;
mod layout;
mod model;
mod output;
mod plain;
mod run_form;
mod screen;
mod source;
mod state;
mod text;
mod text_view;
mod theme;
mod transcript;
mod view;
mod watch;
mod worker;

pub use app::{Options, run};
pub use event::{ChangesRequest, Effect, Event, Reply, Request};
pub use model::{
    ChangedPart, Changes, InputOffer, Offers, PhaseRow, PhaseState, ReviewDetail, RunDetail, RunKey, RunList,
    RunRow, RunStatus, Section, TeamOffer,
};
pub use plain::Announcer;
pub use screen::columns;
pub use source::{Action, ActionResult, Source, TextKind, TextPart, TextPlace, TextRequest};
pub use state::{Focus, State, Tab, key_table};
pub use theme::Theme;
pub use view::render;
pub use watch::{WatchKey, WatchScreen};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
