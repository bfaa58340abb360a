//! Log lines of a run: its events, with the span that each belongs to.

use cliq_orchestrator::RunEvent;
use cliq_protocol::{Outcome, PhaseName};

use super::TraceBuilder;
use crate::conventions::{SCOPE, own};
use crate::span::{Attribute, LogLine, Severity};

impl TraceBuilder {
    /// Adds the line of an event, if it has one.
    pub(super) fn log(&mut self, event: &RunEvent) {
        let Some((name, severity, text)) = self.line_of(event) else { return };
        let phase = event.phase().cloned();
        let span = phase.as_ref().map_or_else(|| self.ids.run_span(), |phase| self.parent_of(phase));
        let mut attributes: Vec<Attribute> = vec![(own::RUN, self.run_id.as_str().into())];
        attributes.extend(phase.as_ref().map(|phase| (own::PHASE, phase.as_str().into())));
        let text = if self.options.content { self.options.mask.apply(&event.describe()) } else { text };
        let line = LogLine {
            id: self.ids.log_span(self.records),
            span: Some((self.ids.id(), span)),
            time: self.now,
            severity,
            event: name,
            text,
            attributes,
        };
        self.push_log(line);
    }

    /// Name, severity and text of an event. The text has nothing that an agent or a person wrote.
    fn line_of(&self, event: &RunEvent) -> Option<(&'static str, Severity, String)> {
        let of = |phase: &PhaseName, what: &str| format!("{phase}: {what}");
        Some(match event {
            RunEvent::RunStarted { .. } => {
                ("cliq.run_started", Severity::Info, format!("the run of {} started", self.team))
            }
            RunEvent::RunInterrupted => {
                ("cliq.run_interrupted", Severity::Warn, "the run was interrupted".to_owned())
            }
            RunEvent::RunResumed { .. } => ("cliq.run_resumed", Severity::Info, "the run goes on".to_owned()),
            RunEvent::RunParked { .. } => {
                ("cliq.run_parked", Severity::Info, "the run waits without a process".to_owned())
            }
            RunEvent::RunFinished { status, .. } => {
                let severity = if status.as_str() == "COMPLETED" { Severity::Info } else { Severity::Error };
                ("cliq.run_finished", severity, format!("the run ended: {}", status.as_str()))
            }
            RunEvent::PhaseStarted { phase, iteration, .. } => {
                ("cliq.phase_started", Severity::Info, of(phase, &format!("started (iteration {iteration})")))
            }
            RunEvent::PhaseCompleted { phase } => {
                ("cliq.phase_completed", Severity::Info, of(phase, "completed"))
            }
            RunEvent::PhaseEscalated { phase, .. } => {
                ("cliq.phase_escalated", Severity::Error, of(phase, "escalated"))
            }
            RunEvent::WorkFailed { phase, .. } => {
                ("cliq.work_failed", Severity::Warn, of(phase, "the work failed"))
            }
            RunEvent::RetryScheduled { phase, attempt, attempts, .. } => {
                let text = format!("attempt {attempt} of {attempts} follows");
                ("cliq.retry_scheduled", Severity::Warn, of(phase, &text))
            }
            RunEvent::Verdict { gate, verdict, .. } => {
                let text = match &verdict.outcome {
                    Outcome::Pass => "PASS".to_owned(),
                    Outcome::Route(target) => format!("ROUTE:{target}"),
                    Outcome::Escalate => "ESCALATE".to_owned(),
                };
                ("cliq.verdict", Severity::Info, of(gate, &text))
            }
            RunEvent::ReviewWaits { phase, review, .. } if !review.reviewers.is_empty() => {
                ("cliq.review_waits", Severity::Info, of(phase, "a review waits for people"))
            }
            RunEvent::MergeConflict { phase, files, .. } => (
                "cliq.merge_conflict",
                Severity::Warn,
                of(phase, &format!("{} files have conflicts", files.len())),
            ),
            RunEvent::AccessRefused { phase, .. } => {
                ("cliq.access_refused", Severity::Warn, of(phase, "the sandbox refused an access"))
            }
            RunEvent::CompletionContradicted { phase, .. } => (
                "cliq.completion_contradicted",
                Severity::Warn,
                of(phase, "its agent reported that it was complete, and failed after that"),
            ),
            RunEvent::Warning { phase, .. } => {
                let text = "a warning: the log of the run has it".to_owned();
                (
                    "cliq.warning",
                    Severity::Warn,
                    phase.as_ref().map_or(text.clone(), |phase| of(phase, &text)),
                )
            }
            RunEvent::CancelRequested { .. } => {
                ("cliq.cancel_requested", Severity::Warn, "the run is to be cancelled".to_owned())
            }
            RunEvent::OrchestratorFailed { .. } => (
                concat!("cliq", ".orchestrator_failed"),
                Severity::Error,
                format!("{SCOPE} cannot go on with the run"),
            ),
            _ => return None,
        })
    }
}
