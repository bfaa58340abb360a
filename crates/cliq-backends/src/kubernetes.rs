//! Runs in a Kubernetes cluster (docs/kubernetes.md): a Job for each run, which does the whole pipeline in one pod.
//!
//! Workspaces are on a claim that several nodes can write to, and that is mounted here at the same path as in pods. So journal, logs and
//! results of a run are read from files, as those of any other run; the API server is asked for how the Job stands only.
//!
//! [`Kubernetes`] is the backend. [`manifest`](job) makes Job and Secret, and [`job_status`] says how a run stands, both without IO; [`Cluster`] speaks to the API server. A Job is named
//! by its run, so a later follower of the run finds it, and no run is started twice.

mod backend;
mod cluster;
mod error;
mod follow;
mod job_follower;
mod job_status;
mod manifest;
mod options;

pub use backend::Kubernetes;
use cluster::{Cluster, JobState};
pub use cluster::{RIGHTS, Right};
pub use error::KubernetesError;
use job_status::{Cause, JobEnd, JobStatus, Waiting, job_status};
pub use manifest::NotOnClaim;
use manifest::{HANDOVER_FILE, Work, on_claim};
use options::KubernetesOptions;
