//! Runs in a container or a cluster: choice of the backend, and what a person sees of the run.

use std::io::Write;
use std::process::ExitCode;
#[cfg(feature = "docker")]
use std::sync::Arc;

#[cfg(feature = "docker")]
use cliq_backends::Docker;
#[cfg(feature = "kubernetes")]
use cliq_backends::Kubernetes;
use cliq_backends::{Backend, BackendError, BackendKind, Cancellation, RunJob, RunObserver};
use cliq_orchestrator::{Record, RunView};
use cliq_project::{Check, Project, Settings};
use cliq_protocol::RunId;

use super::signals::interrupted;
use crate::args::RunArgs;
use crate::failure::Failure;
#[cfg(feature = "kubernetes")]
use crate::gateway;
use crate::gateway::block_on;
use crate::render::{progress::Progress, summary};
use crate::ui;

impl From<BackendError> for Failure {
    fn from(error: BackendError) -> Self {
        let hint = error.hint();
        let failure = match error {
            BackendError::Project(error) => return error.into(),
            BackendError::File(error) => return error.into(),
            BackendError::Lock(error) => return error.into(),
            BackendError::NoHome | BackendError::Spawn { .. } => Self::usage(error.to_string()),
            other => Self::failed(other.to_string()),
        };
        match hint {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Returns the backend of a run: by the arguments, else by the settings. `None` is this machine.
pub(super) fn choose(args: &RunArgs, settings: &Settings) -> Result<Option<BackendKind>, Failure> {
    available(match (args.kubernetes, args.docker, args.no_docker) {
        (true, _, _) => Some(BackendKind::Kubernetes),
        (_, true, _) => Some(BackendKind::Docker),
        (_, _, true) => None,
        _ => BackendKind::of_settings(settings),
    })
}

/// Returns an error if this program was built without the backend.
pub(super) fn available(kind: Option<BackendKind>) -> Result<Option<BackendKind>, Failure> {
    match kind {
        Some(kind @ BackendKind::Docker) if !cfg!(feature = "docker") => Err(missing(kind)),
        Some(kind @ BackendKind::Kubernetes) if !cfg!(feature = "kubernetes") => Err(missing(kind)),
        kind => Ok(kind),
    }
}

fn missing(kind: BackendKind) -> Failure {
    Failure::failed(format!("this cliq was built without runs in {}", kind.name()))
        .hint("`cliq run --no-docker` works on this machine")
}

/// Returns the option of `cliq run` that chooses a backend.
pub(super) fn flag(kind: BackendKind) -> &'static str {
    match kind {
        BackendKind::Docker => "--docker",
        BackendKind::Kubernetes => "--kubernetes",
    }
}

/// Returns the id of the run with this id, else of the last run, if it is active in a backend.
#[cfg_attr(not(all(feature = "docker", feature = "kubernetes")), allow(unused_variables))]
pub(super) fn find_active(
    kind: BackendKind,
    project: &Project,
    settings: &Settings,
    run_id: Option<&RunId>,
) -> Result<Option<RunId>, Failure> {
    match kind {
        #[cfg(feature = "docker")]
        BackendKind::Docker => {
            let backend = docker(project, settings)?;
            block_on(async { Ok(backend.find_active(project).await?) })
        }
        #[cfg(feature = "kubernetes")]
        BackendKind::Kubernetes => {
            let backend = kubernetes(project, settings)?;
            block_on(async { Ok(backend.find_active(project, run_id).await?) })
        }
        #[cfg(not(all(feature = "docker", feature = "kubernetes")))]
        kind => Err(missing(kind)),
    }
}

#[cfg_attr(not(any(feature = "docker", feature = "kubernetes")), expect(unused_variables))]
fn backend(kind: BackendKind, job: &RunJob) -> Result<Box<dyn Backend>, Failure> {
    match kind {
        #[cfg(feature = "docker")]
        BackendKind::Docker => Ok(Box::new(docker(&job.project, &job.settings)?)),
        #[cfg(feature = "kubernetes")]
        BackendKind::Kubernetes => Ok(Box::new(kubernetes(&job.project, &job.settings)?)),
        #[cfg(not(all(feature = "docker", feature = "kubernetes")))]
        kind => Err(missing(kind)),
    }
}

/// Runs a job in a backend, or follows it if it is active, and shows it.
pub(super) fn run(kind: BackendKind, job: &RunJob, json: bool, headless: bool) -> Result<ExitCode, Failure> {
    let backend = backend(kind, job)?;
    let mut display = Display { progress: Progress::new(json, headless), is_closed: false };
    let end = block_on(async {
        let cancel = Cancellation::new();
        let signalled = cancel.clone();
        tokio::spawn(async move {
            interrupted().await;
            signalled.cancel();
        });
        Ok(cliq_backends::run(backend.as_ref(), job, &mut display, &cancel).await?)
    })?;
    if end.is_some() {
        crate::run_export::send_rest_from_here(&job.project, &job.settings);
    }
    let Some(end) = end else {
        ui::warning("cancelled before the run began");
        return Ok(ExitCode::from(130));
    };
    if !json && (end.status.is_some() || end.view.waiting.is_some()) {
        summary::show(&end.view, &job.project)?;
    }
    Ok(ExitCode::from(end.exit_code))
}

#[cfg(feature = "docker")]
fn docker(project: &Project, settings: &Settings) -> Result<Docker, Failure> {
    Ok(Docker::new(project, settings)?.with_reviews(Arc::new(crate::reviews::MachineReviews::default())))
}

#[cfg(feature = "kubernetes")]
fn kubernetes(project: &Project, settings: &Settings) -> Result<Kubernetes, Failure> {
    Ok(Kubernetes::new(project, settings, gateway::location()?.is_shared())?)
}

/// Returns the checks of `cliq doctor` for the backends that the settings enable.
#[cfg_attr(not(any(feature = "docker", feature = "kubernetes")), expect(unused_variables, unused_mut))]
pub(super) fn checks(settings: &Settings) -> Result<Vec<Check>, Failure> {
    let mut checks = Vec::new();
    #[cfg(feature = "kubernetes")]
    {
        let is_shared = gateway::location().is_ok_and(|location| location.is_shared());
        checks.extend(block_on(async { Ok(Kubernetes::check(settings, is_shared).await) })?);
    }
    #[cfg(feature = "docker")]
    {
        let environment = crate::project::host().environment;
        checks.extend(block_on(async { Ok(Docker::check(settings, &environment).await) })?);
    }
    Ok(checks)
}

/// Display of a run that works in a backend.
struct Display {
    progress: Progress,
    /// Whether the reader of standard output has closed it. The run continues.
    is_closed: bool,
}

impl RunObserver for Display {
    fn record(&mut self, record: &Record, view: &RunView) {
        self.is_closed = self.is_closed || self.progress.show(record, view).is_err();
    }

    fn output(&mut self, line: &str) {
        let _ = writeln!(std::io::stderr(), "{}", ui::plain(line));
    }

    fn notice(&mut self, text: &str) {
        ui::hint(text);
    }

    fn warning(&mut self, text: &str) {
        ui::warning(text);
    }
}
