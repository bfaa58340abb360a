//! Backend of runs that work as a Job of a cluster (docs/kubernetes.md). The run is followed by its journal.

#![deny(clippy::wildcard_enum_match_arm)]

use std::time::Duration;

use super::{Cluster, HANDOVER_FILE, JobEnd, JobState, KubernetesError, KubernetesOptions, Work, on_claim};
use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_project::internals::{Handover, timing};
use cliq_project::{Check, CheckStatus, Project, Settings};
use cliq_protocol::RunId;
use cliq_settings::{KubernetesSettings, ReviewSettings};

use super::job_follower::JobFollower;
use crate::backend::{Backend, RunHandle};
use crate::cancellation::Cancellation;
use crate::child_process::request_cancel;
use crate::error::BackendError;
use crate::follower_lock;
use crate::monitor::{RunEnd, RunMonitor, RunObserver};
use crate::run_job::{RunJob, last_run_id};
use cliq_orchestrator::internals::blocking;

/// Time that a cancelled run has to end, in addition to the time of its agents.
const GRACE: Duration = Duration::from_secs(15);
/// Setting of the memory limit.
const MEMORY: &str = "kubernetes.memory";
/// Variable that lets a signal end a run like a crash instead of cancelling it. A drained node ends its pods by signals.
const DIE_BY_SIGNALS: &str = "CLIQ_DIE_BY_SIGNALS";

/// Backend of runs that work as a Job of a Kubernetes cluster.
#[derive(Debug)]
pub struct Kubernetes {
    options: KubernetesOptions,
    home: Utf8PathBuf,
    has_review_server: bool,
}

impl Kubernetes {
    /// Creates the backend that the settings describe. `is_shared_database` tells whether servers on other machines see the same
    /// database, which runs in a cluster need (docs/kubernetes.md).
    ///
    /// # Errors
    /// Returns an error if the database is not shared, or the project's host has no cliq home.
    pub fn new(
        project: &Project,
        settings: &Settings,
        is_shared_database: bool,
    ) -> Result<Self, BackendError> {
        Self::require_shared_database(is_shared_database)?;
        Ok(Self {
            options: KubernetesOptions::of(settings),
            home: project.host().home.clone().ok_or(BackendError::NoHome)?,
            has_review_server: ReviewSettings::read(settings).server_url.is_some(),
        })
    }

    /// Returns an error if the database is not shared with servers on other machines.
    ///
    /// # Errors
    /// Returns the error with its remedy.
    pub fn require_shared_database(is_shared: bool) -> Result<(), BackendError> {
        if is_shared {
            return Ok(());
        }
        Err(BackendError::Unprepared {
            message: "runs in a cluster need PostgreSQL: `database.url` names none".to_owned(),
            hint: "`cliq settings set -g database.url postgresql://USER@HOST/DATABASE`; docs/kubernetes.md in the repository of cliq has the whole set-up",
        })
    }

    /// Returns the id of the run with this id, else of the project's last run, if its Job is active. Another process may follow it,
    /// here or on another machine.
    ///
    /// # Errors
    /// Returns an error if the journal or the cluster cannot be read.
    pub async fn find_active(
        &self,
        project: &Project,
        run_id: Option<&RunId>,
    ) -> Result<Option<RunId>, BackendError> {
        let run_id = match run_id {
            Some(run_id) => Some(run_id.clone()),
            None => last_run_id(project)?,
        };
        match run_id {
            Some(run_id) if self.is_active(&run_id).await? => Ok(Some(run_id)),
            _ => Ok(None),
        }
    }

    async fn is_active(&self, run_id: &RunId) -> Result<bool, BackendError> {
        Ok(Cluster::connect(&self.options).await?.find(run_id).await? == Some(JobState::Living))
    }

