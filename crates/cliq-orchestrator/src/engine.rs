//! The pipeline as a state machine: what happened goes in, what to do comes out.
//!
//! Nothing in this module touches a disk, a clock, a process or a thread. The same inputs always give the same effects,
//! so a run is rebuilt by replaying its journal, and every interleaving of completions, failures and cancellations can
//! be tested in memory.

mod budget;
mod ending;
mod items;
mod kept;
mod machine;
mod phases;
mod record;
mod resume;
mod retry;
mod routing;
mod waiting;

use cliq_fs::PipelineStatus;
use cliq_protocol::{CommandResult, GateData, Limited, Verdict};
use cliq_workflow::{FailureCause, PhaseId};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use budget::{Amount, Limits};
pub use items::{DecidedItem, Decision};
pub use kept::{Kept, KeptOutcome};
pub use machine::Pipeline;
pub use record::{Activity, PhaseState};
pub use waiting::{PhaseWait, Wait};

/// Input of the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The run begins. At most `max_parallel` phases work at the same time.
    Start {
        /// The bound, at least 1; `None` for none.
        max_parallel: Option<usize>,
        /// Budgets.
        limits: Limits,
        /// Phases that are not run again, with their outcome in an earlier run.
        kept: Vec<Kept>,
    },
    /// An agent reports the usage of its activation so far.
    UsageReported {
        /// The phase.
        phase: PhaseId,
        /// The usage.
        usage: Amount,
        /// Whether the report came with its terminal message.
        is_final: bool,
    },
    /// The commands of a gate or exec phase ran.
    CommandsFinished {
        /// The phase.
        phase: PhaseId,
        /// Results of the commands that ran.
        results: Vec<CommandResult>,
    },
    /// An agent completed.
    AgentCompleted {
        /// The phase.
        phase: PhaseId,
        /// The `result` of its `complete` message.
        result: Option<Value>,
    },
    /// The work of a phase failed: its agent said so, died, or fell silent, or its time ran out.
    WorkFailed {
        /// The phase.
        phase: PhaseId,
        /// Reason, for people.
        reason: String,
        /// Cause, if retries distinguish it.
        cause: Option<FailureCause>,
    },
    /// The expressions of a phase were evaluated (docs/expressions.md).
    Decided {
        /// The phase.
        phase: PhaseId,
        /// Result of the evaluation.
        decision: Decision,
    },
    /// Worktrees of items were merged.
    Merged {
        /// The phase.
        phase: PhaseId,
        /// Result.
        outcome: MergeOutcome,
    },
    /// The time of the next attempt of a phase is known.
    RetryDelayed {
        /// The phase.
        phase: PhaseId,
        /// Time of the next attempt, in milliseconds since 1970.
        due_ms: i64,
    },
    /// The time of the next attempt has come.
    RetryDue {
        /// The phase.
        phase: PhaseId,
    },
    /// The agent of a human gate is idle until a person answers or a time is due, or it works again (docs/decisions/0033-waiting-is-a-state.md).
    PhaseWaits {
        /// The phase.
        phase: PhaseId,
        /// Cause of the wait, or `None` if the agent works.
        wait: Option<PhaseWait>,
    },
    /// The run is parked: its agents end, and a later [`Input::Resume`] wakes them. Without effect unless the run waits.
    Park,
    /// The orchestrator died, and another has taken note of it. What it no longer heard of may follow; nothing starts
    /// before [`Input::Resume`].
    Interrupt,
    /// The run goes on after it ended or was interrupted.
    Resume {
        /// Run this phase again, with all that depends on it.
        from: Option<PhaseId>,
        /// As for `Start`.
        max_parallel: Option<usize>,
        /// As for `Start`: budgets may have been raised.
        limits: Limits,
    },
    /// The run is cancelled.
    Cancel,
    /// The orchestrator cannot go on.
    Fail {
        /// Reason, for people.
        reason: String,
    },
}

