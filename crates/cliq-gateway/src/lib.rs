//! The durable signal queue (docs/signals.md).
//!
//! A signal says that something happened to a plan, or is to happen. It is emitted once and processed once, even if a process dies
//! in between. [`NewSignal`] is one that was checked, and the only way into a [`Store`], which a database implements (crate
//! `cliq-store`); [`Inbox`] brings in signals that come as files.
//!
//! A worker claims a signal ([`Store::claim`]) and finishes it ([`Store::finish`]), or changes a plan by it ([`Store::apply`]), in
//! one transaction with everything that follows. A claim is a lease: after a minute it may be taken away
//! ([`Store::reset_stuck`]), and then the worker that held it can no longer finish the signal.
//!
//! Storage of plans as opaque text documents.

mod bridge;
mod error;
mod kind;
#[cfg(feature = "test-util")]
mod memory;
mod sentinel;
mod signal;
mod store;

use std::time::Duration;

pub use bridge::{BridgeReport, Inbox, RecoveryReport, WaitingFile};
pub use kind::SignalType;
pub use signal::{Claim, MAX_PAYLOAD, NewSignal, PlanName, RejectedSignal, Signal, SignalStatus};
pub use store::{Filter, Finish, NewEvent, PlanEvent, PlanRow, SignalCounts, Step, Store};

/// Interval of the search for stuck signals (docs/signals.md).
pub const REAP_EVERY: Duration = Duration::from_secs(30);
/// Time after which a claimed signal counts as stuck (docs/signals.md).
pub const STUCK_AFTER: Duration = Duration::from_secs(60);

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
