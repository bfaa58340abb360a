//! Steering of a run: reads its inbox, passes messages to activations, and records deliveries (docs/steering.md).

use std::collections::HashMap;
use std::fs;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::{CliqDir, FsError, IoContext, SteeringInbox, SteeringTail, append_steering, open_append};
use cliq_protocol::{PhaseName, RunId, SteeringMessage};
use cliq_workflow::PhaseId;
use tokio::time::Instant;

use super::Driver;
use crate::events::RunEvent;
use crate::steering::{Delivery, FileRead, ReadWatch, accepts_steering};

/// Polling interval of the inbox. Once an agent has started, changes are noticed without it.
const POLL: Duration = Duration::from_secs(1);

/// Activations that receive steering messages while they work.
#[derive(Debug)]
pub(super) struct Listeners {
    inbox: SteeringTail,
    /// Directory of the steering files.
    dir: Utf8PathBuf,
    by_phase: HashMap<PhaseId, Listener>,
    /// Watches steering files from the first message that is appended to one.
    reads: Option<ReadWatch>,
    /// Whether changes of the inbox are noticed without polling.
    is_watched: bool,
    /// Time of the next poll.
    next_poll: Instant,
    /// Last error of the inbox, which is reported once.
    problem: Option<String>,
}

/// An activation and its steering file.
#[derive(Debug)]
struct Listener {
    phase: PhaseName,
    activation: u32,
    is_gate: bool,
    file: Utf8PathBuf,
    /// Ids of the messages in the file, in its order.
    written: Vec<String>,
    /// Whether the agent works. Reads are recorded a little longer.
    is_working: bool,
}

impl Listeners {
    pub(super) fn new(dir: &CliqDir, run_id: &RunId) -> Self {
        Self {
            inbox: SteeringTail::new(&SteeringInbox::path_of(dir, run_id)),
            dir: dir.steering(run_id).join("live"),
            by_phase: HashMap::new(),
            reads: None,
            is_watched: false,
            next_poll: Instant::now() + POLL,
            problem: None,
        }
    }

    pub(super) fn inbox(&self) -> &Utf8Path {
        self.inbox.path()
    }

    /// Waits until agents have read their steering files.
    pub(super) async fn reads(&mut self) -> Vec<FileRead> {
        match &mut self.reads {
            Some(reads) => reads.next().await,
            None => std::future::pending().await,
        }
    }

    /// Creates an empty steering file. An agent that is asked again in the same activation gets another one.
    fn create_file(&self, phase: &PhaseName, activation: u32) -> Result<Utf8PathBuf, FsError> {
        fs::create_dir_all(&self.dir).at("create", &self.dir)?;
        let names = (1..).map(|attempt: u32| match attempt {
            1 => format!("{phase}.{activation}.jsonl"),
            _ => format!("{phase}.{activation}-{attempt}.jsonl"),
        });
        let mut paths = names.map(|name| self.dir.join(name));
        // Names never run out.
        let path = paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_default();
        open_append(&path)?;
        Ok(path)
    }
}

impl Driver {
    /// Creates the steering file of an activation that starts. Returns the messages so far, and the file for later ones.
    pub(super) fn start_listening(
        &mut self,
        id: PhaseId,
        activation: u32,
    ) -> Result<(Vec<SteeringMessage>, Utf8PathBuf), FsError> {
        // What arrived before belongs to the dispatch message.
        self.receive_steering();
        let spec = self.shared.plan.workflow.phase(id);
        let (phase, is_gate) = (self.shared.workflow().name_of(id), spec.kind.is_gate());
        let file = self.listeners.create_file(&phase, activation)?;
        if !self.listeners.is_watched
            && let Some(watch) = &self.watch
            && let Some(dir) = self.listeners.inbox().parent()
        {
            self.listeners.is_watched = watch.add(dir).is_ok();
            // What arrived since the last read is not noticed.
            self.receive_steering();
        }
        let messages = self.view.steering.for_activation(&phase, is_gate);
        let listener = Listener {
            phase,
            activation,
            is_gate,
            file: file.clone(),
            written: Vec::new(),
            is_working: true,
        };
        self.listeners.by_phase.insert(id, listener);
        Ok((messages, file))
    }

