//! The life cycle of a run in a server, as a pure machine.
//!
//! ```text
//! queued ──► starting ──► running ──► completed | escalated | failed | cancelled
//!   ▲ ▲          │         │ │                        │
//!   │ │          └─ busy ──┘ │ (resume after a death) │
//!   │ └─ woken ── waiting ◄──┘                        │
//!   └──────────────────── resumed ────────────────────┘
//! ```
//!
//! An outcome is never overwritten: a resumed run keeps its former outcome until its orchestrator has begun it again. Whatever ends
//! the attempt before leads back to that outcome ([`Lifecycle::former`]). Only the last run of a project can be resumed ([`LastRun`]).

#![deny(clippy::wildcard_enum_match_arm)]

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::last_run::LastRun;

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
    /// The run is parked: it holds no process and no slot until a person answers or a time is due (docs/decisions/0034-parked-runs-are-rows.md).
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
        self.outcome().is_some()
    }

    /// Returns the outcome of a run in this state, or `None` if the run is not over.
    #[must_use]
    pub fn outcome(self) -> Option<RunOutcome> {
        match self {
            Self::Queued | Self::Starting | Self::Running | Self::Waiting => None,
            Self::Completed => Some(RunOutcome::Completed),
            Self::Escalated => Some(RunOutcome::Escalated),
            Self::Failed => Some(RunOutcome::Failed),
            Self::Cancelled => Some(RunOutcome::Cancelled),
        }
    }

    /// Whether the run takes one of the places of `server.max_runs`.
    #[must_use]
    pub fn is_active(self) -> bool {
        matches!(self, Self::Starting | Self::Running)
    }
}

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    /// Every phase is done.
    Completed,
    /// A person is needed.
    Escalated,
    /// The run could not start, or its orchestrator died or could not continue.
    Failed,
    /// The run was cancelled.
    Cancelled,
}

impl RunOutcome {
    /// All outcomes.
    pub const ALL: [Self; 4] = [Self::Completed, Self::Escalated, Self::Failed, Self::Cancelled];

    /// Returns the word for it, as in JSON and in the store.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        RunState::from(self).as_str()
    }

    /// Returns the outcome that a word names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        RunState::parse(text)?.outcome()
    }
}

impl From<RunOutcome> for RunState {
    fn from(outcome: RunOutcome) -> Self {
        match outcome {
            RunOutcome::Completed => Self::Completed,
            RunOutcome::Escalated => Self::Escalated,
            RunOutcome::Failed => Self::Failed,
            RunOutcome::Cancelled => Self::Cancelled,
        }
    }
}

/// Recovery of a run whose orchestrator died (setting `server.recovery`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Recovery {
    /// Mark the run as failed (docs/server.md).
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
    /// Outcome before the run was resumed, until its orchestrator has begun it again. An attempt that ends before restores it.
    pub former: Option<RunOutcome>,
}

/// Something that happens to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// A place is free and the run is the next.
    Dispatched,
    /// The journal says that its orchestrator began it, or went on with it.
    Began,
    /// The journal says that it ended so.
    Ended(RunOutcome),
    /// The orchestrator is gone, and the journal has no end.
    Lost(Death, Recovery),
    /// The orchestrator parked the run and has ended.
    Parked,
    /// A review that a parked run waits for is over, or a time is due.
    Woken,
    /// Request of a caller to cancel the run.
    CancelRequested,
    /// Request of a caller to resume the run after its end. It is the last run of its project.
    Resumed(LastRun),
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

