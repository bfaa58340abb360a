//! A phase of a run, folded from its events.

use cliq_protocol::{PhaseKind, PhaseName};

use super::PhaseView;
use crate::events::RunEvent;
use crate::phase_status::PhaseStatus;
use crate::usage::UsageSummary;

impl PhaseView {
    pub(super) fn new(name: PhaseName, kind: PhaseKind, support: bool) -> Self {
        Self {
            losses: Vec::new(),
            name,
            title: None,
            kind,
            support,
            status: PhaseStatus::Pending,
            iterations: 0,
            duration_ms: 0,
            running_since_ms: None,
            message: None,
            verdict: None,
            failing: Vec::new(),
            commands: Vec::new(),
            output_tail: None,
            log_file: None,
            limited: None,
            contradicted: None,
            usage: None,
            review: None,
            sandbox: None,
            kept_from: None,
            interrupted: false,
            settled_usage: UsageSummary::default(),
        }
    }

    pub(super) fn rest(&mut self, now: Option<i64>) {
        self.review = None;
        self.pause(now);
    }

    /// Stops the clock of the phase.
    pub(super) fn pause(&mut self, now: Option<i64>) {
        if let Some(since) = self.running_since_ms.take() {
            self.duration_ms += now.map_or(0, |now| (now - since).max(0));
        }
    }

    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn apply(&mut self, event: &RunEvent, now: &dyn Fn() -> Option<i64>) {
        if let RunEvent::PhaseStarted { .. }
        | RunEvent::PhaseDecided { .. }
        | RunEvent::PhaseSkipped { .. }
        | RunEvent::ItemsStarted { .. }
        | RunEvent::PhaseReset { .. } = event
        {
            self.kept_from = None;
        }
        match event {
            RunEvent::PhaseStarted { .. } => {
                self.iterations += 1;
                self.status = PhaseStatus::Running;
                self.running_since_ms = now();
                self.message = None;
                self.limited = None;
                self.contradicted = None;
            }
            RunEvent::CommandStarted { command, .. } => self.message = Some(format!("`{command}`")),
            RunEvent::AgentStarted { agent, .. } => {
                self.message = Some(format!("agent {agent}"));
                self.settled_usage = self.usage.clone().unwrap_or_default();
            }
            RunEvent::UsageReported { usage, .. } => {
                let mut summary = self.settled_usage.clone();
                summary.add(usage);
                self.usage = Some(summary);
            }
            RunEvent::Progress { message, .. } => self.message = Some(message.clone()),
            // In the team of the phase, a person has answered.
            RunEvent::ReviewWaits { review, .. } if review.reviewers.is_empty() => {
                let over = || format!("review {} is over", review.id);
                self.message = Some(review.answer.clone().unwrap_or_else(over));
                self.review = None;
            }
            RunEvent::ReviewWaits { review, .. } => {
                let who = review.reviewers.join(", ");
                self.message = Some(match &review.asks {
                    Some(asks) => format!("{asks} (waits for {who})"),
                    None => format!("waits for a review by {who}"),
                });
                self.review = Some(review.clone());
            }
            RunEvent::PhaseSandboxed { sandbox, .. } => self.sandbox = Some(sandbox.clone()),
            RunEvent::AgentCompleted { .. } => self.review = None,
            RunEvent::CommandsFinished { results, .. } => self.commands.clone_from(results),
            RunEvent::WorkFailed { output_tail, log_file, limited, .. } => {
                self.review = None;
                self.limited.clone_from(limited);
                self.output_tail.clone_from(output_tail);
                self.log_file.clone_from(log_file);
            }
            RunEvent::PhaseSkipped { reason, .. } => {
                self.status = PhaseStatus::Skipped;
                self.message = Some(reason.describe().to_owned());
                self.rest(now());
            }
            RunEvent::ItemsStarted { items, .. } => {
                self.iterations += 1;
                self.status = PhaseStatus::Running;
                self.running_since_ms = now();
                self.message = Some(format!("{items} items"));
            }
            RunEvent::MergeConflict { item, files, notes, .. } => {
                let files = if notes.is_empty() { files } else { notes };
                self.status = PhaseStatus::Waiting;
                self.message = Some(format!("item {item} conflicts: {}", files.join(", ")));
            }
            RunEvent::ItemsMerged { conflict: None, reason: None, notes, .. } => {
                self.losses.clone_from(notes)
            }
            RunEvent::ItemFailed { reason, .. } => {
                self.status = PhaseStatus::Failed;
                self.message = Some(reason.clone());
                self.rest(now());
            }
            RunEvent::RetryScheduled { attempt, attempts, reason, .. } => {
                self.status = PhaseStatus::Waiting;
                self.message = Some(format!("attempt {attempt} of {attempts} follows: {reason}"));
                self.rest(now());
            }
            RunEvent::RetryDelayed { until, .. } => {
                let after = self.message.take().unwrap_or_default();
                self.message = Some(format!("until {until}: {after}"));
            }
            RunEvent::Verdict { verdict, failing, .. } => {
                self.failing.clone_from(failing);
                self.message = Some(match failing.as_slice() {
                    [] => verdict.sentence(),
                    failing => format!("{} (failing: {})", verdict.sentence(), failing.join(", ")),
                });
                self.verdict = Some(verdict.clone());
                if matches!(verdict.outcome, cliq_protocol::Outcome::Route(_)) {
                    self.status = PhaseStatus::Waiting;
                    self.rest(now());
                }
            }
            RunEvent::PhaseCompleted { .. } => {
                self.status = PhaseStatus::Completed;
                self.rest(now());
            }
            RunEvent::CompletionContradicted { reason, .. } => self.contradicted = Some(reason.clone()),
            RunEvent::PhaseEscalated { reason, .. } => {
                self.status = PhaseStatus::Escalated;
                self.message = Some(reason.clone());
                self.rest(now());
            }
            RunEvent::PhaseReset { .. } => self.status = PhaseStatus::Pending,
            RunEvent::PhaseStopped { .. } => {
                self.status = PhaseStatus::Stopped;
                self.rest(now());
            }
            RunEvent::RunStarted { .. }
            | RunEvent::RunInterrupted
            | RunEvent::RunResumed { .. }
            | RunEvent::CommandFinished { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunIdle { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::SteeringDelivered { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::Draining { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Warning { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. }
            | RunEvent::RunFinished { .. } => {}
        }
    }
}
