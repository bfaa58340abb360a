//! Plans and tasks that outlive a run (docs/signals.md).
//!
//! A [`Plan`] is all that is known of a plan, and is stored whole after every step. [`Plan::step`] takes what happened — a
//! signal, the end of an agent, a person's command — and changes it; what does not fit is an error and changes nothing.
//! [`Plan::jobs`] says which agents are to run. The daemon compares it with what runs, so a crash at any moment
//! leaves nothing to be remembered.
//!
//! The machine does no IO and knows no clock and no process. [`Plans`] steps what is stored; [`Daemon`] is the loop that
//! claims signals and runs agents, by a [`PlanAgents`] that knows how agents run in a project.

mod brief;
mod daemon;
mod document;
mod layout;
mod machine;
mod model;
mod plan_file;
mod role;
mod roles;
mod service;
mod table;
mod worktrees;

pub use brief::brief;
pub use daemon::{AgentRun, Assignment, Daemon, DaemonEvent, PlanAgents, RunCompanion};
pub use document::{plan_document, reason_of, role_of, stage_of};
pub use layout::{job_dir, plan_dir, read_plan_file};
pub use machine::{Command, Context, Effects, Event, Note};
pub use model::{
    Brief, Config, Guidance, Infrastructure, Job, PLAN_VERSION, Plan, PlanState, Purpose, Question,
    QuestionSubject, SharedFile, Slots, Stage, StartReason, TaskLoop, WaitingFor, Work, WorkId,
};
pub use plan_file::{PlanFile, PlanProblem, TaskSpec, WaveSpec};
pub use role::Role;
pub use service::{AddError, Plans, StepError, read};
pub use table::{plan_table, task_table};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
