//! Starting a run and being with it.

use cliq_fs::{CliqDir, FsError, LockError, PipelineStatus, ProjectLock, SteeringInbox};
use cliq_protocol::{PhaseName, RunId};
use cliq_workflow::nearest;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::driver::{Driver, StartMode, put_earlier_run_aside};
use crate::events::Record;
use crate::journal::{Journal, JournalError};
use crate::plan::{PlanError, RunPlan};
use crate::view::RunView;

/// Reason why a run did not begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The plan cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Another orchestrator works on the project.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file or directory cannot be made ready.
    #[error(transparent)]
    File(#[from] FsError),
    /// The record of the run that is to be resumed cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run cannot be resumed.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A run of the id that the caller chose has already been started. It can only be resumed.
    #[error("run {0} has already been started")]
    HasBegun(RunId),
}

/// Reason why a run cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// Nothing has run.
    #[error("there is no run to resume")]
    Nothing,
    /// The last run of the project is another one than the caller chose.
    #[error("the last run of the project is {last}, and only the last one can be resumed")]
    OtherRun {
        /// The id of the last run.
        last: RunId,
    },
    /// The run is complete.
    #[error("the last run completed; there is nothing left to resume")]
    Completed,
    /// The team is not the one that the run began with.
    #[error(
        "the team's phases, their order, route targets, budgets or commands have changed since the run began: its record no longer fits"
    )]
    TeamChanged,
    /// The phase to begin with cannot be begun with.
    #[error("the team has no phase `{name}` to begin with{hint}")]
    NoSuchPhase {
        /// Requested name.
        name: String,
        /// Suggestion.
        hint: String,
    },
}

/// A run under way. Dropping it does not stop it; [`Run::cancel`] does.
///
/// ```no_run
/// # async fn example(plan: cliq_orchestrator::RunPlan) -> Result<(), cliq_orchestrator::StartError> {
/// use cliq_orchestrator::Run;
///
/// // Agents inherit the environment of this process; here it has every variable that they need.
/// let mut run = Run::start(plan, &|_variable| true)?;
/// while let Some(record) = run.next().await {
///     println!("{} {}", record.ts, record.event.describe());
/// }
/// let view = run.finish().await;
/// println!("completed: {}", view.completed());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Run {
    id: RunId,
    events: mpsc::UnboundedReceiver<Record>,
    cancel: CancellationToken,
    task: JoinHandle<RunView>,
}

impl Run {
    /// Starts a run. Needs a tokio runtime with IO and time. What an earlier run left is put aside, to
    /// `.cliq/history/<run id>/`.
    ///
    /// `has_env` says whether an environment variable is set; agents inherit the environment of this process.
    ///
    /// # Errors
    /// The plan cannot be run, another orchestrator holds the project, or a file cannot be made ready. Nothing has
    /// been started then.
    pub fn start(plan: RunPlan, has_env: &dyn Fn(&str) -> bool) -> Result<Self, StartError> {
        plan.check(has_env)?;
        let lock = ProjectLock::acquire(&plan.dir)?;
        let id = match &plan.run_id {
            Some(id) if has_begun(&plan.dir, id) => return Err(StartError::HasBegun(id.clone())),
            Some(id) => id.clone(),
            None => cliq_fs::new_run_id(),
        };
        put_earlier_run_aside(&plan.dir)?;
        Self::spawn(plan, id, StartMode::Start, lock)
    }

    /// Goes on with the project's last run, after a crash, a cancellation, an escalation or a failure (docs/decisions/0007-resume.md):
    /// what completed is not run again, what was under way starts anew. With `from`, that phase and all that depends on
    /// it run again, in any state. The run's inputs are those that it began with.
    ///
    /// # Errors
    /// As for [`Run::start`]; or there is no run to resume, it is complete (and `from` is `None`), or it does not fit
    /// the team.
    pub fn resume(
        mut plan: RunPlan,
        from: Option<&str>,
        has_env: &dyn Fn(&str) -> bool,
    ) -> Result<Self, StartError> {
        let lock = ProjectLock::acquire(&plan.dir)?;
        let (mut journal, run_id, from) = resumable(&mut plan, from, has_env)?;
        if SteeringInbox::path_of(&plan.dir, &run_id).exists() {
            // A sender that found no orchestrator may be writing to the journal.
            SteeringInbox::wait_for_senders(&plan.dir, &run_id);
            journal = resumable(&mut plan, from.as_ref().map(PhaseName::as_str), has_env)?.0;
        }
        // Nothing of the dead orchestrator's lives on unnoticed beside what now starts anew.
        crate::dead_run::end_dead_run(&plan.dir, &run_id, plan.timing.kill_grace);
        Self::spawn(plan, run_id, StartMode::Resume { journal, from }, lock)
    }

