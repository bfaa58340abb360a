//! Events of a run as one stream: the progress display, `--json`, the log, the journal and tests see this and nothing else.

mod budgets;
mod classify;
mod describe;
mod kept;
mod line;
mod record;
mod translate;

use std::collections::{BTreeMap, BTreeSet};

use cliq_fs::PipelineStatus;
use cliq_protocol::{
    ChangedLines, CommandResult, Limited, Object, PhaseKind, PhaseName, RunId, Sandbox, Timestamp,
    TraceContext, Usage, Verdict, WaitingReview, WireTime,
};
use cliq_workflow::FailureCause;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::engine::SkipReason;

pub use budgets::RecordedBudgets;
pub use kept::{FailedItem, KeptPhase, KeptStatus};
pub use line::within_line;
pub use record::Record;

/// The newest version of the journal's format. A run that keeps phases of an earlier one has it, as a cliq that does not know of them
/// would run them again; other runs have version 1.
pub const JOURNAL_VERSION: u32 = 2;

/// Something that happened in a run. On the wire an object whose `event` names it (`docs/protocol.md`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run begins.
    RunStarted {
        /// Version of this format.
        version: u32,
        /// The run.
        run_id: RunId,
        /// The team's name.
        team: String,
        /// Title of the run, if it has one of its own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
        /// Number of main phases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase_count: Option<u32>,
        /// The cliq that runs it.
        cliq_version: String,
        /// The orchestrator's process.
        pid: u32,
        /// Maximum number of concurrent phases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_parallel: Option<usize>,
        /// The run's inputs.
        #[serde(default)]
        inputs: BTreeMap<String, String>,
        /// Stands for all of the team that decides what follows from what: a run is resumed with the same only.
        #[serde(default)]
        shape: String,
        /// Budgets, where there are any.
        #[serde(default, skip_serializing_if = "RecordedBudgets::is_empty")]
        budgets: RecordedBudgets,
        /// Models of its agents by agent, if they are known.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        agent_models: BTreeMap<String, BTreeSet<String>>,
        /// Span of the caller, if the run is part of a trace that began before (docs/telemetry.md).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceContext>,
        /// Phases that are not run again, with their outcome in the last run (docs/changed.md).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        kept: Vec<KeptPhase>,
    },
    /// The orchestrator had died without finishing the run, and another has found that.
    RunInterrupted,
    /// The run goes on, after it ended or its orchestrator died.
    RunResumed {
        /// The cliq that goes on with it.
        cliq_version: String,
        /// The orchestrator's process.
        pid: u32,
        /// Maximum number of concurrent phases.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_parallel: Option<usize>,
        /// The phase that runs again, with all that depends on it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from: Option<PhaseName>,
        /// Budgets, where there are any. They may have been raised.
        #[serde(default, skip_serializing_if = "RecordedBudgets::is_empty")]
        budgets: RecordedBudgets,
    },
    /// A phase starts, or starts again.
    PhaseStarted {
        /// The phase.
        phase: PhaseName,
        /// Type of the phase.
        kind: PhaseKind,
        /// Number of the activation, or of the evaluation for a gate. 1-based.
        iteration: u32,
        /// The gate that sent the work back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        routed_by: Option<PhaseName>,
    },
    /// An agent runs.
    AgentStarted {
        /// The phase.
        phase: PhaseName,
        /// As in `PhaseStarted`.
        iteration: u32,
        /// The agent.
        agent: String,
        /// Process id, if there is a process.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pid: Option<u32>,
    },
    /// A command begins.
    CommandStarted {
        /// The phase.
        phase: PhaseName,
        /// The command.
        command: String,
    },
    /// A command is done.
    CommandFinished {
        /// The phase.
        phase: PhaseName,
        /// Result of the command.
        result: CommandResult,
    },
    /// All commands of a phase are done.
    CommandsFinished {
        /// The phase.
        phase: PhaseName,
        /// As in `PhaseStarted`.
        iteration: u32,
        /// Results of the commands that ran.
        results: Vec<CommandResult>,
        /// For a gate: how many evaluations it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_iterations: Option<u32>,
        /// Whether the journal has the start and the end of each command ([`RunPlan::records_commands`](crate::RunPlan)).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        reported: bool,
    },
    /// An agent says how far it is.
    Progress {
        /// The phase.
        phase: PhaseName,
        /// Message of the signal.
        message: String,
    },
    /// An agent reports the usage of its activation so far.
    UsageReported {
        /// The phase.
        phase: PhaseName,
        /// The usage, with its cost where that is known.
        usage: Usage,
        /// Whether the report came with the terminal message.
        #[serde(rename = "final")]
        is_final: bool,
    },
    /// A phase waits for a person's review, or for fewer people than before (docs/reviews.md).
    ReviewWaits {
        /// The phase.
        phase: PhaseName,
        /// As in `PhaseStarted`.
        iteration: u32,
        /// The review.
        review: WaitingReview,
    },
    /// The agent of a review, or the run of a team phase, is idle until a reviewer answers or a time is due, or works again
    /// (docs/decisions/0033-waiting-is-a-state.md).
    ReviewIdle {
        /// The phase.
        phase: PhaseName,
        /// Id of the review.
        review: String,
        /// Ids of other reviews of a team phase. An answer to any of them ends the wait.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        others: Vec<String>,
        /// Time of the next reminder or of the expiry, or `None` if the agent works.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        due: Option<WireTime>,
    },
    /// Agent and commands of a phase run in a sandbox (docs/sandbox.md).
    PhaseSandboxed {
        /// The phase.
        phase: PhaseName,
        /// Profile and exceptions, with absolute paths.
        sandbox: Sandbox,
        /// Mechanism that enforces it: `bubblewrap` or `landlock`.
        mechanism: String,
    },
    /// A sandbox refused an access of a phase, as far as that is noticed.
    AccessRefused {
        /// The phase.
        phase: PhaseName,
        /// Refused access, with its remedy.
        access: String,
    },
    /// The run of a team phase waits, or works again. Reported to the run around it, and not recorded.
    RunIdle {
        /// Ids of the reviews that it waits for.
        on: Vec<String>,
        /// Time at which it works again without an answer, or `None` if it works.
        until: Option<Timestamp>,
    },
    /// The run is parked: its agents end, and an answer, a point in time or a person wakes it (docs/decisions/0033-waiting-is-a-state.md).
    RunParked {
        /// Ids of the reviews that it waits for.
        on: Vec<String>,
        /// Time at which it wakes without an answer.
        until: WireTime,
    },
    /// The run received a steering message (docs/steering.md).
    SteeringReceived {
        /// Id of the message.
        id: String,
        /// Author.
        from: String,
        /// Text of the author.
        text: String,
        /// Phase that it is for, or `None` if it is for the whole run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<PhaseName>,
    },
    /// An activation received a steering message.
    SteeringDelivered {
        /// Id of the message.
        id: String,
        /// Phase that received it.
        phase: PhaseName,
        /// Number of the activation, 1-based.
        activation: u32,
    },
    /// A notification was asked for.
    NotifyRequested {
        /// The phase that asks; `None` if it is about the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<PhaseName>,
        /// The agent that is to deliver.
        agent: String,
        /// Subject of the notification.
        about: String,
    },
    /// An agent completed.
    AgentCompleted {
        /// The phase.
        phase: PhaseName,
        /// Result of the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
    },
    /// The work of a phase failed.
    WorkFailed {
        /// The phase.
        phase: PhaseName,
        /// Reason.
        reason: String,
        /// The last of what it printed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_tail: Option<String>,
        /// The file with all it printed, relative to `.cliq/`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log_file: Option<String>,
        /// Cause, if retries distinguish it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cause: Option<FailureCause>,
        /// Limit that ended the work, if one did. It is not retried (docs/outcomes.md).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limited: Option<Limited>,
    },
    /// The expressions of a phase were evaluated (docs/expressions.md).
    PhaseDecided {
        /// The phase.
        phase: PhaseName,
        /// Type of the phase.
        kind: PhaseKind,
        /// Result.
        decision: DecisionKind,
        /// Items of the phase, if it has a list.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        items: Vec<Value>,
        /// Indexes of items for which the condition of the phase is false.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        skipped: Vec<u32>,
        /// Reason of a failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Expressions by field, as in team.yml.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        expressions: BTreeMap<String, String>,
        /// Values that the expressions read, by name.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        values: Object,
    },
    /// A phase is skipped.
    PhaseSkipped {
        /// The phase.
        phase: PhaseName,
        /// Type of the phase.
        kind: PhaseKind,
        /// Reason.
        reason: SkipReason,
    },
    /// Items of a phase start, or start again.
    ItemsStarted {
        /// The phase.
        phase: PhaseName,
        /// Number of items of the phase.
        items: u32,
        /// Number of items that start.
        starting: u32,
    },
    /// An item failed, and the phase goes on without it.
    ItemFailed {
        /// The item: `PHASE.INDEX`.
        phase: PhaseName,
        /// Reason.
        reason: String,
    },
    /// An attempt failed, and another follows.
    RetryScheduled {
        /// The phase.
        phase: PhaseName,
        /// Number of the next attempt, 1-based.
        attempt: u32,
        /// Attempts altogether.
        attempts: u32,
        /// Time until the next attempt, in milliseconds.
        delay_ms: u64,
        /// Reason of the failure.
        reason: String,
    },
    /// The worktree of an item conflicts with what was merged before.
    MergeConflict {
        /// The phase.
        phase: PhaseName,
        /// The item.
        item: u32,
        /// Files with conflicts.
        files: Vec<String>,
        /// Files with the kinds of their conflicts, or nothing if all are conflicts of lines.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
    },
    /// Worktrees of items were merged, all or up to a conflict.
    ItemsMerged {
        /// The phase.
        phase: PhaseName,
        /// The item that conflicts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conflict: Option<u32>,
        /// Files with conflicts.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        files: Vec<String>,
        /// Files with the kinds of their conflicts, or nothing if all are conflicts of lines. Without a conflict: parts that were left apart.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<String>,
        /// Reason why they cannot be merged.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// The time of the next attempt is known.
    RetryDelayed {
        /// The phase.
        phase: PhaseName,
        /// Time of the next attempt.
        until: WireTime,
    },
    /// The time of the next attempt has come.
    RetryDue {
        /// The phase.
        phase: PhaseName,
    },
    /// A gate decided.
    Verdict {
        /// The gate.
        gate: PhaseName,
        /// Number of the evaluation.
        iteration: u32,
        /// Maximum number of evaluations.
        max_iterations: u32,
        /// Verdict of the gate.
        verdict: Verdict,
        /// Commands that fail although the gate passes.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        failing: Vec<String>,
    },
    /// A gate's answer was no valid verdict and is given back to its agent.
    VerdictRejected {
        /// The gate.
        gate: PhaseName,
        /// Number of the evaluation.
        iteration: u32,
        /// Reason.
        reason: String,
    },
    /// A phase is done.
    PhaseCompleted {
        /// The phase.
        phase: PhaseName,
    },
    /// A phase could not be completed; a person is needed.
    PhaseEscalated {
        /// The phase.
        phase: PhaseName,
        /// Reason.
        reason: String,
    },
    /// A phase is to be done again.
    PhaseReset {
        /// The phase.
        phase: PhaseName,
    },
    /// A phase was ended because the run stops.
    PhaseStopped {
        /// The phase.
        phase: PhaseName,
    },
    /// Nothing new starts; these phases may still finish.
    Draining {
        /// The phases.
        running: Vec<PhaseName>,
    },
    /// Changes of the run to the workspace so far, after an activation (docs/checkpoints.md). Missing if they are the same as before.
    WorkspaceChanged {
        /// The phase whose activation ended.
        phase: PhaseName,
        /// All changes of the run.
        changed: ChangedLines,
    },
    /// Something is odd, and the run goes on.
    Warning {
        /// The phase that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<PhaseName>,
        /// Description of the anomaly.
        message: String,
    },
    /// The agent of a phase reported that it was complete, and failed after that: by an error, or by its exit status. The terminal message
    /// decides (docs/protocol.md), and the run has a caveat.
    CompletionContradicted {
        /// Phase.
        phase: PhaseName,
        /// Failure, for people.
        reason: String,
    },
    /// The run is to be cancelled.
    CancelRequested {
        /// Person or program that cancelled.
        by: String,
    },
    /// The orchestrator cannot go on.
    OrchestratorFailed {
        /// Reason.
        reason: String,
    },
    /// The run is over.
    RunFinished {
        /// `COMPLETED`, `ESCALATED`, `FAILED` or `CANCELLED`.
        #[serde(with = "status_text")]
        status: PipelineStatus,
        /// Reason why it did not complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The phase that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<PhaseName>,
    },
}

/// Kind of a decision about a phase with expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// The phase runs.
    Run,
    /// The phase is skipped.
    Skip,
    /// The phase works on the items of its list.
    Items,
    /// An expression has no value, or one that does not fit.
    Failed,
}

mod status_text {
    use cliq_fs::PipelineStatus;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(
        status: &PipelineStatus,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(status.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PipelineStatus, D::Error> {
        let text = String::deserialize(deserializer)?;
        PipelineStatus::parse(&text)
            .ok_or_else(|| D::Error::custom(format!("{text:?} is not a status of a run")))
    }
}
