//! States of phases in the machine, and work in its queue.

use cliq_fs::PipelineStatus;
use cliq_workflow::PhaseId;

use super::PhaseWait;

/// State of a phase or an item, with the data that only this state has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseState {
    /// The phase waits for its dependencies or, for a support phase, for a gate's route.
    Waiting,
    /// The phase may start and waits for its turn.
    Queued,
    /// The agent or the commands are running.
    Working(Activity),
    /// The expressions of the phase are being evaluated.
    Deciding,
    /// The items of the phase are in progress.
    Items,
    /// The worktrees of its items are being merged.
    Merging,
    /// An attempt failed, and the next one waits for its time.
    Delayed {
        /// Time of the next attempt, in milliseconds since 1970. `None` until the driver has reported it.
        due_ms: Option<i64>,
    },
    /// A gate whose work went back: it waits for the phase it routed to.
    Routed(PhaseId),
    /// The phase is complete.
    Completed,
    /// The phase was skipped.
    Skipped,
    /// An item failed, and the phase goes on without it.
    Failed(String),
    /// A person is needed.
    Escalated(String),
    /// The phase was ended because the run stops.
    Stopped,
}

/// Activity of a phase that works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Activity {
    /// The agent works, and has not waited in this activation.
    Busy,
    /// The agent waits for a person or a time.
    Waits(PhaseWait),
    /// The agent works again after a wait.
    Resumed,
}

impl PhaseState {
    /// State of a phase whose agent or commands start.
    pub(super) const BUSY: Self = Self::Working(Activity::Busy);

    /// Whether the agent or the commands are running.
    #[must_use]
    pub fn is_working(&self) -> bool {
        matches!(self, Self::Working(_))
    }

    /// Whether the next attempt waits for its time.
    #[must_use]
    pub fn is_delayed(&self) -> bool {
        matches!(self, Self::Delayed { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// Start a phase, or start it again for `routed_by`.
    Start(PhaseId),
    /// A gate evaluates again after the phase that it routed to.
    Reevaluate(PhaseId),
    /// Start an activation again that an interruption of the run ended.
    Resume(PhaseId),
    /// Start the next attempt.
    Retry(PhaseId),
    /// Ask the agent of a human gate or of a team phase again, in the same activation: the run was parked while it waited.
    Wake(PhaseId),
}

impl Task {
    pub(super) fn phase(self) -> PhaseId {
        let (Self::Start(phase)
        | Self::Reevaluate(phase)
        | Self::Resume(phase)
        | Self::Retry(phase)
        | Self::Wake(phase)) = self;
        phase
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) status: PipelineStatus,
    pub(super) reason: Option<String>,
    pub(super) phase: Option<PhaseId>,
}
