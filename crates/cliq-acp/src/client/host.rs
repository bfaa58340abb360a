//! Interface between a client and the program that embeds it.

use tokio::sync::mpsc::UnboundedSender;

use super::anomaly::Anomaly;
use super::ask::{AskId, PermissionDecision, PermissionRequest, QuestionDecision, QuestionRequest};
use super::machine::{Event, SteerId, SteerOutcome};
use super::update::{Origin, Update};

/// Direction of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the agent.
    FromAgent,
    /// To the agent.
    ToAgent,
}

/// Receiver of what happens in a conversation.
///
/// No method waits: the conversation stands still until it returns. Decisions that take time are made elsewhere, and sent by the reply
/// object from any thread.
pub trait Host {
    /// Receives an update. Only updates of the origin [`Origin::Turn`] are new output.
    fn update(&mut self, origin: Origin, update: &Update);

    /// Receives a request for permission. A reply that is dropped answers with [`PermissionDecision::Cancel`].
    fn permission(&mut self, request: &PermissionRequest, reply: PermissionReply);

    /// Receives a question. A reply that is dropped declines it. Called only if the session request has `answers_questions`.
    fn question(&mut self, request: &QuestionRequest, reply: QuestionReply) {
        let _ = (request, reply);
    }

    /// Learns that a permission or question needs no answer any more. A reply has no effect from now on.
    fn withdrawn(&mut self, id: AskId) {
        let _ = id;
    }

    /// Learns the fate of a steering message.
    fn steered(&mut self, id: SteerId, outcome: &SteerOutcome) {
        let _ = (id, outcome);
    }

    /// Learns of behaviour that the protocol does not allow and that was tolerated. At most [`MAX_REPORTS`] times per process;
    /// [`Anomaly::LeftProcesses`] is not counted.
    fn anomaly(&mut self, anomaly: &Anomaly) {
        let _ = anomaly;
    }

    /// Receives each line as it was written, for records and transcripts. It may contain secrets.
    fn line(&mut self, direction: Direction, line: &[u8]) {
        let _ = (direction, line);
    }
}

/// Maximum number of anomalies reported to a host, per process.
pub const MAX_REPORTS: usize = 200;

/// Reply to a request for permission. Can be sent from any thread.
#[derive(Debug)]
pub struct PermissionReply {
    id: AskId,
    sender: Option<UnboundedSender<Event>>,
}

impl PermissionReply {
    pub(super) fn new(id: AskId, sender: UnboundedSender<Event>) -> Self {
        Self { id, sender: Some(sender) }
    }

    /// Sends the decision.
    pub fn send(mut self, decision: PermissionDecision) {
        self.deliver(decision);
    }

    fn deliver(&mut self, decision: PermissionDecision) {
        if let Some(sender) = self.sender.take() {
            // The conversation may be over.
            let _ = sender.send(Event::PermissionDecided(self.id, decision));
        }
    }
}

impl Drop for PermissionReply {
    fn drop(&mut self) {
        self.deliver(PermissionDecision::Cancel);
    }
}

/// Reply to a question. Can be sent from any thread.
#[derive(Debug)]
pub struct QuestionReply {
    id: AskId,
    sender: Option<UnboundedSender<Event>>,
}

impl QuestionReply {
    pub(super) fn new(id: AskId, sender: UnboundedSender<Event>) -> Self {
        Self { id, sender: Some(sender) }
    }

    /// Sends the answer.
    pub fn send(mut self, decision: QuestionDecision) {
        self.deliver(decision);
    }

    fn deliver(&mut self, decision: QuestionDecision) {
        if let Some(sender) = self.sender.take() {
            // The conversation may be over.
            let _ = sender.send(Event::QuestionAnswered(self.id, decision));
        }
    }
}

impl Drop for QuestionReply {
    fn drop(&mut self) {
        self.deliver(QuestionDecision::Decline);
    }
}

/// Handle that cancels and steers a conversation from any thread.
#[derive(Debug, Clone)]
pub struct Control {
    sender: UnboundedSender<Event>,
    steers: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Control {
    pub(super) fn new(sender: UnboundedSender<Event>) -> Self {
        Self { sender, steers: std::sync::Arc::default() }
    }

    pub(super) fn sender(&self) -> &UnboundedSender<Event> {
        &self.sender
    }

    /// Cancels the start or the turn that runs. Between turns the next turn is cancelled.
    pub fn cancel(&self) {
        let _ = self.sender.send(Event::Cancel);
    }

    /// Sends a message into the running turn. [`Host::steered`] gets its fate.
    pub fn steer(&self, text: impl Into<String>) -> SteerId {
        let id = SteerId(self.steers.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let _ = self.sender.send(Event::Steer { id, text: text.into() });
        id
    }
}