    /// Returns the error that [`Run::resume`] would return. Starts nothing.
    ///
    /// # Errors
    /// As for [`Run::resume`], save what can be known only with the lock of the project.
    pub fn check_resume(
        plan: &mut RunPlan,
        from: Option<&str>,
        has_env: &dyn Fn(&str) -> bool,
    ) -> Result<(), StartError> {
        resumable(plan, from, has_env).map(drop)
    }

    fn spawn(plan: RunPlan, id: RunId, opening: StartMode, lock: ProjectLock) -> Result<Self, StartError> {
        let (sender, events) = mpsc::unbounded_channel();
        let cancel = CancellationToken::new();
        let driver = Driver::new(plan, id.clone(), opening, lock, sender, cancel.clone())?;
        Ok(Self { id, events, cancel, task: tokio::spawn(driver.run().in_current_span()) })
    }

    /// The run's id.
    #[must_use]
    pub fn id(&self) -> &RunId {
        &self.id
    }

    /// The next event; `None` once the run is over.
    pub async fn next(&mut self) -> Option<Record> {
        self.events.recv().await
    }

    /// Asks the run to stop. It ends with `CANCELLED`, and nothing of it is left then.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Returns a closure that does what [`Run::cancel`] does, for use in a signal handler, for example.
    pub fn canceller(&self) -> impl Fn() + Send + Sync + 'static {
        let token = self.cancel.clone();
        move || token.cancel()
    }

    /// Waits for the end and gives the run as it then stands.
    ///
    /// # Panics
    /// The run's task panicked, which is a bug.
    pub async fn finish(self) -> RunView {
        match self.task.await {
            Ok(view) => view,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => unreachable!("the task is never aborted"),
            },
        }
    }
}

/// Whether a run of this id is the last one of the project or an earlier one.
fn has_begun(dir: &CliqDir, id: &RunId) -> bool {
    // A journal that cannot be read is another run's: this one would have written it whole.
    let last = Journal::read(&dir.journal()).ok().flatten();
    last.is_some_and(|journal| journal.run_id() == Some(id)) || dir.history().join(id.as_str()).exists()
}

/// The record of the run to be resumed, its id, and the phase to resume it from. The plan gets the run's inputs.
fn resumable(
    plan: &mut RunPlan,
    from: Option<&str>,
    has_env: &dyn Fn(&str) -> bool,
) -> Result<(Journal, RunId, Option<PhaseName>), StartError> {
    let mut journal = Journal::read(&plan.dir.journal())?.ok_or(ResumeError::Nothing)?;
    journal.apply_prices(&plan.prices);
    let run_id = journal.run_id().ok_or(ResumeError::Nothing)?.clone();
    if plan.run_id.as_ref().is_some_and(|id| *id != run_id) {
        return Err(ResumeError::OtherRun { last: run_id }.into());
    }
    if !journal.fits(plan) {
        return Err(ResumeError::TeamChanged.into());
    }
    let from = from.map(|name| main_phase(plan, name)).transpose()?;
    if from.is_none() && journal.completed() {
        return Err(ResumeError::Completed.into());
    }
    plan.inputs = journal.inputs();
    // Budgets of the run so far hold on where the plan has none.
    plan.budget = journal.budget().overridden_by(plan.budget);
    plan.check(has_env)?;
    Ok((journal, run_id, from))
}

/// The phase that a run can be resumed from: one of the main phases, for support phases only work for gates.
fn main_phase(plan: &RunPlan, name: &str) -> Result<PhaseName, ResumeError> {
    let workflow = &plan.workflow;
    let main = || workflow.phases().filter(|(_, p)| !p.support).map(|(_, p)| p);
    if let Some(phase) = main().find(|phase| phase.name.as_str() == name) {
        return Ok(phase.name.clone());
    }
    let hint = if workflow.find(name).is_some() {
        ": it is a support phase, which only a gate starts; name the gate".to_owned()
    } else {
        match nearest(name, main().map(|phase| phase.name.as_str())) {
            Some(near) => format!(": did you mean `{near}`?"),
            None => {
                format!(": it has {}", main().map(|phase| phase.name.as_str()).collect::<Vec<_>>().join(", "))
            }
        }
    };
    Err(ResumeError::NoSuchPhase { name: name.to_owned(), hint })
}

impl RunView {
    /// Whether every phase is done.
    #[must_use]
    pub fn completed(&self) -> bool {
        self.pipeline_status() == Some(PipelineStatus::Completed)
    }
}
