//! The nineteen markers there are.

use std::fmt;

use serde::Serialize;

/// Kind of a marker (docs/protocol.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkerKind {
    /// The developer is done and asks the critic for a review.
    ReadyForReview,
    /// The developer cannot complete the task.
    TaskIncomplete,
    /// Infrastructure keeps the developer from completing the task.
    InfraBlocked,
    /// The critic finds the quality of the code good.
    ReviewPassed,
    /// The critic asks for changes.
    ReviewFailed,
    /// The auditor has verified all acceptance criteria: the task is complete.
    AuditPassed,
    /// Acceptance criteria are not met.
    AuditFailed,
    /// An earlier failure prevents the audit.
    AuditBlocked,
    /// The business analyst has spelled a task out.
    ExpandedTaskSpecification,
    /// Infrastructure was mended.
    RemediationComplete,
    /// All checks pass in all environments.
    HealthAuditHealthy,
    /// Some checks fail.
    HealthAuditUnhealthy,
    /// A person is asked.
    SeekingDivineClarification,
    /// An expert is asked.
    ExpertRequest,
    /// An expert advises.
    ExpertAdvice,
    /// An expert cannot advise.
    ExpertUnsuccessful,
    /// There is a new expert.
    ExpertCreated,
    /// A file that another task has must be changed.
    FileConflict,
    /// Progress of an agent, on request.
    Checkpoint,
}

/// Action of a coordinator on a marker (docs/signals.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Handler {
    /// Have the critic review.
    DispatchCritic,
    /// Note it, and let others work.
    LogAndFillSlots,
    /// Have the infrastructure mended.
    EnterRemediation,
    /// Have the auditor audit.
    DispatchAuditor,
    /// Give it back to the developer with the issues.
    DispatchDeveloperRework,
    /// The task is complete.
    MarkComplete,
    /// Take the longer specification.
    ProcessExpansion,
    /// Have the health of the infrastructure audited.
    DispatchHealthAuditor,
    /// Work goes on.
    ExitRemediation,
    /// Have the infrastructure mended again.
    RetryRemediation,
    /// Wait for a person's answer.
    AwaitDivineResponse,
    /// Have an expert advise.
    DispatchExpert,
    /// Pass the advice on.
    DeliverToRequestingAgent,
    /// Ask a person instead of the expert.
    EscalateToDivine,
    /// Remember the expert.
    RegisterExpert,
    /// Let it wait for the file.
    QueueOrCoordinate,
    /// Take note of the progress.
    ProcessCheckpoint,
    /// Ask for it again: there was no marker.
    RequestClarification,
}

impl Handler {
    /// Returns the name of the action, such as `DISPATCH_CRITIC`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DispatchCritic => "DISPATCH_CRITIC",
            Self::LogAndFillSlots => "LOG_AND_FILL_SLOTS",
            Self::EnterRemediation => "ENTER_REMEDIATION",
            Self::DispatchAuditor => "DISPATCH_AUDITOR",
            Self::DispatchDeveloperRework => "DISPATCH_DEVELOPER_REWORK",
            Self::MarkComplete => "MARK_COMPLETE",
            Self::ProcessExpansion => "PROCESS_EXPANSION",
            Self::DispatchHealthAuditor => "DISPATCH_HEALTH_AUDITOR",
            Self::ExitRemediation => "EXIT_REMEDIATION",
            Self::RetryRemediation => "RETRY_REMEDIATION",
            Self::AwaitDivineResponse => "AWAIT_DIVINE_RESPONSE",
            Self::DispatchExpert => "DISPATCH_EXPERT",
            Self::DeliverToRequestingAgent => "DELIVER_TO_REQUESTING_AGENT",
            Self::EscalateToDivine => "ESCALATE_TO_DIVINE",
            Self::RegisterExpert => "REGISTER_EXPERT",
            Self::QueueOrCoordinate => "QUEUE_OR_COORDINATE",
            Self::ProcessCheckpoint => "PROCESS_CHECKPOINT",
            Self::RequestClarification => "REQUEST_CLARIFICATION",
        }
    }
}

