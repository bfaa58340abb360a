//! State that the API and the dashboard share.

use std::sync::Arc;

use camino::Utf8Path;
use cliq_gateway::Store;
use cliq_lifecycle::Plans;
use cliq_model::{AuditStore, EvaluationStore, Instance, Run, RunStore, SignInStore};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_project::{Host, Project};
use cliq_protocol::RunId;
use cliq_review::StoredReviews;
use cliq_supervisor::Supervisor;
use cliq_triggers::Engine;
use tokio_util::sync::CancellationToken;

use crate::people::People;
use crate::problem::Problem;
use crate::trial::{TrialDocument, trial_of};

/// State that the API and the dashboard share.
#[derive(Debug)]
pub struct Core {
    /// Store of runs, projects and tokens.
    pub runs: Arc<dyn RunStore>,
    /// Store of signals and plans.
    pub signals: Arc<dyn Store>,
    /// Store of evaluations.
    pub evaluations: Arc<dyn EvaluationStore>,
    /// Audit log.
    pub audit: Arc<dyn AuditStore>,
    /// Sessions, and sign-ins that are under way.
    pub sign_ins: Arc<dyn SignInStore>,
    /// Triggers.
    pub triggers: Engine,
    /// Directory of reviewers.
    pub people: People,
    /// Reviews.
    pub reviews: Arc<StoredReviews>,
    /// Supervisor of the runs.
    pub supervisor: Supervisor,
    /// Address of the page of a trace, with `{trace_id}` in the place of its id.
    pub trace_url: Option<String>,
    /// Cancelled when the server stops. Streams end then.
    pub stopping: CancellationToken,
}

impl Core {
    /// Host of the runs.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.supervisor.options().host
    }

    /// Finds a run by the id in an address. The run of a failed trial has that as a caveat.
    ///
    /// # Errors
    /// Returns a problem if there is no such run, or the store fails.
    pub async fn run(&self, id: &str) -> Result<Run, Problem> {
        let unknown = || Problem::not_found("there is no run of this id");
        let id = RunId::parse_uuid(id).ok_or_else(unknown)?;
        let mut run = self.runs.run(&id).await?.ok_or_else(unknown)?;
        let trial = trial_of(self, &run).await?;
        run.caveats.extend(trial.as_ref().and_then(TrialDocument::caveat));
        Ok(run)
    }

    /// Runs blocking work of the server, such as on its teams and drafts, off the threads of the runtime.
    ///
    /// # Errors
    /// Returns a problem if `work` fails or panics.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Host) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let host = self.host().clone();
        let done = spawn_blocking(move || work(&host)).await;
        done.map_err(|error| Problem::unavailable(error.to_string()))?
    }

    /// Runs blocking work on the files of a workspace, off the threads of the runtime.
    ///
    /// # Errors
    /// Returns a problem if the file system does not respond.
    pub async fn in_workspace<T: Send + 'static>(
        &self,
        workspace: &Utf8Path,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        Ok(self.supervisor.workspace_io().run(workspace, work).await?)
    }

    /// Runs blocking work on the project of a run, as [`Core::in_workspace`] does.
    ///
    /// # Errors
    /// Returns a problem if the workspace no longer exists, its file system does not respond, or `work` fails.
    pub async fn in_project<T: Send + 'static>(
        &self,
        run: &Run,
        work: impl FnOnce(&Run, &Project) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let (host, run) = (self.host().clone(), run.clone());
        let workspace = run.workspace.clone();
        let work = move || {
            let project = Project::open(&run.workspace, host).map_err(|_| {
                Problem::gone("the workspace of the run is gone; its events and phases are kept")
            })?;
            work(&run, &project)
        };
        self.in_workspace(&workspace, work).await?
    }

    /// Opens a registered project.
    ///
    /// # Errors
    /// Returns a problem if the project no longer exists, or its file system does not respond.
    pub async fn open_project(&self, instance: &Instance) -> Result<Project, Problem> {
        let (host, path) = (self.host().clone(), instance.path.clone());
        let opened = self.in_workspace(&instance.path, move || Project::open(&path, host)).await?;
        opened.map_err(|_| Problem::gone("the project is gone from its directory"))
    }

    /// Access to the plans of all projects.
    #[must_use]
    pub fn plans(&self) -> Plans {
        Plans::new(Arc::clone(&self.signals))
    }
}
