//! Steering of a run (docs/steering.md): stored with the request until the run has started, then passed to its orchestrator.

use cliq_fs::{CliqDir, FsError, SteeringInbox};
use cliq_model::{Change, NewRunEvent, Run, RunOrigin, RunState, ServerEvent, StoreError};
use cliq_orchestrator::internals::accepts_steering;
use cliq_orchestrator::{
    JournalFollower, JournalUpdate, Record, RunView, SteerError, ValidatedWorkflow, steer,
};
use cliq_project::internals::task_event;
use cliq_project::{Host, Project};
use cliq_protocol::{MAX_STEERING_MESSAGES, NewSteering, RunId, SteeringMessage};

use crate::Supervisor;
use crate::change::event;
use crate::journal::{is_of, status_document, stored, stored_with_details};
use crate::workspace_io::WorkspaceIoError;

/// Reason why a steering message was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SteeringRefusal {
    /// No run has this id.
    #[error("there is no such run")]
    NoRun,
    /// The run or its project refuses the message.
    #[error(transparent)]
    Refused(#[from] SteerError),
    /// The workspace of the run cannot be opened.
    #[error("the workspace of the run is gone")]
    NoWorkspace,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files of the run's project cannot be used now.
    #[error("cannot send the message: {0}")]
    Files(#[from] WorkspaceIoError),
}

/// Outcome of an attempt to store a message with the request of a run.
enum Attempt {
    Stored(SteeringMessage),
    /// The run has started, or another writer changed it.
    Again,
}

impl Supervisor {
    /// Sends a steering message to a run that has not ended. The run's journal, or the store if the run has not started, contains the
    /// message when this returns.
    ///
    /// # Errors
    /// Returns an error if there is no such run, it has ended or takes no such message, or the store fails.
    pub async fn steer(&self, id: &RunId, new: NewSteering) -> Result<SteeringMessage, SteeringRefusal> {
        let shared = self.shared();
        loop {
            let run = shared.store.run(id).await?.ok_or(SteeringRefusal::NoRun)?;
            if run.life.state.is_final() {
                return Err(SteerError::Ended(id.clone()).into());
            }
            if !run.life.began {
                match self.store_with_request(run, new.clone()).await? {
                    Attempt::Stored(message) => return Ok(message),
                    Attempt::Again => continue,
                }
            }
            let host = shared.options.host.clone();
            let (run_id, sent) = (id.clone(), new.clone());
            let workspace = run.workspace.clone();
            let receipt = shared.io.run(&workspace, move || send(&host, &run, &run_id, sent)).await;
            let receipt = receipt??;
            self.import_of_parked(id).await?;
            return Ok(receipt);
        }
    }

    async fn store_with_request(&self, run: Run, new: NewSteering) -> Result<Attempt, SteeringRefusal> {
        let shared = self.shared();
        let known = &run.request.steering;
        match known.iter().find(|message| message.id == new.id()) {
            Some(sent) if new.is_same_as(sent) => return Ok(Attempt::Stored(sent.clone())),
            Some(_) => return Err(SteerError::Conflict(new.id().to_owned()).into()),
            None if known.len() >= MAX_STEERING_MESSAGES => return Err(SteerError::TooMany.into()),
            None => {}
        }
        if let Some(phase) = new.phase().cloned() {
            let (host, of) = (shared.options.host.clone(), run.clone());
            let workflow = shared.io.run(&run.workspace, move || workflow_of(&host, &of)).await?;
            // A team that cannot be read fails when the run starts.
            if let Some(workflow) = workflow {
                accepts_steering(&workflow, &phase)?;
            }
        }
        let message = new.received_at(cliq_fs::now());
        let mut change = Change::of(run);
        change.run.request.steering.push(message.clone());
        let stored = ServerEvent::SteeringStored { id: message.id.clone(), from: message.from.clone() };
        change.push(event(&stored));
        let Some(run) = shared.commit(&change).await? else { return Ok(Attempt::Again) };
        // Its follower may be starting it.
        shared.has_changed(&run);
        Ok(Attempt::Stored(message))
    }

    /// Stores the journal's new events of a parked run. Other runs have a follower that does so, or get one.
    async fn import_of_parked(&self, id: &RunId) -> Result<(), SteeringRefusal> {
        let shared = self.shared();
        loop {
            let Some(run) = shared.store.run(id).await?.filter(|run| run.life.state == RunState::Waiting)
            else {
                return Ok(());
            };
            let (host, workspace) = (shared.options.host.clone(), run.workspace.clone());
            let change = shared.io.run(&workspace, move || with_new_events(&host, run)).await?;
            match change {
                Some(change) if shared.commit(&change).await?.is_none() => {}
                _ => return Ok(()),
            }
        }
    }
}

fn send(
    host: &Host,
    run: &Run,
    run_id: &RunId,
    new: NewSteering,
) -> Result<SteeringMessage, SteeringRefusal> {
    let dir = CliqDir::open(&run.workspace).map_err(|_| SteeringRefusal::NoWorkspace)?;
    if let Some(phase) = new.phase()
        && let Ok(workflow) = Project::of(dir.clone(), host.clone()).workflow()
    {
        accepts_steering(&workflow, phase)?;
    }
    Ok(steer(&dir, run_id, new)?.message)
}

/// Returns the team of a run that has not started.
fn workflow_of(host: &Host, run: &Run) -> Option<ValidatedWorkflow> {
    match &run.request.spec.team {
        Some(name) => host.find_team(name).ok()?.folder.check().workflow,
        None => Project::open(&run.workspace, host.clone()).ok()?.workflow().ok(),
    }
}

/// Returns a change that stores the records of a run's journal which are not stored.
fn with_new_events(host: &Host, run: Run) -> Option<Change> {
    let journal = run.workspace.join(CliqDir::NAME).join(CliqDir::JOURNAL);
    let Ok(JournalUpdate::Afresh(records)) = JournalFollower::new(&journal).read() else { return None };
    if !is_of(&records, &run) {
        return None;
    }
    let (mut view, mut change) = (RunView::empty(), Change::of(run));
    for (line, record) in (1..).zip(&records) {
        view.apply(record);
        if line > change.run.journal_lines {
            change.run.journal_lines = line;
            let event = event_of(&change.run, record, &view);
            change.push(event);
        }
    }
    change.run.view = status_document(host, &change.run, &view);
    Some(change)
}

fn event_of(run: &Run, record: &Record, view: &RunView) -> NewRunEvent {
    if run.origin != RunOrigin::Delegated {
        return stored(record);
    }
    stored_with_details(record, &task_event(record, view))
}

/// Passes the messages that were stored with a request to the run's inbox, which its orchestrator reads. Messages that were passed before
/// have no effect. Waits up to 5 seconds for other senders.
///
/// # Errors
/// Returns an error if the inbox cannot be written.
pub(crate) fn pass_on(run: &Run) -> Result<(), FsError> {
    let mut inbox = SteeringInbox::open(&CliqDir::open(&run.workspace)?, &run.id)?;
    for message in &run.request.steering {
        if !inbox.messages().iter().any(|known| known.id == message.id) {
            inbox.append(message.clone())?;
        }
    }
    Ok(())
}