/// Reason why an event does not fit the state. Nothing changed.
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
        use LifecycleEvent as E;
        use RunState as S;
        let refused = Err(NotAllowed { state: self.state });
        match event {
            E::Dispatched => match self.state {
                S::Queued => {
                    self.state = S::Starting;
                    Ok(vec![LifecycleEffect::Start])
                }
                S::Starting | S::Running | S::Waiting => refused,
                S::Completed | S::Escalated | S::Failed | S::Cancelled => refused,
            },
            E::Began if self.state.is_active() => {
                self.state = S::Running;
                self.began = true;
                (self.resume, self.parked, self.former) = (false, false, None);
                // The request may have come before there was an orchestrator that could take it.
                Ok(if self.cancel_requested { vec![LifecycleEffect::SendCancel] } else { Vec::new() })
            }
            E::Ended(outcome) if self.state.is_active() => {
                self.end(outcome);
                Ok(Vec::new())
            }
            E::Lost(death, recovery) if self.state.is_active() => Ok(self.lost(death, recovery)),
            E::Parked if self.state == S::Running => {
                self.parked = true;
                if self.cancel_requested {
                    self.wake();
                } else {
                    self.state = S::Waiting;
                }
                Ok(Vec::new())
            }
            E::Woken if self.state == S::Waiting => {
                self.wake();
                Ok(Vec::new())
            }
            E::CancelRequested => match self.state {
                // Its orchestrator cancels the reviews and records the end.
                S::Waiting => {
                    self.cancel_requested = true;
                    self.wake();
                    Ok(Vec::new())
                }
                S::Queued => {
                    self.cancel_requested = true;
                    if !self.parked {
                        self.end(RunOutcome::Cancelled);
                    }
                    Ok(Vec::new())
                }
                S::Starting => {
                    self.cancel_requested = true;
                    Ok(Vec::new())
                }
                S::Running => {
                    self.cancel_requested = true;
                    Ok(vec![LifecycleEffect::SendCancel])
                }
                S::Completed | S::Escalated | S::Failed | S::Cancelled => refused,
            },
            E::TakenUp if self.state.is_final() || self.state == S::Waiting => {
                *self = Self { state: S::Running, began: true, ..Self::default() };
                Ok(Vec::new())
            }
            E::Resumed(LastRun { .. }) => match self.state.outcome() {
                Some(former) => {
                    let (resume, began, former) = (self.began, self.began, Some(former));
                    *self = Self { state: S::Queued, resume, began, former, ..Self::default() };
                    Ok(Vec::new())
                }
                None => refused,
            },
            E::Began | E::Ended(_) | E::Lost(..) | E::Parked | E::Woken | E::TakenUp => refused,
        }
    }

    fn lost(&mut self, death: Death, recovery: Recovery) -> Vec<LifecycleEffect> {
        match death {
            Death::ProjectBusy if self.cancel_requested && !self.parked => {
                self.end(RunOutcome::Cancelled);
                Vec::new()
            }
            Death::ProjectBusy => {
                self.state = RunState::Queued;
                self.resume = self.began;
                Vec::new()
            }
            Death::NeverBegan => {
                self.end(if self.cancel_requested { RunOutcome::Cancelled } else { RunOutcome::Failed });
                Vec::new()
            }
            Death::Died if self.cancel_requested => {
                self.end(RunOutcome::Cancelled);
                vec![LifecycleEffect::EndLeftovers]
            }
            Death::Died if recovery == Recovery::Resume && self.recoveries < MAX_RECOVERIES => {
                self.recoveries += 1;
                self.state = RunState::Starting;
                self.resume = true;
                vec![LifecycleEffect::EndLeftovers, LifecycleEffect::Start]
            }
            Death::Died => {
                let keeps_outcome = self.former.is_some();
                self.end(RunOutcome::Failed);
                if keeps_outcome {
                    vec![LifecycleEffect::EndLeftovers]
                } else {
                    vec![LifecycleEffect::EndLeftovers, LifecycleEffect::RemoveWorkspace]
                }
            }
        }
    }

    fn wake(&mut self) {
        self.state = RunState::Queued;
        self.resume = true;
    }

    /// Ends the run. An attempt to resume it that has not begun leads back to the former outcome: no other function sets one.
    fn end(&mut self, outcome: RunOutcome) {
        if self.former.is_some() {
            self.cancel_requested = false;
        }
        self.state = self.former.take().unwrap_or(outcome).into();
        (self.resume, self.parked) = (false, false);
    }
}
