//! The life cycle of a run in a server, as a pure machine.
//!
//! ```text
//! queued ──► starting ──► running ──► completed | escalated | failed | cancelled
//!   ▲ ▲          │         │ │                        │
//!   │ │          └─ busy ──┘ │ (resume after a death) │
//!   │ └─ woken ── waiting ◄──┘                        │
//!   └──────────────────── resumed ────────────────────┘
//! ```

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Maximum number of resumptions of a run whose orchestrator died. After that the run fails.
pub const MAX_RECOVERIES: u32 = 5;

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// The run is next when a slot is free.
    #[default]
    Queued,
    /// The workspace is prepared and the orchestrator is started.
    Starting,
    /// The orchestrator is running.
    Running,
    /// The run is parked: it holds no process and no slot until a person answers or a time is due (SPEC section 21).
    Waiting,
    /// Every phase is done.
    Completed,
    /// A person is needed.
    Escalated,
    /// The run could not start, or its orchestrator died or could not continue.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunState {
    /// All states.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Starting,
        Self::Running,
        Self::Waiting,
        Self::Completed,
        Self::Escalated,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Escalated => "escalated",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether the run is over.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Completed | Self::Escalated | Self::Failed | Self::Cancelled)
    }

    /// Whether the run takes one of the places of `server.max_runs`.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// Recovery of a run whose orchestrator died (setting `server.recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Mark the run as failed (seed 004).
    #[default]
    Fail,
    /// Resume the run, up to [`MAX_RECOVERIES`] times.
    Resume,
}

/// Cause for which an orchestrator ended without an end of its run in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Death {
    /// The orchestrator refused or could not start the run.
    NeverBegan,
    /// Another orchestrator works in the project. The run can begin later.
    ProjectBusy,
    /// The orchestrator started the run and died.
    Died,
}

/// The part of a run that its life cycle is about.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lifecycle {
    /// State of the run.
    pub state: RunState,
    /// Whether a caller requested a cancellation.
    pub cancel_requested: bool,
    /// Whether its orchestrator has begun it once: from then on it can only be resumed.
    pub began: bool,
    /// Whether the next orchestrator resumes it.
    pub resume: bool,
    /// Whether its orchestrator parked it and none has continued it since. A queued run that is parked was woken.
    pub parked: bool,
    /// Number of resumptions after the orchestrator died.
    pub recoveries: u32,
}

/// Something that happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// A place is free and the run is the next.
    Dispatched,
    /// The journal says that its orchestrator began it, or went on with it.
    Began,
    /// The journal says that it ended so. The state is a final one.
    Ended(RunState),
    /// The orchestrator is gone, and the journal has no end.
    Lost(Death, Recovery),
    /// The orchestrator parked the run and has ended.
    Parked,
    /// A review that a parked run waits for is over, or a time is due.
    Woken,
    /// A caller wants it cancelled.
    CancelRequested,
    /// A caller wants it to go on after its end.
    Resumed,
    /// The journal says that a person resumed it in its project, after its end or while it was parked.
    TakenUp,
}

/// Effect of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEffect {
    /// Start the orchestrator.
    Start,
    /// Ask the orchestrator to stop.
    SendCancel,
    /// End the processes that the dead orchestrator left.
    EndLeftovers,
    /// Remove the workspace, where it was made for this run.
    RemoveWorkspace,
}

/// Why an event does not fit the state. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAllowed {
    /// The state.
    pub state: RunState,
}

impl std::fmt::Display for NotAllowed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the run is {}", self.state.as_str())
    }
}

impl std::error::Error for NotAllowed {}

impl Lifecycle {
    /// Takes an event. Gives what is to be done, in this order.
    ///
    /// # Errors
    /// The event does not fit the state; nothing changed.
    pub fn step(&mut self, event: LifecycleEvent) -> Result<Vec<LifecycleEffect>, NotAllowed> {
        use RunState as S;
        let refused = Err(NotAllowed { state: self.state });
        match (self.state, event) {
            (S::Queued, LifecycleEvent::Dispatched) => {
                self.state = S::Starting;
                Ok(vec![LifecycleEffect::Start])
            }
            (S::Starting | S::Running, LifecycleEvent::Began) => {
                self.state = S::Running;
                self.began = true;
                (self.resume, self.parked) = (false, false);
                // The request may have come before there was an orchestrator that could take it.
                Ok(if self.cancel_requested { vec![LifecycleEffect::SendCancel] } else { Vec::new() })
            }
            (S::Starting | S::Running, LifecycleEvent::Ended(end)) if end.is_final() => {
                self.end(end);
                Ok(Vec::new())
            }
            (S::Starting | S::Running, LifecycleEvent::Lost(death, recovery)) => {
                Ok(self.lost(death, recovery))
            }
            (S::Running, LifecycleEvent::Parked) => {
                self.parked = true;
                if self.cancel_requested {
                    self.wake();
                } else {
                    self.state = S::Waiting;
                }
                Ok(Vec::new())
            }
            (S::Waiting, LifecycleEvent::Woken) => {
                self.wake();
                Ok(Vec::new())
            }
            // Its orchestrator cancels the reviews and records the end.
            (S::Waiting, LifecycleEvent::CancelRequested) => {
                self.cancel_requested = true;
                self.wake();
                Ok(Vec::new())
            }
            (S::Queued, LifecycleEvent::CancelRequested) if self.parked => {
                self.cancel_requested = true;
                Ok(Vec::new())
            }
            (S::Queued, LifecycleEvent::CancelRequested) => {
                self.cancel_requested = true;
                self.end(S::Cancelled);
                Ok(Vec::new())
            }
            (S::Starting | S::Running, LifecycleEvent::CancelRequested) => {
                self.cancel_requested = true;
                Ok(if self.state == S::Running { vec![LifecycleEffect::SendCancel] } else { Vec::new() })
            }
            (state, LifecycleEvent::TakenUp) if state.is_final() || state == S::Waiting => {
                *self = Self { state: S::Running, began: true, ..Self::default() };
                Ok(Vec::new())
            }
            (state, LifecycleEvent::Resumed) if state.is_final() => {
                *self = Self { state: S::Queued, resume: self.began, began: self.began, ..Self::default() };
                Ok(Vec::new())
            }
            _ => refused,
        }
    }

    fn lost(&mut self, death: Death, recovery: Recovery) -> Vec<LifecycleEffect> {
        match death {
            Death::ProjectBusy if self.cancel_requested && !self.parked => {
                self.end(RunState::Cancelled);
                Vec::new()
            }
            Death::ProjectBusy => {
                self.state = RunState::Queued;
                self.resume = self.began;
                Vec::new()
            }
            Death::NeverBegan => {
                self.end(if self.cancel_requested { RunState::Cancelled } else { RunState::Failed });
                Vec::new()
            }
            Death::Died if self.cancel_requested => {
                self.end(RunState::Cancelled);
                vec![LifecycleEffect::EndLeftovers]
            }
            Death::Died if recovery == Recovery::Resume && self.recoveries < MAX_RECOVERIES => {
                self.recoveries += 1;
                self.state = RunState::Starting;
                self.resume = true;
                vec![LifecycleEffect::EndLeftovers, LifecycleEffect::Start]
            }
            Death::Died => {
                self.end(RunState::Failed);
                vec![LifecycleEffect::EndLeftovers, LifecycleEffect::RemoveWorkspace]
            }
        }
    }

    fn wake(&mut self) {
        self.state = RunState::Queued;
        self.resume = true;
    }

    fn end(&mut self, state: RunState) {
        self.state = state;
        (self.resume, self.parked) = (false, false);
    }
}
