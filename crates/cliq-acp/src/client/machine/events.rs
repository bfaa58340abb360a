//! Inputs and outputs of the machine.

use agent_client_protocol_schema::v1::ContentBlock;

use super::super::anomaly::Anomaly;
use super::super::ask::{AskId, PermissionDecision, PermissionRequest, QuestionDecision, QuestionRequest};
use super::super::outcome::{AgentExit, Failure};
use super::super::update::{Origin, Update};
use super::TurnReport;
use crate::rpc::{Incoming, Message};

/// Number of a steering message, chosen by the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SteerId(pub u64);

/// Fate of a steering message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SteerOutcome {
    /// The model reads it in the running turn.
    Injected,
    /// No turn was running. The message was not used.
    NoTurn,
    /// The agent does not offer steering. The message was not used.
    NotSupported,
    /// The agent refused the message.
    Refused(String),
    /// The turn ended before the agent answered. Whether the message was used is not known.
    Unanswered,
}

/// Deadline that the machine asks for. The driver knows the durations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// Answer to a call of the start.
    Start,
    /// End of the replay after a conversation was continued: restarted by each update.
    Replay,
    /// Silence in a turn: restarted by each message, stopped while a permission or question is open.
    Silence,
    /// Answer to the prompt after a request to cancel.
    Cancel,
    /// Usage that follows the answer to the prompt.
    Usage,
}

/// End of the connection to an agent.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEnd {
    /// The process ended.
    Exited {
        /// End of the process.
        exit: AgentExit,
        /// End of its error output, without secrets.
        errors: String,
    },
    /// The process closed its output and continued.
    OutputClosed,
    /// The process closed its input and continued.
    InputClosed,
    /// The process does not read its input.
    InputStuck {
        /// Bytes that wait.
        bytes: usize,
    },
}

/// Input of the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The process runs.
    Start,
    /// The agent wrote a line.
    Line(Incoming),
    /// The caller sends a prompt.
    Prompt(Vec<ContentBlock>),
    /// The caller sends a message into the running turn.
    Steer {
        /// Number of the message.
        id: SteerId,
        /// Text.
        text: String,
    },
    /// The caller cancels the turn, or the start.
    Cancel,
    /// A permission was decided.
    PermissionDecided(AskId, PermissionDecision),
    /// A question was answered.
    QuestionAnswered(AskId, QuestionDecision),
    /// A deadline passed.
    Timer(Timer),
    /// The connection ended.
    Ended(AgentEnd),
}

/// Output of the machine, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Writes a message to the agent.
    Send(Message),
    /// Sets a deadline. An earlier one of this kind is replaced.
    Arm(Timer),
    /// Removes a deadline.
    Disarm(Timer),
    /// The session is ready for prompts.
    Started,
    /// The start failed.
    StartFailed(Failure),
    /// The agent reported something.
    Update(Origin, Box<Update>),
    /// The agent asks for permission.
    AskPermission(PermissionRequest),
    /// The agent asks a question.
    AskQuestion(QuestionRequest),
    /// A permission or question needs no answer any more.
    Withdraw(AskId),
    /// Fate of a steering message.
    Steered(SteerId, SteerOutcome),
    /// A turn ended.
    TurnEnded(Box<TurnReport>),
    /// A prompt was not sent.
    PromptRefused(Failure),
    /// The agent did something that was tolerated.
    Report(Anomaly),
    /// The process is to be ended.
    End,
}
