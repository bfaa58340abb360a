//! Evaluations of teams (docs/eval.md): is this team better, by how much, how certain, at what price?
//!
//! A [`Suite`](suite::Suite) has cases with checks and variants of a team. Each trial is a run of a case by a variant in a workspace of
//! its own. [`Evaluation`] runs the trials, stores each result once and continues after a kill. [`Report`](report::Report) summarizes
//! the results; [`statistics`] has the methods.
//!
//! Pure are `scheduler.rs`, `statistics/`, `report.rs` and `gate.rs`: no clock, no files, no randomness but a fixed seed. The library
//! prints nothing.

mod add_case;
mod attempt;
mod checks;
mod directory;
mod error;
mod evaluation;
mod examples;
mod gate;
mod infrastructure;
pub mod report;
mod scheduler;
pub mod statistics;
pub mod suite;
pub mod team_test;
mod trial;

pub use add_case::{AddedCase, add_case};
pub use directory::EvaluationDir;
pub use error::EvalError;
pub use evaluation::{DIRECTORY, Evaluation, Progress, result_of, suite_of};
pub use examples::{EXAMPLES, Files};
pub use gate::{Baseline, BaselineVariant, Gate, GateResult, NAMES as GATE_NAMES};
pub use infrastructure::is_infrastructure;
pub use scheduler::{Effect, Event, MAX_ATTEMPTS, Scheduler};
pub use trial::{CheckResult, TrialOutcome, TrialResult, trials_of};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
