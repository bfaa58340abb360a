//! Data of the screen: runs, phases, changes, and forms of new runs, as a source delivers them.

use std::collections::BTreeMap;
use std::sync::Arc;

use cliq_protocol::Timestamp;
use cliq_review::{Content, Diff, Review};

/// Unique key of a run among all sources of a screen.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunKey(Arc<str>);

impl RunKey {
    /// Returns the key with a text.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(text.into())
    }

    /// Text of the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunStatus {
    /// The run waits for a free slot.
    Queued,
    /// Phases are at work.
    Working,
    /// The run is parked: nothing of it is running until an answer or a point in time.
    Parked,
    /// The orchestrator died before the end.
    Interrupted,
    /// Every phase is done.
    Completed,
    /// Every phase is done, and something keeps the run from being a plain success.
    CompletedWithCaveats,
    /// A phase could not be completed.
    Escalated,
    /// The orchestrator could not go on.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunStatus {
    /// Word of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Working => "working",
            Self::Parked => "parked",
            Self::Interrupted => "interrupted",
            Self::Completed => "completed",
            Self::CompletedWithCaveats => "completed with caveats",
            Self::Escalated => "escalated",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Sign of the state, one column wide.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Queued => "·",
            Self::Working => "▸",
            Self::Parked => "‖",
            Self::Interrupted => "◆",
            Self::Cancelled => "■",
            Self::Completed => "✓",
            Self::CompletedWithCaveats => "!",
            Self::Escalated | Self::Failed => "✗",
        }
    }

    /// Whether the run has not ended.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Queued | Self::Working | Self::Parked)
    }
}

/// Part of the list of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Section {
    /// A person is asked.
    NeedsYou,
    /// Runs that have not ended.
    Working,
    /// Runs that ended today.
    Today,
    /// Runs that ended before.
    Earlier,
}

impl Section {
    /// Title of the section.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::NeedsYou => "needs you",
            Self::Working => "working",
            Self::Today => "today",
            Self::Earlier => "earlier",
        }
    }
}

/// Run in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRow {
    /// Key.
    pub key: RunKey,
    /// Id of the run.
    pub id: String,
    /// Title.
    pub title: String,
    /// Name of the team.
    pub team: String,
    /// Short name of the project.
    pub project: String,
    /// Directory of the project.
    pub place: String,
    /// State.
    pub status: RunStatus,
    /// Number of main phases that are done.
    pub done: u32,
    /// Number of main phases; 0 if unknown.
    pub all: u32,
    /// Start time.
    pub started: Option<Timestamp>,
    /// End time.
    pub ended: Option<Timestamp>,
    /// Number of tokens that models used.
    pub tokens: u64,
    /// Cost in US dollars.
    pub usd: Option<f64>,
    /// Size of the changes, such as `3 files, +10 −2`.
    pub changed: Option<String>,
    /// Question to a person, if one is asked.
    pub needs: Option<String>,
    /// Current words of an agent at work.
    pub words: Option<String>,
    /// Whether the run is the last one of its project: only such a run is resumed or run again.
    pub is_last: bool,
    /// Whether a server drives the run.
    pub is_on_server: bool,
}

impl RunRow {
    /// Section of the list.
    #[must_use]
    pub fn section(&self, today: Timestamp) -> Section {
        if self.needs.is_some() && self.status.is_active() {
            return Section::NeedsYou;
        }
        if self.status.is_active() {
            return Section::Working;
        }
        let at = self.ended.or(self.started).map_or(i64::MIN, Timestamp::unix_millis);
        if at >= today.unix_millis() { Section::Today } else { Section::Earlier }
    }

    /// Whether the run can be resumed.
    #[must_use]
    pub fn can_resume(&self) -> bool {
        self.is_last
            && match self.status {
                RunStatus::Parked
                | RunStatus::Interrupted
                | RunStatus::Escalated
                | RunStatus::Failed
                | RunStatus::Cancelled => true,
                RunStatus::Queued
                | RunStatus::Working
                | RunStatus::Completed
                | RunStatus::CompletedWithCaveats => false,
            }
    }

    /// Whether the run can be started again from its beginning.
    #[must_use]
    pub fn can_run_again(&self) -> bool {
        self.is_last && !self.status.is_active()
    }
}

/// Runs of all sources.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunList {
    /// Runs, in any order.
    pub runs: Vec<RunRow>,
    /// Beginning of today in the zone of this machine.
    pub today: Option<Timestamp>,
    /// Problems of sources, such as a server that does not respond.
    pub problems: Vec<String>,
    /// Whether more runs are being read.
    pub is_partial: bool,
}

