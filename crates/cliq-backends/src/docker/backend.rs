//! Backend of runs that work in a container (docs/docker.md).

#![deny(clippy::wildcard_enum_match_arm)]

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{ContainerEnd, ContainerState, DockerOptions, Engine, Job, Slot, Stream, engine_address};
use async_trait::async_trait;
use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::ProjectLock;
use cliq_project::internals::{Handover, NoReviews, REVIEW_SOCKET, ReviewBackend, ReviewSocket, timing};
use cliq_project::{Check, CheckStatus, Environment, Project, Settings};
use cliq_protocol::RunId;
use cliq_settings::DockerSettings;

use crate::backend::{Backend, RunHandle};
use crate::cancellation::Cancellation;
use crate::error::BackendError;
use crate::follower_lock;
use crate::monitor::{RunEnd, RunMonitor, RunObserver};
use crate::run_job::{RunJob, last_run_id};
use cliq_orchestrator::internals::blocking;

/// Time that a cancelled run has to end, in addition to the time of its agents.
const GRACE: Duration = Duration::from_secs(15);
/// Setting of the memory limit.
const MEMORY: &str = "docker.memory";

/// Backend of runs that work in a container of Docker or Podman.
pub struct Docker {
    options: DockerOptions,
    address: String,
    home: Utf8PathBuf,
    reviews: Arc<dyn ReviewBackend>,
}

impl std::fmt::Debug for Docker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Docker").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Docker {
    /// Creates the backend that the settings describe. Human gates of its runs need a cliq server (`hug.server_url`).
    ///
    /// # Errors
    /// Returns an error if the project's host has no cliq home.
    pub fn new(project: &Project, settings: &Settings) -> Result<Self, BackendError> {
        let options = DockerOptions::of(settings);
        let address = engine_address(&options, &project.host().environment);
        let home = project.host().home.clone().ok_or(BackendError::NoHome)?;
        Ok(Self { options, address, home, reviews: Arc::new(NoReviews) })
    }

    /// Sets the reviews of this machine, for human gates of its runs.
    #[doc(hidden)]
    #[must_use]
    pub fn with_reviews(mut self, reviews: Arc<dyn ReviewBackend>) -> Self {
        self.reviews = reviews;
        self
    }

    /// Returns the id of the last run of a project if it is active in a container, after the process that followed it has died.
    ///
    /// # Errors
    /// Returns an error if the journal or the engine cannot be read.
    pub async fn find_active(&self, project: &Project) -> Result<Option<RunId>, BackendError> {
        // Containers are of this machine, and so are locks.
        if ProjectLock::holder(project.dir())?.is_none() {
            return Ok(None);
        }
        let Some(run_id) = last_run_id(project)? else { return Ok(None) };
        Ok(self.is_running(&run_id).await?.then_some(run_id))
    }

    async fn is_running(&self, run_id: &RunId) -> Result<bool, BackendError> {
        Ok(Engine::connect(&self.address).await?.find(run_id).await? == Some(ContainerState::Running))
    }

    /// Checks whether the engine responds and has the image. Returns `None` if the settings do not enable containers.
    pub async fn check(settings: &Settings, environment: &Environment) -> Option<Check> {
        if !DockerSettings::read(settings).enabled {
            return None;
        }
        let options = DockerOptions::of(settings);
        let address = engine_address(&options, environment);
        let asked = async {
            let engine = Engine::connect(&address).await?;
            Ok::<_, super::DockerError>((engine.has_image(&options.image).await?, engine.is_podman()))
        };
        let (status, detail) = match asked.await {
            Ok((true, is_podman)) => {
                let name = if is_podman { "Podman" } else { "Docker" };
                (CheckStatus::Ok, format!("{name} at {address} has {}", options.image))
            }
            Ok((false, _)) => (
                CheckStatus::Note,
                format!("there is no image {} yet: the first run pulls it", options.image),
            ),
            Err(error) => (CheckStatus::Missing, error.to_string()),
        };
        Some(Check::new("docker", status, detail))
    }

    fn slots(&self) -> Utf8PathBuf {
        self.home.join("containers")
    }

    /// Returns the path of the socket for reviews. Each follower of a run uses the same one.
    fn socket(&self, run_id: &RunId) -> Utf8PathBuf {
        let id = run_id.as_str();
        let short = &id[id.len().saturating_sub(12)..];
        self.home.join("reviews").join(format!("{short}.sock"))
    }

    fn take_slot(&self, run_id: &RunId) -> Result<Slot, BackendError> {
        let micros = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        Ok(Slot::take(&self.slots(), run_id, u64::try_from(micros).unwrap_or(u64::MAX))?)
    }

    fn job(&self, job: &RunJob, keeps_user: bool) -> Job {
        let contained = std::iter::once("contained".to_owned());
        let mounts = job.project.review_links().into_iter().chain(job.paths());
        Job {
            run_id: job.run_id.clone(),
            workspace: job.dir().workspace().to_owned(),
            home: self.home.clone(),
            mounts: mounts.collect(),
            arguments: contained.chain(job.contained_arguments()).collect(),
            user: (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()),
            keeps_user,
        }
    }

    fn handover(&self, job: &RunJob) -> Result<Vec<u8>, BackendError> {
        let mut env = job.variables()?;
        env.extend(self.options.env.clone());
        env.insert(REVIEW_SOCKET.to_owned(), self.socket(&job.run_id).to_string());
        let (settings, spec) = (job.project.host().settings_for_container(), job.handed_spec());
        Ok(Handover { env, settings, spec }.encode())
    }

    /// Lets human gates of a run reach the reviews of this machine. Returns only if that is impossible.
    async fn serve_reviews(&self, socket: &Utf8Path, workspace: &Utf8Path) -> BackendError {
        let failed = |message: String| BackendError::ReviewSocket { path: socket.to_string(), message };
        match ReviewSocket::listen(socket) {
            Ok(listening) => {
                listening.serve(workspace, Arc::clone(&self.reviews)).await;
                failed("the socket was closed".to_owned())
            }
            Err(error) => failed(error.to_string()),
        }
    }

    fn end(&self, end: ContainerEnd, monitor: &mut RunMonitor<'_>) -> Result<Option<RunEnd>, BackendError> {
        let limit = || cliq_http::size(self.options.memory);
        match end {
            // Exit code of shells and `docker run` for a program that cannot be started.
            ContainerEnd::Exited { code: 126 | 127, .. } if monitor.status().is_none() => {
                Err(BackendError::NoProgram { image: self.options.image.clone() })
            }
            ContainerEnd::Exited { code, out_of_memory } => {
                if out_of_memory {
                    monitor.warn_out_of_memory(&limit(), MEMORY);
                }
                Ok(Some(monitor.end(code)))
            }
            ContainerEnd::OutOfMemory => Err(BackendError::OutOfMemory { limit: limit(), setting: MEMORY }),
            ContainerEnd::Killed { signal } => Err(BackendError::Killed {
                subject: "container",
                signal: signal.into(),
                other: "the engine as it stopped",
            }),
            ContainerEnd::NotBegun { why } => Err(BackendError::NotStarted {
                message: format!("the container engine cannot start the container: {why}"),
                hint: None,
            }),
            ContainerEnd::Removed => {
                Err(BackendError::Ended("the container of the run was removed while it worked".to_owned()))
            }
        }
    }
}

