//! Sending a steering message to a run, from any process.

use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use cliq_fs::{CliqDir, FsError, ProjectLock, SignalWatch, SteeringInbox};
use cliq_protocol::{MAX_STEERING_MESSAGES, NewSteering, PhaseKind, PhaseName, RunId, SteeringMessage};
use cliq_workflow::{ValidatedWorkflow, nearest};

use crate::events::{Record, RunEvent};
use crate::journal::{Journal, JournalError, JournalFollower, JournalUpdate, JournalWriter};

/// Time within which the orchestrator has to record a message.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval in which the journal is read if no change is noticed.
const POLL: Duration = Duration::from_millis(50);

/// A message that was accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SteeringReceipt {
    /// Message.
    pub message: SteeringMessage,
    /// Whether the journal contains it. `false` if the run has not started: its orchestrator records the message first.
    pub is_recorded: bool,
}

/// Reason why a message was not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SteerError {
    /// The run has ended.
    #[error("run {0} has ended and takes no more messages")]
    Ended(RunId),
    /// The team has no such phase.
    #[error("the team has no phase `{name}`{hint}")]
    NoSuchPhase {
        /// Requested name.
        name: PhaseName,
        /// Suggestion.
        hint: String,
    },
    /// The phase runs commands only.
    #[error("phase `{0}` runs commands and has no agent that could receive a message")]
    NoAgent(PhaseName),
    /// The run has 200 messages.
    #[error("the run has received {MAX_STEERING_MESSAGES} messages, which is the limit")]
    TooMany,
    /// Another message has the id.
    #[error("the run has another message with the id `{0}`: choose a new id")]
    Conflict(String),
    /// The orchestrator did not record the message in time.
    #[error(
        "the orchestrator has not recorded message `{0}` within 10 seconds; it keeps the message, and the same id may be sent again"
    )]
    NotRecorded(String),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FsError),
    /// The journal cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// Checks that a phase of a team can receive messages.
///
/// # Errors
/// Returns an error if the team has no such phase, or the phase has no agent.
pub fn accepts_steering(workflow: &ValidatedWorkflow, phase: &PhaseName) -> Result<(), SteerError> {
    match workflow.phases().find(|(_, known)| known.name == *phase) {
        Some((_, known)) if known.kind == PhaseKind::Exec => Err(SteerError::NoAgent(phase.clone())),
        Some(_) => Ok(()),
        None => {
            let names = || workflow.phases().map(|(_, phase)| phase.name.as_str());
            let hint = match nearest(phase.as_str(), names()) {
                Some(near) => format!(": did you mean `{near}`?"),
                None => format!(": it has {}", names().collect::<Vec<_>>().join(", ")),
            };
            Err(SteerError::NoSuchPhase { name: phase.clone(), hint })
        }
    }
}

/// Sends a message to a run that has not ended, and waits until the journal contains it. Blocks for up to 15 seconds.
///
/// An orchestrator that works records the message. If there is none, as for a parked run, this process does. A message with a known id
/// and the same text is accepted again without an effect.
///
/// ```no_run
/// use cliq_orchestrator::{CliqDir, steer};
/// use cliq_protocol::NewSteering;
///
/// let dir = CliqDir::open("/home/ada/shop".into())?;
/// let id = "0197e2c1-0000-7000-8000-000000000000".parse()?;
/// let message = NewSteering::new("m1", "ada", "Keep the old API.", None)?;
/// let receipt = steer(&dir, &id, message)?;
/// println!("recorded: {}", receipt.is_recorded);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns an error if the run has ended or takes no such message, or a file cannot be written.
pub fn steer(dir: &CliqDir, run_id: &RunId, new: NewSteering) -> Result<SteeringReceipt, SteerError> {
    let mut journal = RecordedMessages::new(dir, run_id);
    let id = new.id().to_owned();
    let mut inbox = SteeringInbox::open(dir, run_id)?;
    let stored = match inbox.messages().iter().find(|message| message.id == id) {
        Some(sent) if new.is_same_as(sent) => sent.clone(),
        Some(_) => return Err(SteerError::Conflict(id)),
        None => {
            if inbox.messages().len() >= MAX_STEERING_MESSAGES {
                return Err(SteerError::TooMany);
            }
            if !is_held(dir)? && State::of(dir, run_id)?.0 == State::Ended {
                return Err(SteerError::Ended(run_id.clone()));
            }
            let message = new.received_at(cliq_fs::now());
            inbox.append(message.clone())?;
            message
        }
    };
    drop(inbox);
    let last = Instant::now() + PATIENCE;
    loop {
        if let Some(message) = journal.find(&id)? {
            return Ok(SteeringReceipt { message, is_recorded: true });
        }
        if !is_held(dir)?
            && let Some(receipt) = record(dir, run_id, &stored)?
        {
            return Ok(receipt);
        }
        if Instant::now() > last {
            return Err(SteerError::NotRecorded(id));
        }
        journal.wait();
    }
}

