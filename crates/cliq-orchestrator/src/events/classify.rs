//! Classes of events: which are recorded, which settle something, which follow from others.

use cliq_protocol::{Outcome, PhaseName};

use super::RunEvent;

impl RunEvent {
    /// Whether the journal keeps it: all but what comes in any number and decides nothing.
    #[must_use]
    pub fn is_journaled(&self) -> bool {
        !matches!(
            self,
            Self::Progress { .. }
                | Self::RunIdle { .. }
                | Self::CommandStarted { .. }
                | Self::CommandFinished { .. }
        )
    }

    /// Whether it is the start or the end of one command. Only some journals have these.
    #[must_use]
    pub fn is_command_step(&self) -> bool {
        matches!(self, Self::CommandStarted { .. } | Self::CommandFinished { .. })
    }

    /// Whether work of a phase, or the run, ended with it. A reader relies on the files that the work left.
    pub(crate) fn ends_work(&self) -> bool {
        matches!(
            self,
            Self::AgentCompleted { .. }
                | Self::WorkFailed { .. }
                | Self::CommandsFinished { .. }
                | Self::RunFinished { .. }
        )
    }

    /// Returns the phase whose work ended with it, perhaps with a failure.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(crate) fn may_fail(&self) -> Option<&PhaseName> {
        match self {
            Self::WorkFailed { phase, .. } | Self::CommandsFinished { phase, .. } => Some(phase),
            Self::RunStarted { .. }
            | Self::RunInterrupted
            | Self::RunResumed { .. }
            | Self::PhaseStarted { .. }
            | Self::AgentStarted { .. }
            | Self::CommandStarted { .. }
            | Self::CommandFinished { .. }
            | Self::Progress { .. }
            | Self::UsageReported { .. }
            | Self::ReviewWaits { .. }
            | Self::ReviewIdle { .. }
            | Self::PhaseSandboxed { .. }
            | Self::AccessRefused { .. }
            | Self::RunIdle { .. }
            | Self::RunParked { .. }
            | Self::SteeringReceived { .. }
            | Self::SteeringDelivered { .. }
            | Self::NotifyRequested { .. }
            | Self::AgentCompleted { .. }
            | Self::PhaseDecided { .. }
            | Self::PhaseSkipped { .. }
            | Self::ItemsStarted { .. }
            | Self::ItemFailed { .. }
            | Self::RetryScheduled { .. }
            | Self::MergeConflict { .. }
            | Self::ItemsMerged { .. }
            | Self::RetryDelayed { .. }
            | Self::RetryDue { .. }
            | Self::Verdict { .. }
            | Self::VerdictRejected { .. }
            | Self::PhaseCompleted { .. }
            | Self::PhaseEscalated { .. }
            | Self::PhaseReset { .. }
            | Self::PhaseStopped { .. }
            | Self::Draining { .. }
            | Self::WorkspaceChanged { .. }
            | Self::Warning { .. }
            | Self::CompletionContradicted { .. }
            | Self::CancelRequested { .. }
            | Self::OrchestratorFailed { .. }
            | Self::RunFinished { .. } => None,
        }
    }

    /// Whether it is the last word on a phase or on the run.
    pub(crate) fn settles(&self) -> bool {
        matches!(
            self,
            Self::PhaseCompleted { .. }
                | Self::PhaseEscalated { .. }
                | Self::PhaseStopped { .. }
                | Self::RunFinished { .. }
        )
    }

    /// Whether this event is a report of the machine's, so one that follows from inputs.
    pub(crate) fn is_report(&self) -> bool {
        matches!(
            self,
            Self::PhaseStarted { .. }
                | Self::Verdict { .. }
                | Self::VerdictRejected { .. }
                | Self::PhaseSkipped { .. }
                | Self::ItemsStarted { .. }
                | Self::MergeConflict { .. }
                | Self::ItemFailed { .. }
                | Self::RetryScheduled { .. }
                | Self::PhaseCompleted { .. }
                | Self::PhaseEscalated { .. }
                | Self::PhaseReset { .. }
                | Self::PhaseStopped { .. }
                | Self::Draining { .. }
        )
    }

    /// The phase that it is about.
    #[must_use]
    pub fn phase(&self) -> Option<&PhaseName> {
        match self {
            Self::PhaseStarted { phase, .. }
            | Self::AgentStarted { phase, .. }
            | Self::CommandStarted { phase, .. }
            | Self::CommandFinished { phase, .. }
            | Self::CommandsFinished { phase, .. }
            | Self::Progress { phase, .. }
            | Self::UsageReported { phase, .. }
            | Self::ReviewWaits { phase, .. }
            | Self::ReviewIdle { phase, .. }
            | Self::PhaseSandboxed { phase, .. }
            | Self::AccessRefused { phase, .. }
            | Self::SteeringDelivered { phase, .. }
            | Self::AgentCompleted { phase, .. }
            | Self::WorkFailed { phase, .. }
            | Self::PhaseDecided { phase, .. }
            | Self::PhaseSkipped { phase, .. }
            | Self::ItemsStarted { phase, .. }
            | Self::ItemFailed { phase, .. }
            | Self::MergeConflict { phase, .. }
            | Self::ItemsMerged { phase, .. }
            | Self::RetryScheduled { phase, .. }
            | Self::RetryDelayed { phase, .. }
            | Self::RetryDue { phase }
            | Self::Verdict { gate: phase, .. }
            | Self::VerdictRejected { gate: phase, .. }
            | Self::PhaseCompleted { phase }
            | Self::CompletionContradicted { phase, .. }
            | Self::PhaseEscalated { phase, .. }
            | Self::PhaseReset { phase }
            | Self::PhaseStopped { phase }
            | Self::WorkspaceChanged { phase, .. } => Some(phase),
            Self::Warning { phase, .. }
            | Self::RunFinished { phase, .. }
            | Self::SteeringReceived { phase, .. }
            | Self::NotifyRequested { phase, .. } => phase.as_ref(),
            Self::RunStarted { .. }
            | Self::RunInterrupted
            | Self::RunResumed { .. }
            | Self::RunIdle { .. }
            | Self::RunParked { .. }
            | Self::Draining { .. }
            | Self::CancelRequested { .. }
            | Self::OrchestratorFailed { .. } => None,
        }
    }

    /// Whether the verdict, if it is one, passes.
    #[must_use]
    pub fn is_pass(&self) -> bool {
        matches!(self, Self::Verdict { verdict, .. } if verdict.outcome == Outcome::Pass)
    }
}
