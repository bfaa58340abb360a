//! Runs as a server keeps them (docs/server.md). Pure: no files, no clock, no network.
//!
//! A [`Run`] is a row of the store: what was asked for ([`RunRequest`]), how it stands ([`Lifecycle`]), and its events. [`Lifecycle::step`]
//! decides what follows from what happens to a run. A [`Change`] is a new version of a run with the events that belong to it; a
//! [`RunStore`] makes all of it durable, or nothing. A [`TaskRow`] is what a run has beside it when a
//! caller of A2A asked for it. [`Token`] is the right to call the server. An [`EvaluationRow`] has [`TrialRow`]s, each the outcome of one run.
//! A [`Firing`] of a trigger leads to one run, or to the reason for none. [`AuditStore`] records actions.

mod audit;
mod caveat;
mod change;
mod evaluation;
mod last_run;
mod lifecycle;
mod page;
mod parking;
mod queue;
mod run;
mod sign_in;
mod store;
mod task;
mod token;
mod trigger;
mod usage;

pub use audit::{AuditAction, AuditEntry, AuditFilter, AuditStore};
pub use caveat::Caveat;
pub use change::{Change, NewRunEvent, RunEventRow};
pub use evaluation::{EvaluationRow, EvaluationStore, TrialRow, TrialState};
pub use last_run::{LastRun, NotLast, RecordedRun};
pub use lifecycle::{
    Death, Lifecycle, LifecycleEffect, LifecycleEvent, MAX_RECOVERIES, NotAllowed, Recovery, RunOutcome,
    RunState,
};
pub use page::{RunCursor, RunFilter};
pub use parking::{Cause, park, wake};
pub use queue::{Queue, Turns};
pub use run::{Instance, Run, RunId, RunOrigin, RunRequest, RunTotals, RunTrigger};
pub use sign_in::{Person, SignInAttempt, SignInStore};
pub use store::{RunCounts, RunStore};
pub use task::{PushRow, PushState, StoredTask, TaskFilter, TaskRow, TaskStore};
pub use token::{NewToken, Scope, Secret, Token, TokenKind};
pub use trigger::{
    Added, EndedRun, Firing, FiringDecision, FiringFilter, FiringStart, FiringState, GroupState, MarkStep,
    NewFiring, NewTrigger, SourceKind, TriggerRow, TriggerStore,
};
pub use usage::{DayTotals, ModelTotals, UsageTotals};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
