//! Supervisor of runs (docs/server.md, docs/embedding.md): starts, queues, follows, recovers and shares runs. No HTTP.
//!
//! A run is a process of its own (`cliq run --headless`) that outlives the supervisor. A supervisor that starts again follows the
//! runs that are still active and continues where the previous one stopped. Each event of a journal is stored once.
//!
//! Start with [`Supervisor::start`]. [`NewRun`] is an unchecked request; [`Supervisor::check`] returns the
//! [`CheckedRun`] that [`Supervisor::submit`] takes. [`EventTail`] reads the events of one run from any position.
//!
//! * `queue.rs` assigns free slots, `replicas.rs` shares runs among supervisors on one database.
//! * `follower.rs` accompanies one run, `journal.rs` translates its journal, `orchestrator.rs` starts its process.
//! * `discovery.rs` finds runs that people started, `retention.rs` removes old ones.
//!
//! Decisions are made by [`cliq_model::Lifecycle`]. The library prints nothing and reads neither the environment nor the home directory.

mod change;
pub mod clock;
mod counters;
mod discovery;
mod follower;
mod hub;
mod journal;
mod last_run;
mod options;
mod orchestrator;
mod output;
mod queue;
mod replicas;
mod repositories;
mod request;
mod retention;
mod review_store;
mod shared;
mod steering;
mod supervisor;
mod tail;
mod task_log;
#[cfg(test)]
mod test_support;
mod wake;
mod workspace;
pub mod workspace_files;
mod workspace_io;

pub use change::ChangeError;
pub use counters::Counters;
pub use hub::{Hub, StoredEvent};
pub use journal::status_document;
pub use options::{SupervisorOptions, TaskOptions};
pub use replicas::Duty;
pub use repositories::check_repository;
pub use request::{
    AllowedTeams, CheckedRun, InputErrors, MAX_BUDGET_TOKENS, MAX_PARALLEL, MAX_REPOS, NewRun, PhaseError,
    RequestError, RunRules, ValueError, check_budget, check_phase,
};
pub use steering::SteeringRefusal;
pub use supervisor::{RegisterError, Supervisor};
pub use tail::{EventTail, TailItem};
pub use task_log::TaskLog;
pub use workspace_io::{WorkspaceIo, WorkspaceIoError};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