    /// Returns whether an event is to be recorded: not a delivery that was recorded before. Notes that the agent of a phase has ended.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn is_steering_of_now(&mut self, event: &RunEvent) -> bool {
        match event {
            RunEvent::SteeringDelivered { id, phase, activation } => {
                let activation = *activation;
                return self.view.steering.is_delivery(Delivery { id, phase, activation });
            }
            RunEvent::AgentCompleted { phase, .. } | RunEvent::WorkFailed { phase, .. } => {
                let reads = self.listeners.reads.as_mut().map(ReadWatch::take).unwrap_or_default();
                self.steering_read(&reads);
                let ended = self.shared.workflow().find(phase.as_str());
                if let Some(listener) = ended.and_then(|id| self.listeners.by_phase.get_mut(&id)) {
                    listener.is_working = false;
                }
            }
            RunEvent::RunStarted { .. }
            | RunEvent::RunInterrupted
            | RunEvent::RunResumed { .. }
            | RunEvent::PhaseStarted { .. }
            | RunEvent::AgentStarted { .. }
            | RunEvent::CommandStarted { .. }
            | RunEvent::CommandFinished { .. }
            | RunEvent::CommandsFinished { .. }
            | RunEvent::Progress { .. }
            | RunEvent::UsageReported { .. }
            | RunEvent::ReviewWaits { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::PhaseSandboxed { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunIdle { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::PhaseSkipped { .. }
            | RunEvent::ItemsStarted { .. }
            | RunEvent::ItemFailed { .. }
            | RunEvent::RetryScheduled { .. }
            | RunEvent::MergeConflict { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDelayed { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::Verdict { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::PhaseCompleted { .. }
            | RunEvent::PhaseEscalated { .. }
            | RunEvent::PhaseReset { .. }
            | RunEvent::PhaseStopped { .. }
            | RunEvent::Draining { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CompletionContradicted { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. }
            | RunEvent::RunFinished { .. } => {}
        }
        true
    }

    /// Reads the inbox if it has not been read for a second: no agent has started, or the system lost a notification.
    pub(super) fn poll_steering(&mut self) {
        let now = Instant::now();
        if now >= self.listeners.next_poll {
            self.listeners.next_poll = now + POLL;
            self.receive_steering();
        }
    }

    /// Records the messages that arrived in the inbox, and passes them to the activations that work.
    pub(super) fn receive_steering(&mut self) {
        let news = match self.listeners.inbox.read_new() {
            Ok(news) => news,
            Err(error) => {
                let problem = error.to_string();
                if self.listeners.problem.as_ref() != Some(&problem) {
                    self.listeners.problem = Some(problem.clone());
                    self.warn_of_steering(problem);
                }
                return;
            }
        };
        let (mut skipped, mut first) = (0, None);
        for line in news {
            let accepted = line.and_then(|message| self.acceptable(message));
            match accepted {
                Ok(Some(message)) => self.pass_on(&message),
                Ok(None) => {}
                Err(reason) => {
                    skipped += 1;
                    first.get_or_insert(reason);
                }
            }
        }
        if let Some(reason) = first {
            self.warn_of_steering(format!("{skipped} lines of the steering inbox are skipped: {reason}"));
        }
    }

    fn warn_of_steering(&mut self, message: String) {
        self.publish(RunEvent::Warning { phase: None, message });
    }

    /// Returns a message of the inbox if it is new and within the limits, or the reason why it is not accepted: agents can write to the
    /// inbox too.
    fn acceptable(&self, message: SteeringMessage) -> Result<Option<SteeringMessage>, String> {
        if self.view.steering.find(&message.id).is_some() {
            return Ok(None);
        }
        if self.view.steering.is_full() {
            return Err("the run takes no more messages".to_owned());
        }
        if let Some(phase) = &message.phase {
            accepts_steering(self.shared.workflow(), phase).map_err(|error| error.to_string())?;
        }
        let ts = message.ts.clone();
        Ok(Some(message.into_new().map_err(|error| error.to_string())?.received_at(ts)))
    }

    /// Records a message, and appends it to the steering files of the activations that work.
    fn pass_on(&mut self, message: &SteeringMessage) {
        let SteeringMessage { id, from, text, phase, .. } = message.clone();
        self.publish(RunEvent::SteeringReceived { id: id.clone(), from, text, phase });
        // With the time of the record.
        let Some(message) = self.view.steering.find(&id).map(|view| view.message.clone()) else { return };
        let receives = |listener: &&mut Listener| {
            listener.is_working && (listener.is_gate || message.is_for(&listener.phase))
        };
        let Listeners { by_phase, reads, dir, .. } = &mut self.listeners;
        let mut problems = Vec::new();
        for listener in by_phase.values_mut().filter(receives) {
            if reads.is_none() {
                // Without it, deliveries to agents that work are not recorded.
                *reads = ReadWatch::new(dir).ok();
            }
            match append_steering(&listener.file, &message) {
                Ok(()) => listener.written.push(id.clone()),
                // The next activation receives it.
                Err(error) => problems.push(error.to_string()),
            }
        }
        problems.into_iter().for_each(|problem| self.warn_of_steering(problem));
    }

    /// Records the deliveries of messages that agents have read.
    pub(super) fn steering_read(&mut self, reads: &[FileRead]) {
        let mut delivered = Vec::new();
        for listener in self.listeners.by_phase.values() {
            let name = listener.file.file_name();
            let Some(read) = reads.iter().find(|read| Some(read.name.as_str()) == name) else { continue };
            for id in listener.written.iter().take(read.lines) {
                let (phase, activation) = (listener.phase.clone(), listener.activation);
                delivered.push(RunEvent::SteeringDelivered { id: id.clone(), phase, activation });
            }
        }
        for event in delivered {
            if self.is_steering_of_now(&event) {
                self.publish(event);
            }
        }
    }
}