/// Effect of a step.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Start the agent of a phase.
    RunAgent {
        /// The phase.
        phase: PhaseId,
        /// Number of the activation, or of the evaluation for a gate. 1-based.
        iteration: u32,
        /// The gate that sent the work back.
        routed_by: Option<PhaseId>,
        /// For a gate: why its last answer was no valid verdict.
        rejected: Option<String>,
        /// First of the interrupted activations that this one continues. `None` for gates: an evaluation keeps its number.
        continues: Option<u32>,
        /// Last activation of the phase that completed since it was reset, if there is one. Gates number their evaluations instead.
        previous: Option<u32>,
    },
    /// Run the commands of a gate or exec phase.
    RunCommands {
        /// The phase.
        phase: PhaseId,
        /// As for `RunAgent`.
        iteration: u32,
        /// As for `RunAgent`.
        routed_by: Option<PhaseId>,
    },
    /// Evaluate the expressions of a phase.
    Decide {
        /// The phase.
        phase: PhaseId,
        /// Whether the condition of the phase is ignored, because a gate routed to it.
        ignores_when: bool,
    },
    /// Merge the worktrees of a phase's items, in order.
    Merge {
        /// The phase.
        phase: PhaseId,
        /// The item whose conflict was resolved; the merge continues after it.
        resolved: Option<u32>,
    },
    /// See to it that the conflict of a merge lies in the channel to the phase that resolves it.
    DeliverConflict {
        /// The phase.
        phase: PhaseId,
        /// Phase that resolves the conflict.
        to: PhaseId,
        /// The item.
        item: u32,
        /// Files with conflicts.
        files: Vec<String>,
    },
    /// Wait before the next attempt of a phase.
    Delay {
        /// The phase.
        phase: PhaseId,
        /// Time to wait, in milliseconds.
        delay_ms: u64,
    },
    /// See to it that the verdict lies in the channels from `gate` to each of `to`.
    DeliverVerdict {
        /// The gate.
        gate: PhaseId,
        /// Phases that receive this handoff.
        to: Vec<PhaseId>,
        /// Data of the handoff.
        data: Box<GateData>,
    },
    /// End the agent of a phase, whose work then fails with this reason.
    EndAgent {
        /// The phase.
        phase: PhaseId,
        /// Reason, for people.
        reason: String,
        /// Limit that is exceeded, if that is the reason.
        limited: Option<Limited>,
    },
    /// Notify recipients.
    Report(Report),
    /// End every agent and command at once.
    StopAll,
    /// The run is over: everything that was started has come back.
    Finish {
        /// End of the run.
        status: PipelineStatus,
        /// Reason why it did not complete.
        reason: Option<String>,
        /// The phase that it is about.
        phase: Option<PhaseId>,
    },
}

/// A consequence of an input, for subscribers.
#[derive(Debug, Clone, PartialEq)]
pub enum Report {
    /// A phase starts, or starts again.
    PhaseStarted {
        /// The phase.
        phase: PhaseId,
        /// As in `Effect::RunAgent`.
        iteration: u32,
        /// The gate that sent the work back.
        routed_by: Option<PhaseId>,
    },
    /// A gate decided.
    Verdict {
        /// The gate.
        gate: PhaseId,
        /// Number of the evaluation.
        iteration: u32,
        /// Verdict of the gate.
        verdict: Verdict,
        /// Commands that fail although the gate passes.
        failing: Vec<String>,
    },
    /// A gate's answer was no valid verdict and is given back.
    VerdictRejected {
        /// The gate.
        gate: PhaseId,
        /// Number of the evaluation.
        iteration: u32,
        /// Reason.
        reason: String,
    },
    /// A phase is skipped: its condition is false, its list is empty, or all that it depends on was skipped.
    PhaseSkipped {
        /// The phase.
        phase: PhaseId,
        /// Reason.
        reason: SkipReason,
    },
    /// Items of a phase start, or start again.
    ItemsStarted {
        /// The phase.
        phase: PhaseId,
        /// Number of items of the phase.
        items: u32,
        /// Number of items that start.
        starting: u32,
    },
    /// The worktree of an item conflicts with what was merged before.
    MergeConflict {
        /// The phase.
        phase: PhaseId,
        /// The item.
        item: u32,
        /// Files with conflicts.
        files: Vec<String>,
        /// Files with the kinds of their conflicts, or nothing if all are conflicts of lines.
        notes: Vec<String>,
    },
    /// An item failed, and the phase goes on without it.
    ItemFailed {
        /// The item.
        phase: PhaseId,
        /// Reason.
        reason: String,
    },
    /// An attempt failed, and another follows.
    RetryScheduled {
        /// The phase.
        phase: PhaseId,
        /// Number of the next attempt, 1-based.
        attempt: u32,
        /// Attempts altogether.
        attempts: u32,
        /// Time until the next attempt, in milliseconds.
        delay_ms: u64,
        /// Reason of the failure.
        reason: String,
    },
    /// A phase is done.
    PhaseCompleted {
        /// The phase.
        phase: PhaseId,
    },
    /// A phase could not be completed; a person is needed.
    PhaseEscalated {
        /// The phase.
        phase: PhaseId,
        /// Reason.
        reason: String,
    },
    /// A phase that was done, or begun, is to be done again.
    PhaseReset {
        /// The phase.
        phase: PhaseId,
    },
    /// A phase was ended before it was done, because the run stops.
    PhaseStopped {
        /// The phase.
        phase: PhaseId,
    },
    /// Nothing new starts; these phases may still finish.
    Draining {
        /// The phases.
        running: Vec<PhaseId>,
    },
}

/// Result of merging worktrees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// All are merged.
    Done,
    /// An item conflicts. The files are unmerged entries of the index.
    Conflict {
        /// The item.
        item: u32,
        /// Files with conflicts.
        files: Vec<String>,
        /// Files with the kinds of their conflicts, or nothing if all are conflicts of lines.
        notes: Vec<String>,
    },
    /// Failure of the merge, with its reason.
    Failed(String),
}

/// Cause of a skipped phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// False condition of the phase.
    Condition,
    /// Empty list, or a list without an item for which the condition holds.
    NoItems,
    /// All phases that it depends on were skipped.
    Dependencies,
}

impl SkipReason {
    /// Describes the cause for people.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Condition => "its condition is false",
            Self::NoItems => "its list has no items",
            Self::Dependencies => "all that it depends on was skipped",
        }
    }
}
