//! Triggers (docs/triggers.md): schedules, webhooks, ends of runs and changed files start runs of teams.
//!
//! The decisions are pure: [`Schedule`] knows the ticks of a cron expression, [`verify`] checks signatures, [`plan`] turns the variables of
//! a cause into a run or the reason for none, [`decide`] keeps concurrency groups. [`Engine`] brings causes to the store and runs to the
//! supervisor. Each cause is a row, and the run of a row is stored in the transaction that decides it: so each cause fires once.
//!
//! [`read_triggers`] reads `triggers.yml` and reports every problem with its place.

mod decide;
mod documents;
mod engine;
mod file;
mod model;
mod plan;
mod presets;
mod schedule;
mod signature;
mod template;

pub use decide::{GroupDecision, decide};
pub use documents::{FiringDocument, PlanDocument, PlanOutcome, TestRequest, TriggerDocument, test_trigger};
pub use engine::{Accepted, Engine, EngineOptions, HookRefusal, MAX_BODY, StartError, set_paused};
pub use file::{TriggersCheck, read_file, read_triggers, triggers_path, triggers_schema};
pub use model::{Concurrency, FileSource, Policy, RunTemplate, Source, Trigger, Webhook};
pub use plan::{Plan, PlannedRun, plan};
pub use presets::Preset;
pub use schedule::{CatchUp, Due, Schedule};
pub use signature::{Construction, Delivery, Scheme, SignatureError, verify};
pub use template::{Template, TemplateError};

/// Parsers for the fuzz targets. No part of the interface.
#[doc(hidden)]
pub mod fuzz {
    pub use crate::engine::parse_body;
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
