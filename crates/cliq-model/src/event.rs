//! Events that the server itself records in the log of a run.
//!
//! A log has the lines of the run's journal and, between them, the events of the server. [`ServerEvent`] is their one definition:
//! the writer encodes it, and each page and protocol that shows events decodes it and matches every variant.

#![deny(clippy::wildcard_enum_match_arm)]

use camino::Utf8PathBuf;
use cliq_protocol::{PhaseName, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::lifecycle::RunState;
use crate::parking::Cause;

/// Event of the server in the log of a run. On the wire an object whose `event` names it (docs/server.md).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum ServerEvent {
    /// The run was requested, or requested again.
    RunQueued {
        /// Id of the run.
        run_id: RunId,
        /// Label of the caller.
        caller: String,
        /// Request that queued it.
        #[serde(flatten)]
        request: QueueRequest,
    },
    /// The run got a slot.
    RunDispatched {
        /// Directory of the run.
        workspace: Utf8PathBuf,
    },
    /// Another replica follows the run from now on.
    RunTakenOver {
        /// Replica that had the run.
        from: Option<String>,
        /// Replica that has it.
        to: String,
    },
    /// The run is parked.
    RunWaiting {
        /// Ids of the reviews that it waits for.
        on: Vec<String>,
        /// Time at which it continues without an answer, UTC.
        until: Timestamp,
    },
    /// The parked run continues.
    RunWoken {
        /// Cause.
        #[serde(flatten)]
        cause: Cause,
    },
    /// The run is queued again: its project was busy.
    RunRequeued(Setback),
    /// A caller asked to cancel the run.
    CancelRequestedByCaller {
        /// Label of the caller.
        caller: String,
        /// Reason, if the caller gave one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The orchestrator ended without recording an end.
    OrchestratorDied(Setback),
    /// The orchestrator could not start the run.
    RunNotStarted(Setback),
    /// The attempt to resume a finished run ended before it began. The run keeps its outcome.
    RunNotResumed(Setback),
    /// A steering message was stored with a run that has not started.
    SteeringStored {
        /// Id of the message.
        id: String,
        /// Author of the message.
        from: String,
    },
    /// The workspace of a task is ready.
    WorkspacePrepared(WorkspaceCheck),
    /// New output of an agent of a task.
    PhaseOutput(PhaseOutput),
    /// The task is over.
    TaskFinished {
        /// Outcome for the caller.
        status: TaskOutcome,
        /// Reason of a failure or cancellation.
        #[serde(default)]
        reason: Option<String>,
        /// Phase that the reason is about.
        #[serde(default)]
        phase: Option<String>,
        /// Artifacts as JSON in the format of A2A 1.0.
        #[serde(default)]
        artifacts: Vec<Value>,
    },
}

/// Request by which a run is queued.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "QueueFields", into = "QueueFields")]
pub enum QueueRequest {
    /// New run of a caller.
    New,
    /// New run of a trigger.
    Trigger {
        /// Name of the trigger.
        trigger: String,
        /// Number of the firing.
        firing: i64,
    },
    /// Resumption of a finished run.
    Resume {
        /// Phase that runs again, or `None` to continue where the run stopped.
        from: Option<String>,
    },
}

/// [`QueueRequest`] on the wire.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct QueueFields {
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    firing: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    resume: bool,
    /// `null` for a resumption without a phase, absent for other requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Option<String>>,
}

impl From<QueueFields> for QueueRequest {
    fn from(fields: QueueFields) -> Self {
        match (fields.resume, fields.trigger.zip(fields.firing)) {
            (true, _) => Self::Resume { from: fields.from.flatten() },
            (false, Some((trigger, firing))) => Self::Trigger { trigger, firing },
            (false, None) => Self::New,
        }
    }
}

impl From<QueueRequest> for QueueFields {
    fn from(request: QueueRequest) -> Self {
        match request {
            QueueRequest::New => Self::default(),
            QueueRequest::Trigger { trigger, firing } => {
                Self { trigger: Some(trigger), firing: Some(firing), ..Self::default() }
            }
            QueueRequest::Resume { from } => Self { resume: true, from: Some(from), ..Self::default() },
        }
    }
}

/// Failed attempt to start, follow or resume a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setback {
    /// Reason.
    pub reason: String,
    /// State of the run after it.
    pub state: RunState,
}

/// Result of the check of the programs that a team needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceCheck {
    /// Key of the requirement: the first digits of its hash.
    pub req_key: String,
    /// Programs of the team.
    pub tools: Vec<ToolCheck>,
}

/// Result of the check of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCheck {
    /// Name of the program.
    pub tool: String,
    /// Whether the program is on the PATH.
    pub available: bool,
}

/// Part of the output of one activation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseOutput {
    /// Phase.
    pub phase: PhaseName,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// File that the output was read from. `None` in events of versions that read logs only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<OutputSource>,
    /// Offset of the part in its file, in bytes.
    pub offset: u64,
    /// Length of the part in its file, in bytes.
    pub bytes: u64,
    /// Lines to show.
    pub lines: Vec<String>,
    /// Entries of a transcript.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<Value>,
    /// Whether the task waits for its caller.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub input_required: bool,
}

/// File that the output of an activation is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputSource {
    /// Standard output of the agent.
    #[default]
    Log,
    /// Transcript of a model.
    Transcript,
}

/// Outcome of a task for its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskOutcome {
    /// The team completed.
    Completed,
    /// The task was cancelled.
    Cancelled,
    /// The run failed or escalated.
    Failed,
}

/// Stored event after decoding.
#[derive(Debug, Clone, PartialEq)]
pub enum LogEvent {
    /// Event of the server.
    Server(Box<ServerEvent>),
    /// Line of the run's journal, or an event that this version does not know. Its text is kept and passed on as it is.
    Other,
}

impl LogEvent {
    /// Decodes an event. Everything that is no event of the server of this version is [`LogEvent::Other`].
    #[must_use]
    pub fn of(event: &Value) -> Self {
        match ServerEvent::deserialize(event) {
            Ok(event) => Self::Server(Box::new(event)),
            Err(_) => Self::Other,
        }
    }

    /// Decodes the text of a stored event.
    #[must_use]
    pub fn parse(data: &str) -> Self {
        Self::of(&serde_json::from_str(data).unwrap_or_default())
    }
}

impl ServerEvent {
    /// Name of the event on the wire.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::RunQueued { .. } => "run_queued",
            Self::RunDispatched { .. } => "run_dispatched",
            Self::RunTakenOver { .. } => "run_taken_over",
            Self::RunWaiting { .. } => "run_waiting",
            Self::RunWoken { .. } => "run_woken",
            Self::RunRequeued(_) => "run_requeued",
            Self::CancelRequestedByCaller { .. } => "cancel_requested_by_caller",
            Self::OrchestratorDied(_) => "orchestrator_died",
            Self::RunNotStarted(_) => "run_not_started",
            Self::RunNotResumed(_) => "run_not_resumed",
            Self::SteeringStored { .. } => "steering_stored",
            Self::WorkspacePrepared(_) => "workspace_prepared",
            Self::PhaseOutput(_) => "phase_output",
            Self::TaskFinished { .. } => "task_finished",
        }
    }

    /// Returns the event as a JSON object with its timestamp.
    #[must_use]
    pub fn to_value(&self, ts: Timestamp) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("ts".to_owned(), ts.to_string().into());
        }
        value
    }
}
