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
//! * `discovery.rs` finds runs that people started, `retention.rs` removes old ones, `leftovers.rs` workspaces that a server left.
//!
//! Decisions are made by [`cliq_model::Lifecycle`]. The library prints nothing and reads neither the environment nor the home directory.

mod change;
mod clock;
mod counters;
mod delegation;
mod discovery;
mod follower;
mod hub;
mod journal;
mod last_run;
mod leftovers;
mod observer;
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
#[cfg(test)]
mod test_support;
mod wake;
mod words;
mod workspace;
mod workspace_files;
mod workspace_io;

pub use change::ChangeError;
pub use counters::Counters;
pub use delegation::{DelegationLog, DelegationOptions};
pub use hub::{Hub, StoredEvent};
pub use observer::ProcessObserver;
pub use options::SupervisorOptions;
pub use request::{
    AllowedTeams, CheckedRun, InputErrors, MAX_BUDGET_TOKENS, MAX_PARALLEL, MAX_REPOS, NewRun, RequestError,
    RunRules, ValueError,
};
pub use steering::SteeringRefusal;
pub use supervisor::{RegisterError, Supervisor};
pub use tail::{EventTail, TailItem};
pub use words::Words;
pub use workspace_io::WorkspaceIoError;

pub use cliq_model::{Recovery, Run, RunFilter, RunSpec, RunState, RunStore, StoreError};
pub use cliq_project::{Environment, Host, Settings};

/// Items that other crates of cliq use. They are no part of the interface for embedders and change in any version.
#[doc(hidden)]
pub mod internals {
    pub use crate::journal::status_document;
    pub use crate::replicas::Duty;
    pub use crate::repositories::check_repository;
    pub use crate::request::{PhaseError, check_budget, check_phase};
    pub use crate::workspace_io::WorkspaceIo;

    /// Clock.
    pub mod clock {
        pub use crate::clock::*;
    }

    /// Files of workspaces.
    pub mod workspace_files {
        pub use crate::workspace_files::*;
    }
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
