//! Backends: where a run works. In this process, in a child process, in a container, or as a Kubernetes Job.
//!
//! A [`Backend`] starts, finds, follows and cancels a run. [`run`] does all of it: it adopts the run if it is active, starts it
//! otherwise, and follows it to its end. A [`RunJob`] says what to run; a [`RunObserver`] receives events, output and notices.
//!
//! * [`InProcess`] executes the run in the calling process, [`ChildProcess`] in a `cliq` process that outlives it.
//! * `Docker` (feature `docker`) and `Kubernetes` (feature `kubernetes`) give the whole run to one container or Job.
//!
//! The journal in the workspace is the same in each case, so `cliq status`, `logs`, `cancel` and a server see no difference. Nothing
//! here prints or reads the environment.

mod backend;
mod cancellation;
mod child_process;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod container_entry;
#[cfg(feature = "docker")]
mod docker;
mod error;
#[cfg(any(feature = "docker", feature = "kubernetes"))]
mod follower_lock;
mod in_process;
mod kind;
#[cfg(feature = "kubernetes")]
mod kubernetes;
mod monitor;
mod run_job;
mod run_mode;
mod spec_input;

pub use backend::{Backend, RunHandle, run};
pub use cancellation::Cancellation;
pub use child_process::ChildProcess;
#[cfg(feature = "docker")]
pub use docker::{Docker, DockerError};
pub use error::BackendError;
pub use in_process::InProcess;
pub use kind::BackendKind;
#[cfg(feature = "kubernetes")]
pub use kubernetes::{Kubernetes, KubernetesError, NotOnClaim};
pub use monitor::{PARKED, RunEnd, RunMonitor, RunObserver};
pub use run_job::{RunJob, RunJobBuilder};
pub use run_mode::RunMode;

pub use cliq_project::{Environment, Host, Project, Record, RunSpec, RunStart, RunView, Settings};

/// Items that other crates of cliq use. They are no part of the interface for embedders and change in any version.
#[doc(hidden)]
pub mod internals {
    pub use crate::child_process::{is_alive, is_followed, is_project_busy, request_cancel};
    #[cfg(any(feature = "docker", feature = "kubernetes"))]
    pub use crate::container_entry::enter;
    #[cfg(feature = "kubernetes")]
    pub use crate::kubernetes::{RIGHTS, Right};
    pub use crate::run_job::last_run_id;
}

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
