//! A run as a row of the store, and what a caller asks for.

use camino::Utf8PathBuf;
use cliq_protocol::{ChangedLines, RunId, SteeringMessage, TeamName, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::caveat::Caveat;
use crate::lifecycle::Lifecycle;
use crate::spec::RunSpec;

/// A registered project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Instance {
    /// Id: `cliq-` and six characters, as in `.cliq/cliq.id`, or another one if two projects have the same.
    pub id: String,
    /// Directory of the project.
    #[schema(value_type = String)]
    pub path: Utf8PathBuf,
    /// When it was registered, UTC.
    #[schema(value_type = String)]
    pub registered_at: Timestamp,
}

/// Origin of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunOrigin {
    /// A caller of the server started it.
    Server,
    /// A person started it in a registered project by `cliq run`. The server follows it.
    Project,
    /// Another agent delegated it, as a task of A2A.
    #[serde(rename = "a2a")]
    Delegated,
    /// A trial of an evaluation, started by `cliq eval`.
    Evaluation,
    /// A trigger fired (docs/triggers.md).
    Trigger,
}

impl RunOrigin {
    /// The word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Project => "project",
            Self::Delegated => "a2a",
            Self::Evaluation => "evaluation",
            Self::Trigger => "trigger",
        }
    }

    /// The origin that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Server, Self::Project, Self::Delegated, Self::Evaluation, Self::Trigger]
            .into_iter()
            .find(|origin| origin.as_str() == text)
    }

    /// Whether a server starts the orchestrator of runs with this origin.
    #[must_use]
    pub fn is_started_by_server(self) -> bool {
        !matches!(self, Self::Project | Self::Evaluation)
    }
}

/// Request of a caller, as it is stored with its run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RunRequest {
    /// Description of the run.
    #[serde(flatten)]
    pub spec: RunSpec,
    /// The phase that the run goes on from. Only where it is resumed.
    pub from: Option<String>,
    /// Whether the workspace of a task stays after the end, until the retention removes it.
    pub keep_workspace: bool,
    /// Steering messages that arrived before the run started, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steering: Vec<SteeringMessage>,
    /// Trigger that started the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<RunTrigger>,
}

/// Trigger that started a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunTrigger {
    /// Name of the trigger.
    pub name: String,
    /// Number of the firing.
    pub firing: i64,
    /// Number of triggers in a row, 1-based: a run that starts after the run of a trigger has one more.
    pub depth: u32,
    /// Sandbox around the run, if the trigger names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}

/// Usage of a run, summed over its phases.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunTotals {
    /// Tokens of prompts.
    pub tokens_in: u64,
    /// Tokens of replies.
    pub tokens_out: u64,
    /// US dollars; `null` where no cost is known.
    pub cost_usd: Option<f64>,
}

/// Changes of a run to its workspace, between its first and its last checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct RunChanges {
    /// Number of files.
    pub files: u64,
    /// Number of lines that were added.
    pub lines_added: u64,
    /// Number of lines that were removed.
    pub lines_removed: u64,
}

impl From<ChangedLines> for RunChanges {
    fn from(changed: ChangedLines) -> Self {
        let ChangedLines { files, lines_added, lines_removed } = changed;
        Self { files, lines_added, lines_removed }
    }
}

/// A run as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Id of the run.
    pub id: RunId,
    /// The registered project that it works in; `None` if its workspace was made for it.
    pub instance: Option<String>,
    /// The name of its team.
    pub team: TeamName,
    /// Title of the run: as the caller says, or the first line of the requirement, or the name of the team.
    pub title: String,
    /// Origin of the run.
    pub origin: RunOrigin,
    /// Label of the caller's token.
    pub caller: String,
    /// Request of the caller.
    pub request: RunRequest,
    /// The directory that it works in.
    pub workspace: Utf8PathBuf,
    /// Life cycle of the run.
    pub life: Lifecycle,
    /// Reason why it did not complete.
    pub reason: Option<String>,
    /// The phase that the reason is about.
    pub phase: Option<String>,
    /// Time of the request, UTC.
    pub queued_at: Timestamp,
    /// Time at which its orchestrator began it, UTC.
    pub started_at: Option<Timestamp>,
    /// Time of the end, UTC.
    pub ended_at: Option<Timestamp>,
    /// Usage of language models.
    pub totals: RunTotals,
    /// Changes to its workspace; `None` if they are not known.
    pub changed: Option<RunChanges>,
    /// The phases as of the last event: the document of `cliq status --json`. Kept when its workspace is gone.
    pub view: serde_json::Value,
    /// Number of journal records in the event log.
    pub journal_lines: u64,
    /// The number of its last event.
    pub last_event: i64,
    /// Number of changes, for optimistic locking. 0 for a run that is not stored yet.
    pub version: i64,
    /// The server that has it, where several share a database.
    pub replica: Option<String>,
    /// Time at which a run that waits is woken by the supervisor, UTC. `None` if a person resumes it.
    pub wake_at: Option<Timestamp>,
    /// Main phases that are done as of the last event that was stored.
    pub phases_done: u64,
    /// Main phases, once its team is known.
    pub phases_all: u64,
    /// Time at which a run was woken, UTC, until its orchestrator continues it: its position in the queue.
    pub woken_at: Option<Timestamp>,
    /// Caveats of its phases when it ended.
    pub caveats: Vec<Caveat>,
}

impl Run {
    /// A run that is asked for and not stored yet, in a workspace of its own.
    #[must_use]
    pub fn new(
        id: RunId,
        team: TeamName,
        origin: RunOrigin,
        workspace: Utf8PathBuf,
        queued_at: Timestamp,
    ) -> Self {
        Self {
            id,
            instance: None,
            title: team.to_string(),
            team,
            phases_done: 0,
            phases_all: 0,
            origin,
            caller: String::new(),
            request: RunRequest::default(),
            workspace,
            life: Lifecycle::default(),
            reason: None,
            phase: None,
            queued_at,
            started_at: None,
            ended_at: None,
            totals: RunTotals::default(),
            view: serde_json::Value::Null,
            journal_lines: 0,
            last_event: 0,
            version: 0,
            replica: None,
            wake_at: None,
            woken_at: None,
            changed: None,
            caveats: Vec::new(),
        }
    }

    /// Whether the workspace was made for the run by a server, which removes it with the run.
    #[must_use]
    pub fn has_own_workspace(&self) -> bool {
        self.instance.is_none() && self.origin != RunOrigin::Evaluation
    }
}