#[async_trait]
impl Backend for Docker {
    async fn find(&self, job: &RunJob) -> Result<bool, BackendError> {
        self.is_running(&job.run_id).await
    }

    async fn start(
        &self,
        job: &RunJob,
        observer: &mut dyn RunObserver,
        cancel: &Cancellation,
    ) -> Result<Option<RunHandle>, BackendError> {
        let (dir, run_id) = (job.dir(), &job.run_id);
        let locked = dir.clone();
        let lock = blocking(move || follower_lock::lock(&locked)).await?;
        let engine = Engine::connect(&self.address).await?;
        let slot = self.take_slot(run_id)?;
        let description = self.job(job, engine.maps_users().await?);
        let handover = self.handover(job)?;
        let mut notices = |text: &str| observer.notice(text);
        let is_ready = tokio::select! {
            ready = async {
                engine.require_image(&self.options.image, &mut notices).await?;
                let limit = self.options.max_containers;
                engine.wait_for_place(&slot, &self.home, &self.slots(), limit, &mut notices).await
            } => ready.map(|()| true)?,
            () = follower_lock::cancelled(dir, cancel) => false,
        };
        if !is_ready {
            return Ok(None);
        }
        // A container that ended, and whose follower died before it could remove it.
        engine.remove(run_id).await?;
        engine.start(&description, &self.options, &handover).await?;
        Ok(Some(RunHandle::default().with(slot).with(lock)))
    }

    async fn follow(
        &self,
        job: &RunJob,
        mut handle: RunHandle,
        monitor: &mut RunMonitor<'_>,
        cancel: &Cancellation,
    ) -> Result<Option<RunEnd>, BackendError> {
        let run_id = &job.run_id;
        if handle.is_adopted {
            let lock = follower_lock::try_lock(job.dir());
            handle = handle.with(lock).with(self.take_slot(run_id)?);
            monitor.observer().notice("the run works in its container already: following it");
        }
        // The container may work already, and the engine may go at any moment.
        let engine = Engine::reconnect(&self.address, |text| monitor.observer().notice(text)).await?;
        let socket = self.socket(run_id);
        let grace = timing(&job.settings).kill_grace * 2 + GRACE;
        let end = tokio::select! {
            end = follow_container(&engine, run_id, monitor, grace, cancel) => end?,
            error = self.serve_reviews(&socket, job.dir().workspace()) => return Err(error),
        };
        // The end of the run is known. A container that stays behind is removed with the next run.
        if let Err(error) = engine.remove_ended(run_id, |text| monitor.observer().notice(text)).await {
            monitor.observer().notice(&format!("{error}; the next run removes the container"));
        }
        drop(handle);
        self.end(end, monitor)
    }

    async fn cancel(&self, job: &RunJob) -> Result<(), BackendError> {
        Ok(Engine::connect(&self.address).await?.terminate(&job.run_id).await?)
    }
}

/// Follows a container to its end. `cancel` cancels the run in it. A run that does not end in time is killed.
async fn follow_container(
    engine: &Engine,
    run_id: &RunId,
    monitor: &mut RunMonitor<'_>,
    grace: Duration,
    cancel: &Cancellation,
) -> Result<ContainerEnd, BackendError> {
    let monitor = std::sync::Mutex::new(monitor);
    let with = |work: &mut dyn FnMut(&mut RunMonitor<'_>)| {
        work(&mut monitor.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
    };
    let mut following = std::pin::pin!(engine.follow(
        run_id,
        |stream, line| with(&mut |monitor| monitor.line(stream == Stream::Stdout, line)),
        |text| with(&mut |monitor| monitor.observer().notice(text)),
    ));
    tokio::select! {
        end = &mut following => return Ok(end?),
        () = cancel.cancelled() => engine.terminate(run_id).await?,
    }
    match tokio::time::timeout(grace, &mut following).await {
        Ok(end) => Ok(end?),
        Err(_) => {
            engine.kill(run_id).await?;
            Ok(following.await?)
        }
    }
}
