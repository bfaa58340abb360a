//! Runs a cliq workflow: put it into any Rust program.
//!
//! A [`RunPlan`] says what to run; [`Run::start`] checks it and begins; [`Run::next`] gives the events as they come and
//! [`Run::finish`] the result. `docs/embedding.md` has a whole program.
//!
//! Inside, [`Pipeline`] decides and the driver obeys. The machine takes an [`Input`] and gives [`Effect`]s; it knows no
//! disk, clock or process. The driver carries the effects out, writes each input to the [`Journal`] before anything
//! follows from it, and starts processes through a [`Launcher`].
//!
//! The library prints nothing, exits nowhere, and reads neither the environment nor the home directory. Everything that
//! happens is a [`RunEvent`].

mod agents;
mod checkpoints;
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
mod usage;
mod view;
mod watch;
mod watchdog;

pub use agents::{AgentCommand, Agents};
pub use checkpoints::{CheckpointOf, Checkpoints};
pub use confinement::{Confinement, OnRefusal, PhaseProcess};
pub use dead_run::end_dead_run;
pub use driver::repositories;
pub use engine::{
    Activity, Amount, DecidedItem, Decision, Effect, Input, Kept, KeptOutcome, Limits, MergeOutcome,
    PhaseState, PhaseWait, Pipeline, Report, SkipReason, Wait,
};
pub use events::{
    DecisionKind, FailedItem, JOURNAL_VERSION, KeptPhase, KeptStatus, Record, RecordedBudgets, RunEvent,
};
pub use journal::{Journal, JournalError, JournalFollower, JournalUpdate};
pub use launcher::{Exit, Job, LaunchError, Launcher, Running};
pub use orphans::adopt_orphans;
pub use phase_status::PhaseStatus;
pub use plan::{Durability, KeptWork, Parent, PlanError, Recipient, RunPlan, Timing};
pub use process::{ProcessLauncher, leave_terminal, raise_descriptor_limit};
pub use run::{ResumeError, Run, StartError};
pub use steering::{
    SteerError, SteeringDelivery, SteeringLedger, SteeringReceipt, SteeringView, accepts_steering, steer,
};
pub use tmux::{TmuxError, TmuxLauncher, TmuxServer, run_pane};
pub use usage::UsageSummary;
pub use view::{PhaseView, RunView, WaitView};
pub use watch::DirectoryWatch;
pub use watchdog::run_watchdog;

pub use cliq_fs::{CliqDir, PipelineStatus};
pub use cliq_workflow::{TeamFolder, ValidatedWorkflow};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
