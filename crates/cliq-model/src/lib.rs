//! Runs as a server keeps them (docs/server.md). Pure: no files, no clock, no network.
//!
//! A [`Run`] is a row of the store: what was asked for ([`RunRequest`] with its [`RunSpec`]), how it stands ([`Lifecycle`]), and its events. [`Lifecycle::step`]
//! decides what follows from what happens to a run. A [`Change`] is a new version of a run with the events that belong to it; a
//! [`RunStore`] makes all of it durable, or nothing. A [`TaskRow`] is what a run has beside it when a
//! caller of A2A asked for it. [`Token`] is the right to call the server. An [`EvaluationRow`] has [`TrialRow`]s, each the outcome of one run.
//! A [`Firing`] of a trigger leads to one run, or to the reason for none. [`AuditStore`] records actions.

mod audit;
mod caveat;
mod change;
mod evaluation;
mod event;
mod last_run;
mod lifecycle;
mod page;
mod parking;
mod queue;
mod run;
mod sign_in;
mod spec;
mod store;
mod task;
mod token;
mod trigger;
mod usage;

pub use audit::{AuditAction, AuditEntry, AuditFilter};
pub use caveat::Caveat;
pub use change::{Change, NewRunEvent, RunEventRow};
pub use evaluation::{EvaluationRow, TrialRow, TrialState};
pub use event::{
    LogEvent, OutputSource, PhaseOutput, QueueRequest, ServerEvent, Setback, TaskOutcome, ToolCheck,
    WorkspaceCheck,
};
pub use last_run::{LastRun, NotLast, RecordedRun};
pub use lifecycle::{
    Death, Lifecycle, LifecycleEffect, LifecycleEvent, MAX_RECOVERIES, NotAllowed, Recovery, RunOutcome,
    RunState,
};
pub use page::{RunCursor, RunFilter};
pub use parking::{Cause, park, wake};
pub use queue::{Queue, Turns};
pub use run::{Instance, Run, RunChanges, RunOrigin, RunRequest, RunTotals, RunTrigger};
pub use sign_in::{Person, SignInAttempt};
pub use spec::RunSpec;
#[cfg(feature = "test-util")]
pub use store::MemoryStore;
pub use store::{
    AuditStore, EvaluationStore, Outcome, RunCounts, RunStore, SignInStore, StoreError, TaskStore,
    TriggerStore,
};
pub use task::{PushRow, PushState, StoredTask, TaskFilter, TaskRow};
pub use token::{NewToken, Scope, Secret, Token, TokenKind};
pub use trigger::{
    Added, EndedRun, Firing, FiringDecision, FiringFilter, FiringStart, FiringState, GroupState, MarkStep,
    NewFiring, NewTrigger, SourceKind, TriggerRow,
};
pub use usage::{DayTotals, ModelTotals, UsageTotals};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