impl fmt::Display for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Kind of agent that writes a marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Agent {
    /// Implements.
    Developer,
    /// Reviews the quality of code.
    Critic,
    /// Verifies acceptance criteria.
    Auditor,
    /// Spells tasks out.
    BusinessAnalyst,
    /// Mends infrastructure.
    Remediation,
    /// Checks infrastructure.
    HealthAuditor,
    /// A specialist that advises the others.
    Expert,
    /// Leads them all.
    Coordinator,
}

/// Text after a marker's name on its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Subject {
    /// Nothing: the marker fills its line.
    None,
    /// Name of the subject that follows the marker after a colon, such as `task_id`.
    Named(&'static str),
}

use Agent::{Auditor, BusinessAnalyst, Coordinator, Critic, Developer, Expert, HealthAuditor, Remediation};
use Subject::{Named, None as Alone};

/// Marker, key, name, subject, who sends it, handler.
type Row = (MarkerKind, &'static str, &'static str, Subject, Agent, Handler);

/// All markers, in the order of [`MarkerKind`].
const TABLE: [Row; 19] = {
    use Handler as H;
    use MarkerKind as M;
    let task = Named("task_id");
    [
        (M::ReadyForReview, "ready_for_review", "READY_FOR_REVIEW", task, Developer, H::DispatchCritic),
        (M::TaskIncomplete, "task_incomplete", "TASK_INCOMPLETE", task, Developer, H::LogAndFillSlots),
        (M::InfraBlocked, "infra_blocked", "INFRA_BLOCKED", task, Developer, H::EnterRemediation),
        (M::ReviewPassed, "review_passed", "REVIEW_PASSED", task, Critic, H::DispatchAuditor),
        (M::ReviewFailed, "review_failed", "REVIEW_FAILED", task, Critic, H::DispatchDeveloperRework),
        (M::AuditPassed, "audit_passed", "AUDIT_PASSED", task, Auditor, H::MarkComplete),
        (M::AuditFailed, "audit_failed", "AUDIT_FAILED", task, Auditor, H::DispatchDeveloperRework),
        (M::AuditBlocked, "audit_blocked", "AUDIT_BLOCKED", task, Auditor, H::EnterRemediation),
        (
            M::ExpandedTaskSpecification,
            "expanded_spec",
            "EXPANDED_TASK_SPECIFICATION",
            task,
            BusinessAnalyst,
            H::ProcessExpansion,
        ),
        (
            M::RemediationComplete,
            "remediation_complete",
            "REMEDIATION_COMPLETE",
            Alone,
            Remediation,
            H::DispatchHealthAuditor,
        ),
        (
            M::HealthAuditHealthy,
            "health_healthy",
            "HEALTH_AUDIT: HEALTHY",
            Alone,
            HealthAuditor,
            H::ExitRemediation,
        ),
        (
            M::HealthAuditUnhealthy,
            "health_unhealthy",
            "HEALTH_AUDIT: UNHEALTHY",
            Alone,
            HealthAuditor,
            H::RetryRemediation,
        ),
        (
            M::SeekingDivineClarification,
            "divine_clarification",
            "SEEKING_DIVINE_CLARIFICATION",
            Alone,
            Developer,
            H::AwaitDivineResponse,
        ),
        (M::ExpertRequest, "expert_request", "EXPERT_REQUEST", Alone, Developer, H::DispatchExpert),
        (
            M::ExpertAdvice,
            "expert_advice",
            "EXPERT_ADVICE",
            Named("request_id"),
            Expert,
            H::DeliverToRequestingAgent,
        ),
        (
            M::ExpertUnsuccessful,
            "expert_unsuccessful",
            "EXPERT_UNSUCCESSFUL",
            Named("request_id"),
            Expert,
            H::EscalateToDivine,
        ),
        (
            M::ExpertCreated,
            "expert_created",
            "EXPERT_CREATED",
            Named("expert_name"),
            Coordinator,
            H::RegisterExpert,
        ),
        (
            M::FileConflict,
            "file_conflict",
            "FILE CONFLICT",
            Named("file_path"),
            Developer,
            H::QueueOrCoordinate,
        ),
        (M::Checkpoint, "checkpoint", "CHECKPOINT", task, Developer, H::ProcessCheckpoint),
    ]
};