    /// Checks whether the cluster responds, has the claim, and grants what cliq needs. Returns `None` if the settings do not enable
    /// clusters.
    pub async fn check(settings: &Settings, is_shared_database: bool) -> Option<Check> {
        if !KubernetesSettings::read(settings).enabled {
            return None;
        }
        let (status, detail) = match check(&KubernetesOptions::of(settings), is_shared_database).await {
            Ok(checked) => checked,
            Err(error) => (CheckStatus::Missing, error.to_string()),
        };
        Some(Check::new("kubernetes", status, detail))
    }

    fn grace(settings: &Settings) -> Duration {
        timing(settings).kill_grace * 2 + GRACE
    }

    fn work(&self, job: &RunJob, observer: &mut dyn RunObserver) -> Result<Work, BackendError> {
        let (workspace, mount_path) = (job.dir().workspace(), &self.options.mount_path);
        on_claim(workspace, mount_path).map_err(KubernetesError::from)?;
        let mut mounts = Vec::new();
        for shared in job.paths() {
            match on_claim(&shared.path, mount_path) {
                Ok(_) => mounts.push(shared),
                Err(_) if is_empty(&shared.path) => {}
                Err(error) => observer.warning(&format!("the run will not see {}: {error}", shared.path)),
            }
        }
        let contained = ["contained", "--handover", HANDOVER_FILE].map(str::to_owned);
        Ok(Work {
            run_id: job.run_id.clone(),
            workspace: workspace.to_owned(),
            home: self.home.clone(),
            mounts,
            arguments: contained.into_iter().chain(job.contained_arguments()).collect(),
            user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
            grace: Self::grace(&job.settings),
        })
    }

    fn handover(&self, job: &RunJob) -> Result<Vec<u8>, BackendError> {
        let mut env = job.variables()?;
        env.extend(self.options.env.clone());
        env.insert(DIE_BY_SIGNALS.to_owned(), "1".to_owned());
        let (settings, spec) = (job.project.host().settings_for_container(), job.handed_spec());
        Ok(Handover { env, settings, spec }.encode())
    }

    async fn create_job(
        &self,
        cluster: &Cluster,
        work: &Work,
        handover: Vec<u8>,
    ) -> Result<(), KubernetesError> {
        cluster.claim(&self.options.claim).await?;
        cluster.sweep().await?;
        // A Job that ended before the run is resumed.
        cluster.remove(&work.run_id).await?;
        cluster.start(work, &self.options, handover).await
    }

    fn end(&self, end: JobEnd, monitor: &mut RunMonitor<'_>) -> Result<Option<RunEnd>, BackendError> {
        let limit = || cliq_http::size(self.options.memory);
        let ended = |reason: String| Err(BackendError::Ended(reason));
        match end {
            JobEnd::Exited { code, out_of_memory, last_words } => {
                if out_of_memory {
                    monitor.warn_out_of_memory(&limit(), MEMORY);
                }
                if !monitor.is_over() {
                    last_words.lines().for_each(|line| monitor.line(false, line));
                }
                Ok(Some(monitor.end(code)))
            }
            // Recorded before the Job was removed, or before the cluster knew.
            _ if monitor.is_over() => Ok(Some(monitor.recorded_end())),
            JobEnd::OutOfMemory => Err(BackendError::OutOfMemory { limit: limit(), setting: MEMORY }),
            JobEnd::Killed { signal } => {
                Err(BackendError::Killed { subject: "process", signal: signal.into(), other: "its node" })
            }
            JobEnd::Evicted { why } => ended(format!("the run was evicted from its node: {why}")),
            JobEnd::Disrupted { why } => ended(format!("the cluster took the run's node from it: {why}")),
            JobEnd::DeadlineExceeded => {
                let limit =
                    self.options.deadline.map_or_else(String::new, |time| format!(" {} s", time.as_secs()));
                ended(format!("the run took longer than its Job may{limit} (`kubernetes.deadline`)"))
            }
            JobEnd::NotBegun(waiting) => {
                let why = if waiting.why.is_empty() { "the cluster does not say why" } else { &waiting.why };
                Err(BackendError::NotStarted {
                    message: format!("the run did not start: it waited for {}: {why}", waiting.cause),
                    hint: Some(
                        "docs/kubernetes.md in the repository of cliq explains these; `kubernetes.start_timeout` is how long a run waits",
                    ),
                })
            }
            JobEnd::Removed => ended("the Job of the run was deleted while it worked".to_owned()),
        }
    }
}

