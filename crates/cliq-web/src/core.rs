//! State that the API and the dashboard share.

use std::sync::Arc;

use cliq_gateway::Store;
use cliq_lifecycle::Plans;
use cliq_model::{AuditStore, EvaluationStore, Run, RunStore, SignInStore};
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

    /// Opens the project of a run.
    ///
    /// # Errors
    /// Returns a problem if the workspace no longer exists.
    pub fn project(&self, run: &Run) -> Result<Project, Problem> {
        Project::open(&run.workspace, self.host().clone())
            .map_err(|_| Problem::gone("the workspace of the run is gone; its events and phases are kept"))
    }

    /// Access to the plans of all projects.
    #[must_use]
    pub fn plans(&self) -> Plans {
        Plans::new(Arc::clone(&self.signals))
    }
}
