//! The bundled role files: who an agent is where a project says nothing else.

use crate::role::Role;

impl Role {
    /// The bundled role file.
    #[must_use]
    pub fn bundled(self) -> &'static str {
        match self {
            Self::Planner => include_str!("roles/planner.md"),
            Self::Architect => include_str!("roles/architect.md"),
            Self::Coder => include_str!("roles/coder.md"),
            Self::Reviewer => include_str!("roles/reviewer.md"),
            Self::Master => include_str!("roles/master.md"),
            Self::Fixer => include_str!("roles/fixer.md"),
            Self::Developer => include_str!("roles/developer.md"),
            Self::Critic => include_str!("roles/critic.md"),
            Self::Auditor => include_str!("roles/auditor.md"),
            Self::BusinessAnalyst => include_str!("roles/business-analyst.md"),
            Self::Remediation => include_str!("roles/remediation.md"),
            Self::HealthAuditor => include_str!("roles/health-auditor.md"),
            Self::Expert => include_str!("roles/expert.md"),
        }
    }
}