fn is_empty(path: &Utf8Path) -> bool {
    path.read_dir_utf8().is_ok_and(|mut entries| entries.next().is_none())
}

async fn check(
    options: &KubernetesOptions,
    is_shared_database: bool,
) -> Result<(CheckStatus, String), BackendError> {
    Kubernetes::require_shared_database(is_shared_database)?;
    let cluster = Cluster::connect(options).await?;
    let missing = cluster.missing_rights().await?;
    let place = format!("{} (namespace {})", cluster.address(), cluster.namespace());
    if !missing.is_empty() {
        return Ok((CheckStatus::Missing, format!("{place} does not grant: {}", missing.join(", "))));
    }
    let claim = cluster.claim(&options.claim).await?;
    Ok(match claim {
        Some(claim) if !claim.is_shared => {
            let detail =
                format!("only one node can write to the claim {} (ReadWriteMany is needed)", options.claim);
            (CheckStatus::Note, detail)
        }
        _ if !options.mount_path.is_dir() => {
            (CheckStatus::Note, format!("the claim is not mounted here, at {}", options.mount_path))
        }
        _ => (CheckStatus::Ok, format!("{place} has the claim {}", options.claim)),
    })
}

#[async_trait]
impl Backend for Kubernetes {
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError> {
        self.is_active(&job.run_id).await
    }

    async fn start(
        &self,
        job: &RunJob,
        observer: &mut dyn RunObserver,
        cancel: &Cancellation,
    ) -> Result<Option<RunHandle>, BackendError> {
        if !self.has_review_server && job.project.asks_people()? {
            return Err(BackendError::Unprepared {
                message: "the team asks people, and no server is named that keeps its reviews".to_owned(),
                hint: "`hug.server_url` and `hug.token` name one that pods can reach: docs/kubernetes.md in the repository of cliq",
            });
        }
        let dir = job.dir().clone();
        let lock = blocking(move || follower_lock::lock(&dir)).await?;
        let cluster = Cluster::connect(&self.options).await?;
        let (work, handover) = (self.work(job, observer)?, self.handover(job)?);
        let is_started = tokio::select! {
            created = self.create_job(&cluster, &work, handover) => created.map(|()| true)?,
            () = cancel.cancelled() => false,
        };
        if !is_started {
            cluster.remove(&job.run_id).await?;
            return Ok(None);
        }
        let address = cluster.address();
        observer.notice(&format!("the Job cliq-{} waits for a node of {address}", job.run_id));
        Ok(Some(RunHandle::default().with(lock)))
    }

    async fn follow(
        &self,
        job: &RunJob,
        mut handle: RunHandle,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<RunEnd>, BackendError> {
        if handle.is_adopted {
            handle = handle.with(follower_lock::try_lock(job.dir()));
            monitor.observer().notice("the run works in the cluster already: following it");
        }
        let cluster = Cluster::connect(&self.options).await?;
        let follower = JobFollower {
            cluster: &cluster,
            run_id: &job.run_id,
            options: &self.options,
            dir: job.dir(),
            grace: Self::grace(&job.settings),
            is_own: !handle.is_adopted,
        };
        let end = follower.follow(monitor, cancel).await?;
        if let Err(error) = cluster.forget_secret(&job.run_id).await {
            monitor.observer().warning(&error.to_string());
        }
        drop(handle);
        end.map_or(Ok(None), |end| self.end(end, monitor))
    }

    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError> {
        request_cancel(job.dir().workspace())
    }
}
