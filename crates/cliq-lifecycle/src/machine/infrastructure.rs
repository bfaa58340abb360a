//! The remediation loop: nothing new starts until infrastructure is healthy again (docs/signals.md).

use cliq_markers::{Marker, MarkerKind};
use serde_json::json;

use super::Effects;
use crate::model::{Brief, Infrastructure, Plan, Purpose, QuestionSubject, Stage, StartReason, WaitingFor};
use crate::role::Role;

/// Attempts to mend infrastructure before a person is asked (docs/signals.md).
const ATTEMPTS: u32 = 3;

impl Plan {
    pub(super) fn is_blocked(&self) -> bool {
        self.infrastructure != Infrastructure::Fine
    }

    /// Work found infrastructure broken.
    pub(super) fn block(&mut self, report: String, effects: &mut Effects) {
        effects.note("blocked", json!({"report": report}));
        match &mut self.infrastructure {
            Infrastructure::Fine => {
                self.infrastructure =
                    Infrastructure::Blocked { report, attempt: 1, role: Role::Remediation, job: None };
            }
            // The agent that fixes one problem should know of the other.
            Infrastructure::Blocked { report: known, .. } => known.extend(["\n\n", report.as_str()]),
        }
    }

    /// Starts the next agent that fixes or checks infrastructure, if none is at work.
    pub(super) fn mend(&mut self, effects: &mut Effects) {
        let Infrastructure::Blocked { report, role, job: None, attempt } = &self.infrastructure else {
            return;
        };
        let (role, attempt) = (*role, *attempt);
        let brief = Brief { why: StartReason::Mend, text: report.clone() };
        let id = self.add_job(Purpose::Infrastructure, Some(role), Some(brief));
        if let Infrastructure::Blocked { job, .. } = &mut self.infrastructure {
            *job = Some(id);
        }
        effects.note("remediation", json!({"role": role, "attempt": attempt, "job": id}));
    }

    pub(super) fn infrastructure_ended(
        &mut self,
        marker: Option<&Marker<'_>>,
        role: Role,
        effects: &mut Effects,
    ) {
        let take_answer = marker.map(|marker| marker.kind);
        let detail = marker.map(|marker| marker.body().text()).unwrap_or_default();
        let Infrastructure::Blocked { role: next, job, .. } = &mut self.infrastructure else { return };
        *job = None;
        match (role, take_answer) {
            (Role::Remediation, Some(MarkerKind::RemediationComplete)) => *next = Role::HealthAuditor,
            (Role::HealthAuditor, Some(MarkerKind::HealthAuditHealthy)) => {
                self.infrastructure = Infrastructure::Fine;
                effects.note("healthy", json!({}));
                for work in self.works.values_mut() {
                    if let Stage::Held { role, by: WaitingFor::Infrastructure } = work.stage {
                        work.stage = Stage::Queued { role };
                        let text = "Infrastructure was mended.".to_owned();
                        work.brief.get_or_insert(Brief { why: StartReason::GoOn, text });
                    }
                }
            }
            // Unhealthy, or unknown.
            _ => self.attempt_failed(&detail, effects),
        }
    }

    fn attempt_failed(&mut self, detail: &str, effects: &mut Effects) {
        let Infrastructure::Blocked { report, attempt, role, .. } = &mut self.infrastructure else { return };
        if !detail.is_empty() {
            report.extend(["\n\n", detail]);
        }
        if *attempt < ATTEMPTS {
            *attempt += 1;
            *role = Role::Remediation;
            return;
        }
        let text = format!(
            "Infrastructure is blocked, and {ATTEMPTS} attempts to mend it failed. Mend it, then answer.\n\n{report}"
        );
        self.ask(text, QuestionSubject::Infrastructure, effects);
    }

    /// A person says that it was mended: that is checked, and then there are attempts anew.
    pub(super) fn check_infrastructure(&mut self, answer: &str) {
        if let Infrastructure::Blocked { report, attempt, role, job } = &mut self.infrastructure {
            report.extend(["\n\nA person says: ", answer]);
            (*attempt, *role, *job) = (1, Role::HealthAuditor, None);
        }
    }
}