impl MarkerKind {
    /// Returns all nineteen, in the order of the enum.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        // The table is in the order of the enum; a test holds that.
        &TABLE[self as usize]
    }

    /// Returns the key by which programs know the marker, such as `ready_for_review`.
    #[must_use]
    pub fn key(self) -> &'static str {
        self.row().1
    }

    /// The marker itself, without what follows it, such as `READY_FOR_REVIEW` or `HEALTH_AUDIT: HEALTHY`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().2
    }

    /// The marker with this name or key.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.1 == name || row.2 == name).map(|row| row.0)
    }

    /// Subject after the name.
    #[must_use]
    pub fn subject(self) -> Subject {
        self.row().3
    }

    /// Returns the kind of agent that writes the marker. Markers for baseline agents are the developer's here, and any of them may
    /// write them.
    #[must_use]
    pub fn agent(self) -> Agent {
        self.row().4
    }

    /// Returns the action of a coordinator.
    #[must_use]
    pub fn handler(self) -> Handler {
        self.row().5
    }

    /// Returns the priority among the markers of one text, 1 being the highest (docs/protocol.md).
    #[must_use]
    pub fn priority(self) -> u8 {
        match self {
            Self::InfraBlocked | Self::AuditBlocked => 1,
            Self::SeekingDivineClarification => 2,
            Self::ExpertRequest => 3,
            Self::FileConflict => 4,
            _ => 5,
        }
    }

    /// Whether experts may not say it (docs/signals.md).
    #[must_use]
    pub fn is_for_baseline_agents(self) -> bool {
        matches!(self, Self::SeekingDivineClarification | Self::ExpertRequest)
    }

    /// Whether it says that work succeeded.
    #[must_use]
    pub fn claims_success(self) -> bool {
        match self {
            Self::ReadyForReview
            | Self::ReviewPassed
            | Self::AuditPassed
            | Self::ExpandedTaskSpecification
            | Self::RemediationComplete
            | Self::HealthAuditHealthy
            | Self::ExpertAdvice => true,
            Self::TaskIncomplete
            | Self::InfraBlocked
            | Self::ReviewFailed
            | Self::AuditFailed
            | Self::AuditBlocked
            | Self::HealthAuditUnhealthy
            | Self::SeekingDivineClarification
            | Self::ExpertRequest
            | Self::ExpertUnsuccessful
            | Self::ExpertCreated
            | Self::FileConflict
            | Self::Checkpoint => false,
        }
    }

    /// Whether an agent of this kind may say it at all. Whether it is what the coordinator waits for is another matter.
    #[must_use]
    pub fn is_allowed_by(self, agent: Agent) -> bool {
        !(agent == Agent::Expert && self.is_for_baseline_agents())
    }
}

impl fmt::Display for MarkerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order() {
        assert!(MarkerKind::all().enumerate().all(|(at, kind)| kind as usize == at));
        assert_eq!(MarkerKind::all().count(), 19);
    }

    #[test]
    fn names_and_keys_find_their_marker() {
        for kind in MarkerKind::all() {
            assert_eq!(MarkerKind::find(kind.name()), Some(kind));
            assert_eq!(MarkerKind::find(kind.key()), Some(kind));
        }
        assert_eq!(MarkerKind::find("Audit Passed"), None);
    }
}
