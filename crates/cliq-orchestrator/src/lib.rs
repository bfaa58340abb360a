//! Runs a cliq workflow: put it into any Rust program.
//!
//! A [`RunPlan`] says what to run; [`Run::start`] checks it and begins; [`Run::next`] gives the events as they come and
//! [`Run::finish`] the result. `docs/embedding.md` has a whole program.
//!
//! Inside, a pure state machine decides and the driver obeys: it performs the effects that the machine returns, writes each input
//! to the [`Journal`] before anything follows from it, and starts processes through a [`Launcher`].
//!
//! The library prints nothing, exits nowhere, and reads neither the environment nor the home directory. Everything that
//! happens is a [`RunEvent`].

mod agents;
mod blocking;
mod checkpoints;
mod command_script;
mod confinement;
mod dead_run;
mod driver;
mod engine;
mod events;
mod journal;
mod kept;
mod launcher;
mod orphans;
mod phase_status;
mod plan;
mod process;
mod run;
mod steering;
mod tmux;
mod trace;
mod usage;
mod view;
mod watch;
mod watchdog;

pub use agents::{AgentCommand, Agents};
pub use checkpoints::{CheckpointOf, Checkpoints};
pub use command_script::CommandScript;
pub use confinement::{Confinement, OnRefusal, PhaseProcess};
pub use engine::SkipReason;
pub use events::{
    DecisionKind, FailedItem, JOURNAL_VERSION, KeptPhase, KeptStatus, Record, RecordedBudgets, RunEvent,
};
pub use journal::{Journal, JournalError, JournalFollower, JournalUpdate};
pub use launcher::{Exit, Job, LaunchError, Launcher, Running};
pub use orphans::adopt_orphans;
pub use phase_status::PhaseStatus;
pub use plan::{Durability, KeptWork, Parent, PlanError, Recipient, RunPlan, Timing};
pub use process::ProcessLauncher;
pub use run::{ResumeError, Run, StartError};
pub use steering::{SteerError, SteeringDelivery, SteeringReceipt, SteeringView, steer};
pub use tmux::{TmuxError, TmuxLauncher, TmuxServer, run_pane};
pub use trace::{RunTrace, TraceSource};
pub use usage::UsageSummary;
pub use view::{PhaseView, RunView, WaitView};
pub use watchdog::run_watchdog;

pub use cliq_fs::{CliqDir, PipelineStatus};
pub use cliq_workflow::{TeamFolder, ValidatedWorkflow};

/// Items that other crates of cliq use. They are no part of the interface for embedders and change in any version.
#[doc(hidden)]
pub mod internals {
    pub use crate::blocking::{BlockingTask, blocking, spawn_blocking};
    pub use crate::dead_run::end_dead_run;
    pub use crate::driver::repositories;
    pub use crate::engine::{
        Activity, Amount, DecidedItem, Decision, Effect, Input, Kept, KeptOutcome, Limits, MergeOutcome,
        PhaseState, PhaseWait, Pipeline, Report, Wait,
    };
    pub use crate::events::within_line;
    pub use crate::process::{leave_terminal, raise_descriptor_limit};
    pub use crate::steering::{SteeringLedger, accepts_steering};
    pub use crate::watch::DirectoryWatch;
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
