//! Write a cliq agent.
//!
//! An agent is a program: it reads one message on standard input, works, and reports in a file. This crate does all of
//! that but the work. [`Agent`] takes a handler per kind of phase and [`Agent::run`] is the whole of `main`:
//!
//! ```no_run
//! use cliq_sdk::{Agent, Handoff};
//!
//! fn main() -> std::process::ExitCode {
//!     Agent::new()
//!         .standard(|ctx| {
//!             ctx.progress("reading the requirement")?;
//!             let words = ctx.requirement()?.unwrap_or_default().split_whitespace().count();
//!             ctx.send(&Handoff::text(format!("The requirement has {words} words.")))?;
//!             Ok(ctx.complete(serde_json::json!({ "words": words })))
//!         })
//!         .run()
//! }
//! ```
//!
//! The handler cannot get the order of messages wrong: `ok` is written before it starts, the terminal message after it
//! returns, and a [`Completion`] can only be had from the context, so forgetting to complete does not compile. An error
//! that is returned, and a panic, are reported as `error`. A handler that a limit ended before its work was done returns
//! [`LimitReached`], after it has sent what it has with [`Handoff::with_limited`].
//!
//! Programs that do not fit into handlers use [`Session`]. Agents in other languages need no SDK: `docs/protocol.md` has
//! all they need, and [`conformance`] checks them.

pub mod conformance;
mod context;
mod handoff;
mod run;
mod session;
mod steering;

pub use cliq_protocol::{
    CommandEnd, CommandResult, Envelope, HistoryEntry, Limited, NotifyRequest, Object, Outcome, PhaseKind,
    PhaseName, SteeringMessage, Timestamp, Usage, Verdict,
};
pub use context::{GateContext, NotifyContext, PhaseContext, StandardContext, TeamContext};
pub use handoff::{Handoff, ReceivedHandoff};
pub use run::{Agent, Completion};
pub use session::{LimitReached, Reporter, SdkError, Session};
pub use steering::{Steering, SteeringStop};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