/// State of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseState {
    /// Not started.
    Pending,
    /// At work.
    Running,
    /// Waits for a person, or for the phase to which it sent work back.
    Waiting,
    /// ActionResult.
    Completed,
    /// Not needed.
    Skipped,
    /// Item that failed.
    Failed,
    /// A person is needed.
    Escalated,
    /// Ended before it was done.
    Stopped,
    /// State that this version does not know.
    Unknown,
}

impl PhaseState {
    /// Returns the state that a word names, as in `cliq status --json`.
    #[must_use]
    pub fn parse(word: &str) -> Self {
        match word {
            "pending" => Self::Pending,
            "running" => Self::Running,
            "waiting" => Self::Waiting,
            "completed" => Self::Completed,
            "skipped" => Self::Skipped,
            "failed" => Self::Failed,
            "escalated" => Self::Escalated,
            "stopped" => Self::Stopped,
            _ => Self::Unknown,
        }
    }

    /// Word of the state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Escalated => "escalated",
            Self::Stopped => "stopped",
            Self::Unknown => "unknown",
        }
    }

    /// Sign of the state, one column wide.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "·",
            Self::Running => "▸",
            Self::Waiting => "↺",
            Self::Completed => "✓",
            Self::Skipped => "○",
            Self::Failed | Self::Escalated => "✗",
            Self::Stopped => "■",
            Self::Unknown => "?",
        }
    }
}

/// Phase of a run, or item of one.
#[derive(Debug, Clone, PartialEq)]
pub struct PhaseRow {
    /// Name; of an item `PHASE.INDEX`.
    pub name: String,
    /// Title of an item.
    pub title: Option<String>,
    /// Layer in the graph of the team, 1-based: phases of one layer need none of each other. `None` if unknown.
    pub layer: Option<u32>,
    /// Depth of the row: items and phases of team phases stand below their phase.
    pub depth: u16,
    /// Type, such as `standard` or `loop-gate`.
    pub kind: String,
    /// Whether the phase is a gate: its iterations are rounds.
    pub is_gate: bool,
    /// Whether it runs only when a gate routes to it.
    pub is_support: bool,
    /// State.
    pub state: PhaseState,
    /// Number of activations, or of evaluations of a gate.
    pub iterations: u32,
    /// Last verdict of a gate, such as `ROUTE to build`.
    pub verdict: Option<String>,
    /// Working time in milliseconds, without the current activation.
    pub worked_ms: i64,
    /// Start of the current activation, in milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Last message.
    pub message: Option<String>,
    /// Number of tokens.
    pub tokens: u64,
    /// Id of the review that it waits for.
    pub review: Option<String>,
}

/// Run with its phases.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunDetail {
    /// Phases in the order of the team.
    pub phases: Vec<PhaseRow>,
    /// Reason why the run did not complete.
    pub reason: Option<String>,
    /// Remarks: caveats, steering messages that no agent received, parking.
    pub remarks: Vec<String>,
    /// Requirement.
    pub requirement: Option<String>,
}

/// Review with its content.
#[derive(Debug, Clone, PartialEq)]
pub struct ReviewDetail {
    /// Review.
    pub review: Review,
    /// Content for reviewers.
    pub content: Content,
}

/// Changes of an activation, or of a whole run, in a repository.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedPart {
    /// Title, if there are several parts: the activation as `PHASE.N`.
    pub title: Option<String>,
    /// Changed files.
    pub diff: Diff,
}

/// Changed files of a run or phase.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Changes {
    /// Review that the changes belong to: comments on lines go there. Without one they are guidance for the run.
    pub review: Option<ReviewDetail>,
    /// Changes by activation and repository, oldest first.
    pub parts: Vec<ChangedPart>,
    /// Reason why there are none, if that is known.
    pub remark: Option<String>,
}

/// Field of a team's inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputOffer {
    /// Name.
    pub name: String,
    /// Description.
    pub help: Option<String>,
    /// Default.
    pub default: Option<String>,
    /// Whether a value is required.
    pub is_required: bool,
    /// Allowed values, if they are limited.
    pub choices: Vec<String>,
}

/// Team that can run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamOffer {
    /// Reference for `cliq assemble`, or `None` for the team that is assembled in the project.
    pub reference: Option<String>,
    /// Name.
    pub name: String,
    /// Inputs.
    pub inputs: Vec<InputOffer>,
    /// Reason why it cannot run here.
    pub missing: Vec<String>,
}

/// Places and teams for a new run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Offers {
    /// Directories of projects. The first one is the default.
    pub projects: Vec<String>,
    /// Team that is assembled in each project.
    pub assembled: BTreeMap<String, TeamOffer>,
    /// Teams of this machine.
    pub teams: Vec<TeamOffer>,
}