/// Whether an orchestrator works in the project.
fn is_held(dir: &CliqDir) -> Result<bool, FsError> {
    Ok(ProjectLock::holder(dir)?.is_some())
}

/// State of a run without an orchestrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The journal belongs to another run, or there is none.
    NotStarted,
    /// The run is parked, or its orchestrator died.
    Unfinished,
    Ended,
}

impl State {
    fn of(dir: &CliqDir, run_id: &RunId) -> Result<(Self, Option<Journal>), JournalError> {
        let journal = Journal::read(&dir.journal())?.filter(|journal| journal.run_id() == Some(run_id));
        let Some(journal) = journal else { return Ok((Self::NotStarted, None)) };
        let state = if journal.has_ended() { Self::Ended } else { Self::Unfinished };
        Ok((state, Some(journal)))
    }
}

/// Records a message of the inbox in place of an orchestrator. Returns `None` if there is one.
///
/// An orchestrator takes the project's lock and then waits for senders before it reads the journal ([`SteeringInbox::wait_for_senders`]):
/// so it reads what is written here.
fn record(
    dir: &CliqDir,
    run_id: &RunId,
    stored: &SteeringMessage,
) -> Result<Option<SteeringReceipt>, SteerError> {
    let mut inbox = SteeringInbox::open(dir, run_id)?;
    if is_held(dir)? {
        return Ok(None);
    }
    let (state, journal) = State::of(dir, run_id)?;
    let journal = match (state, journal) {
        (State::NotStarted, _) | (_, None) => {
            return Ok(Some(SteeringReceipt { message: stored.clone(), is_recorded: false }));
        }
        (_, Some(journal)) if received(&journal.records).any(|known| known.id == stored.id) => {
            let known = received(&journal.records).find(|known| known.id == stored.id);
            return Ok(known.map(|message| SteeringReceipt { message, is_recorded: true }));
        }
        (State::Ended, _) => {
            // The run ended between the check and now.
            inbox.remove(&stored.id)?;
            return Err(SteerError::Ended(run_id.clone()));
        }
        (State::Unfinished, Some(journal)) => journal,
    };
    let mut writer = JournalWriter::reopen(&dir.journal(), &journal)?;
    // Only the own message: others are recorded by their senders, or checked by the next orchestrator, since agents can write to the inbox.
    let SteeringMessage { id, from, text, phase, .. } = stored.clone();
    let record =
        Record { ts: cliq_fs::now().into(), event: RunEvent::SteeringReceived { id, from, text, phase } };
    writer.append(&record)?;
    writer.sync()?;
    let message = SteeringMessage { ts: record.ts, ..stored.clone() };
    Ok(Some(SteeringReceipt { message, is_recorded: true }))
}

fn received(records: &[Record]) -> impl Iterator<Item = SteeringMessage> + '_ {
    records.iter().filter_map(Record::steering)
}

/// Messages that the journal of a run contains, as it grows.
struct RecordedMessages {
    follower: JournalFollower,
    run_id: RunId,
    is_same_run: bool,
    found: Vec<SteeringMessage>,
    changes: mpsc::Receiver<()>,
    /// Absent if the system has no more watches.
    _watch: Option<SignalWatch>,
}

impl RecordedMessages {
    fn new(dir: &CliqDir, run_id: &RunId) -> Self {
        let (sender, changes) = mpsc::channel();
        let watch = SignalWatch::new(dir.root(), move |_| {
            let _ = sender.send(());
        })
        .ok();
        let follower = JournalFollower::new(&dir.journal());
        Self {
            follower,
            run_id: run_id.clone(),
            is_same_run: false,
            found: Vec::new(),
            changes,
            _watch: watch,
        }
    }

    fn find(&mut self, id: &str) -> Result<Option<SteeringMessage>, JournalError> {
        let records = match self.follower.read()? {
            JournalUpdate::None => Vec::new(),
            JournalUpdate::More(records) => records,
            JournalUpdate::Afresh(records) => {
                self.is_same_run = false;
                self.found.clear();
                records
            }
        };
        for record in &records {
            if let RunEvent::RunStarted { run_id, .. } = &record.event {
                self.is_same_run = *run_id == self.run_id;
            }
            self.found.extend(record.steering().filter(|_| self.is_same_run));
        }
        Ok(self.found.iter().find(|message| message.id == id).cloned())
    }

    /// Waits for a change of the project's files, for 50 ms at most.
    fn wait(&self) {
        match self.changes.recv_timeout(POLL) {
            Ok(()) => while self.changes.try_recv().is_ok() {},
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(POLL),
        }
    }
}
