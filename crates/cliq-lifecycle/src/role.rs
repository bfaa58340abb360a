//! The roles that work on a plan.

use std::fmt;

use cliq_markers::{Agent, MarkerKind};
use serde::{Deserialize, Serialize};

/// Role of an agent (docs/signals.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Writes waves and tasks into the plan.
    Planner,
    /// Spells the plan out before the first wave.
    Architect,
    /// Does a task, and says so by a signal.
    Coder,
    /// Reviews what was implemented.
    Reviewer,
    /// Verifies that the goal is reached.
    Master,
    /// Does what a review or a verification asks for.
    Fixer,
    /// Does a task, and says so by a marker.
    Developer,
    /// Reviews a task.
    Critic,
    /// Audits a task.
    Auditor,
    /// Spells a task out.
    BusinessAnalyst,
    /// Mends infrastructure.
    Remediation,
    /// Checks infrastructure.
    HealthAuditor,
    /// Advises.
    Expert,
}

impl Role {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Planner,
        Self::Architect,
        Self::Coder,
        Self::Reviewer,
        Self::Master,
        Self::Fixer,
        Self::Developer,
        Self::Critic,
        Self::Auditor,
        Self::BusinessAnalyst,
        Self::Remediation,
        Self::HealthAuditor,
        Self::Expert,
    ];

    /// The name, as in settings and in the names of role files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Architect => "architect",
            Self::Coder => "coder",
            Self::Reviewer => "reviewer",
            Self::Master => "master",
            Self::Fixer => "fixer",
            Self::Developer => "developer",
            Self::Critic => "critic",
            Self::Auditor => "auditor",
            Self::BusinessAnalyst => "business-analyst",
            Self::Remediation => "remediation",
            Self::HealthAuditor => "health-auditor",
            Self::Expert => "expert",
        }
    }

    /// Returns the kind of agent for markers: experts may not use every marker.
    #[must_use]
    pub fn speaks_as(self) -> Agent {
        match self {
            Self::Expert => Agent::Expert,
            Self::Critic | Self::Reviewer => Agent::Critic,
            Self::Auditor | Self::Master => Agent::Auditor,
            Self::BusinessAnalyst => Agent::BusinessAnalyst,
            Self::Remediation => Agent::Remediation,
            Self::HealthAuditor => Agent::HealthAuditor,
            Self::Planner | Self::Architect => Agent::Coordinator,
            Self::Coder | Self::Fixer | Self::Developer => Agent::Developer,
        }
    }

    /// The markers that an agent in this role ends its answer with. What any may say is not among them.
    #[must_use]
    pub fn markers(self) -> &'static [MarkerKind] {
        use MarkerKind as M;
        match self {
            Self::Planner | Self::Architect => &[],
            Self::Coder | Self::Fixer => &[M::ReadyForReview],
            Self::Developer => &[M::ReadyForReview, M::TaskIncomplete, M::InfraBlocked, M::FileConflict],
            Self::Critic | Self::Reviewer => &[M::ReviewPassed, M::ReviewFailed],
            Self::Auditor | Self::Master => &[M::AuditPassed, M::AuditFailed, M::AuditBlocked],
            Self::BusinessAnalyst => &[M::ExpandedTaskSpecification],
            Self::Remediation => &[M::RemediationComplete],
            Self::HealthAuditor => &[M::HealthAuditHealthy, M::HealthAuditUnhealthy],
            Self::Expert => &[M::ExpertAdvice, M::ExpertUnsuccessful],
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
