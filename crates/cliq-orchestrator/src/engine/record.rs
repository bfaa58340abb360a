//! State of a phase in the machine, and work in its queue.

use std::collections::VecDeque;

use cliq_fs::PipelineStatus;
use cliq_gate::Gate;
use cliq_workflow::PhaseId;

use super::PhaseWait;
use super::items::Items;

/// State of a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhaseState {
    /// The phase waits for its dependencies or, for a support phase, for a gate's route.
    Waiting,
    /// The phase may start and waits for its turn.
    Queued,
    /// The agent or the commands are running.
    Working,
    /// The expressions of the phase are being evaluated.
    Deciding,
    /// The items of the phase are in progress.
    Items,
    /// The worktrees of its items are being merged.
    Merging,
    /// An attempt failed, and the next one waits for its time.
    Delayed,
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

/// State of a phase in the machine.
#[derive(Debug, Clone)]
pub(super) struct PhaseRecord {
    pub(super) state: PhaseState,
    pub(super) activations: u32,
    /// First of the interrupted activations that the present one continues.
    pub(super) continues: Option<u32>,
    /// Verdicts of a gate, and how often it was forgotten. It only grows, so that each evaluation has a number of its own.
    pub(super) evaluations: u32,
    /// Dependencies that are not done.
    pub(super) blockers: usize,
    /// Whether it has ever been done.
    pub(super) ever_done: bool,
    /// Whether it was skipped when it was first done. A gate may route to it later: what depends on it does not depend on when.
    pub(super) was_skipped: bool,
    /// The gate that it works for.
    pub(super) routed_by: Option<PhaseId>,
    /// Gates that routed to it while it worked for another.
    pub(super) waiting_gates: VecDeque<PhaseId>,
    /// The gate machine of a gate. Boxed, as most phases are none.
    pub(super) gate: Option<Box<Gate>>,
    /// Cause of its wait, while its agent waits.
    pub(super) wait: Option<PhaseWait>,
    /// Whether its agent has waited in this activation.
    pub(super) is_exempt: bool,
    /// Whether its expressions were evaluated.
    pub(super) is_decided: bool,
    /// Items, once the list is known.
    pub(super) items: Option<Box<Items>>,
    /// Activations of the items of lists that were forgotten, by index.
    pub(super) retired: Vec<u32>,
    /// The item whose worktree conflicted last.
    pub(super) conflict: Option<u32>,
    /// Attempts that failed since the phase started.
    pub(super) failed_attempts: u32,
    /// Time of the next attempt, in milliseconds since 1970.
    pub(super) due_ms: Option<i64>,
}

impl PhaseRecord {
    /// Record of a phase or an item that has not begun.
    pub(super) fn new(blockers: usize, gate: Option<Box<Gate>>) -> Self {
        Self {
            state: PhaseState::Waiting,
            activations: 0,
            continues: None,
            evaluations: 0,
            blockers,
            ever_done: false,
            was_skipped: false,
            routed_by: None,
            waiting_gates: VecDeque::new(),
            gate,
            wait: None,
            is_exempt: false,
            is_decided: false,
            items: None,
            retired: Vec::new(),
            conflict: None,
            failed_attempts: 0,
            due_ms: None,
        }
    }
}

#[derive(Debug, Clone, Copy)]
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

#[derive(Debug, Clone)]
pub(super) struct End {
    pub(super) status: PipelineStatus,
    pub(super) reason: Option<String>,
    pub(super) phase: Option<PhaseId>,
}
