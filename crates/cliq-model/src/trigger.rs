//! Triggers and their firings as they are stored (docs/triggers.md).
//!
//! A firing is stored together with what makes its cause unique: the mark of its trigger, its keys, or the end of a run. The run of a
//! firing is stored in the transaction that decides it. So each cause fires once, with any number of servers.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::lifecycle::RunState;
use cliq_protocol::{RunId, Timestamp};

/// Kind of a trigger's source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// Times of a schedule.
    Schedule,
    /// Requests to `/hooks/NAME`.
    Webhook,
    /// Ends of runs.
    After,
    /// Changed files of a project.
    Files,
}

impl SourceKind {
    /// Name in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schedule => "schedule",
            Self::Webhook => "webhook",
            Self::After => "after",
            Self::Files => "files",
        }
    }

    /// Returns the kind with a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Schedule, Self::Webhook, Self::After, Self::Files]
            .into_iter()
            .find(|kind| kind.as_str() == text)
    }
}

/// Trigger that a server has read from its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTrigger {
    /// Name.
    pub name: String,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Initial mark: the present time of a schedule, empty for other sources.
    pub mark: String,
}

/// State of a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggerRow {
    /// Name.
    pub name: String,
    /// Kind of the source.
    pub kind: SourceKind,
    /// Whether its causes start nothing.
    pub is_paused: bool,
    /// Position of the source: the last tick that was handled, or the state of files.
    pub mark: String,
    /// Number of changes, for optimistic locking.
    pub version: i64,
}

/// Move of a trigger's mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkStep {
    /// Trigger.
    pub trigger: String,
    /// Version of the row that was read.
    pub version: i64,
    /// New mark.
    pub mark: String,
}

/// State of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FiringState {
    /// Undecided, or waiting for its concurrency group.
    Pending,
    /// A run was stored.
    Started,
    /// No run: a condition or a policy excluded it.
    Skipped,
    /// No run: the request for it was refused.
    Failed,
}

impl FiringState {
    /// Name in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Started => "started",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
        }
    }

    /// Returns the state with a name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Started, Self::Skipped, Self::Failed]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// Firing that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFiring {
    /// Trigger.
    pub trigger: String,
    /// Time of the cause, UTC: the tick, the receipt, the end of the run.
    pub at: Timestamp,
    /// Description of the cause, such as `tick 2026-01-31T06:00:00Z` or `delivery 72d3162e`.
    pub cause: String,
    /// Key of the cause. A trigger has one firing per key.
    pub key: String,
    /// Second key: a digest of content whose sender signed no other id.
    pub content_key: Option<String>,
    /// SHA-256 of the payload, in hexadecimal.
    pub digest: String,
    /// Variables of the trigger's expressions, as the text of a JSON object. Removed after the decision.
    pub payload: String,
    /// Number of triggers in a row that lead to this firing.
    pub depth: u32,
    /// Reason for which it starts nothing, if that is known already.
    pub skipped: Option<String>,
}

/// Result of adding a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// Stored with this number.
    New(i64),
    /// The key is known.
    Known(i64),
    /// The key is new, and the content came before under another one.
    Replayed,
}

/// A stored firing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// Number, in the order of arrival.
    pub id: i64,
    /// Trigger.
    pub trigger: String,
    /// Time of the cause, UTC.
    pub at: Timestamp,
    /// Description of the cause.
    pub cause: String,
    /// SHA-256 of the payload, in hexadecimal.
    pub digest: String,
    /// Variables of the trigger's expressions. Empty after the decision.
    pub payload: String,
    /// Number of triggers in a row that lead to this firing.
    pub depth: u32,
    /// State.
    pub state: FiringState,
    /// Concurrency group, once it is known.
    pub group: Option<String>,
    /// Run that was started.
    pub run: Option<RunId>,
    /// Reason why there is no run, or why it waits.
    pub reason: Option<String>,
    /// Time of the decision, UTC.
    pub decided_at: Option<Timestamp>,
}

/// Decision by which a firing starts its run. Stored with the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FiringStart {
    /// Number of the firing.
    pub firing: i64,
    /// Concurrency group with the version that was read.
    pub group: Option<(String, i64)>,
}

/// Decision by which a firing starts nothing, now or ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FiringDecision {
    /// Record the group that it waits for.
    Wait {
        /// Concurrency group.
        group: String,
        /// Reason.
        reason: String,
    },
    /// Start nothing.
    Skip(String),
    /// Start nothing: the request was refused.
    Fail(String),
}

/// State of a concurrency group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupState {
    /// Number of changes, for optimistic locking.
    pub version: i64,
    /// Runs of the group that have not ended.
    pub running: Vec<RunId>,
    /// Firings that wait for the group, in the order of arrival.
    pub waiting: Vec<i64>,
}

/// End of a run that no trigger has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndedRun {
    /// Run.
    pub run: RunId,
    /// Number of its last event: a run that is resumed ends again.
    pub event: i64,
    /// State of the end.
    pub state: RunState,
    /// Time, UTC.
    pub at: Timestamp,
}

/// Filter for firings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FiringFilter {
    /// Of this trigger.
    pub trigger: Option<String>,
    /// In this state.
    pub state: Option<FiringState>,
    /// With a smaller number.
    pub before: Option<i64>,
    /// At most so many.
    pub limit: u32,
}
