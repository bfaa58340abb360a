//! Log lines of a run with its spans: a run, its phases, activations of agents and commands (docs/diagnostics.md). Made from the
//! events of the run alone, and only if a subscriber is interested. Exported traces are made elsewhere (docs/telemetry.md).

use std::collections::HashMap;

use cliq_protocol::{Outcome, PhaseName, RunId, TraceId};
use tracing::level_filters::LevelFilter;
use tracing::{Span, field};

use crate::events::{Record, RunEvent};
use crate::plan::RunPlan;
use crate::view::RunView;

/// The open spans of a run.
#[derive(Debug, Default)]
pub(super) struct Spans {
    run: Option<Span>,
    phases: HashMap<PhaseName, Span>,
    activations: HashMap<PhaseName, Span>,
    commands: HashMap<(PhaseName, String), Span>,
}

impl Spans {
    /// Opens and closes spans as an event says. `view` has taken the event already.
    #[deny(clippy::wildcard_enum_match_arm)]
    pub(super) fn observe(
        &mut self,
        record: &Record,
        view: &RunView,
        plan: &RunPlan,
        trace: Option<TraceId>,
    ) {
        // One comparison if there is no subscriber.
        if LevelFilter::current() == LevelFilter::OFF {
            return;
        }
        let run = || self.run.clone().unwrap_or_else(Span::none);
        match &record.event {
            RunEvent::RunStarted { .. } | RunEvent::RunResumed { .. } => {
                let resumed = matches!(record.event, RunEvent::RunResumed { .. });
                self.run = Some(tracing::info_span!(
                    "run",
                    run_id = view.run_id.as_ref().map(RunId::as_str).unwrap_or_default(),
                    team = view.team.as_str(),
                    trace_id = trace.map(|trace| trace.to_string()),
                    resumed,
                    outcome = field::Empty,
                    reason = field::Empty,
                    tokens_in = field::Empty,
                    tokens_out = field::Empty,
                    cost_usd = field::Empty,
                ));
            }
            RunEvent::PhaseStarted { phase, kind, iteration, routed_by } => {
                let spec = plan.workflow.find(phase.as_str()).map(|id| plan.workflow.phase(id));
                let agent = spec.and_then(|spec| plan.agent_of(spec)).unwrap_or_default();
                let model = spec.and_then(|spec| spec.model.as_deref()).unwrap_or_default();
                let span = tracing::info_span!(
                    parent: &run(), "phase", phase = phase.as_str(),
                    team = view.team.as_str(), trace_id = trace.map(|trace| trace.to_string()), kind = kind.as_str(), agent, model, iteration,
                    routed_by = routed_by.as_ref().map(PhaseName::as_str), outcome = field::Empty,
                    reason = field::Empty, tokens_in = field::Empty, tokens_out = field::Empty,
                    cost_usd = field::Empty,
                );
                self.phases.insert(phase.clone(), span);
            }
            RunEvent::AgentStarted { phase, iteration, agent, pid } => {
                let span = tracing::info_span!(
                    parent: self.phases.get(phase).unwrap_or(&Span::none()), "activation", phase = phase.as_str(), agent, iteration, pid,
                );
                self.activations.insert(phase.clone(), span);
            }
            RunEvent::AgentCompleted { phase, .. } | RunEvent::WorkFailed { phase, .. } => {
                self.activations.remove(phase);
            }
            RunEvent::UsageReported { phase, usage, .. } => {
                let Some(span) = self.phases.get(phase) else { return };
                span.record("tokens_in", usage.tokens_in).record("tokens_out", usage.tokens_out);
                if let Some(cost) = usage.cost_usd {
                    span.record("cost_usd", cost);
                }
                if let Some(model) = &usage.model {
                    span.record("model", model.as_str());
                }
            }
            RunEvent::CommandStarted { phase, command } => {
                let span = tracing::info_span!(
                    parent: self.phases.get(phase).unwrap_or(&Span::none()), "command", phase = phase.as_str(), command,
                    passed = field::Empty, exit_code = field::Empty,
                );
                self.commands.insert((phase.clone(), command.clone()), span);
            }
            RunEvent::CommandFinished { phase, result } => {
                // Of a command that runs in several repositories, each has its own result.
                if let Some(span) = self.commands.remove(&(phase.clone(), result.name.clone())) {
                    span.record("passed", result.pass);
                    if let Some(code) = result.exit_code {
                        span.record("exit_code", code);
                    }
                }
            }
            RunEvent::Verdict { gate, verdict, .. } if matches!(verdict.outcome, Outcome::Route(_)) => {
                self.close(gate, "routed", Some(&verdict.sentence()));
            }
            RunEvent::PhaseCompleted { phase } => self.close(phase, "completed", None),
            RunEvent::PhaseEscalated { phase, reason } => self.close(phase, "escalated", Some(reason)),
            RunEvent::PhaseStopped { phase } => self.close(phase, "stopped", None),
            RunEvent::CompletionContradicted { phase, reason } => {
                let span = self.phases.get(phase).cloned().unwrap_or_else(run);
                tracing::warn!(parent: &span, "{reason}");
            }
            RunEvent::Warning { phase, message } => {
                let span =
                    phase.as_ref().and_then(|phase| self.phases.get(phase)).cloned().unwrap_or_else(run);
                tracing::warn!(parent: &span, "{message}");
            }
            RunEvent::RunFinished { status, reason, .. } => {
                let Some(span) = self.run.take() else { return };
                self.phases.clear();
                span.record("outcome", status.as_str());
                if let Some(reason) = reason {
                    span.record("reason", reason.as_str());
                }
                if let Some(usage) = view.usage() {
                    span.record("tokens_in", usage.tokens_in).record("tokens_out", usage.tokens_out);
                    if let Some(cost) = usage.cost_usd {
                        span.record("cost_usd", cost);
                    }
                }
                tracing::info!(parent: &span, "{}", record.event.describe());
            }
            RunEvent::RunInterrupted
            | RunEvent::CommandsFinished { .. }
            | RunEvent::Progress { .. }
            | RunEvent::ReviewWaits { .. }
            | RunEvent::ReviewIdle { .. }
            | RunEvent::PhaseSandboxed { .. }
            | RunEvent::AccessRefused { .. }
            | RunEvent::RunIdle { .. }
            | RunEvent::RunParked { .. }
            | RunEvent::SteeringReceived { .. }
            | RunEvent::SteeringDelivered { .. }
            | RunEvent::NotifyRequested { .. }
            | RunEvent::PhaseDecided { .. }
            | RunEvent::PhaseSkipped { .. }
            | RunEvent::ItemsStarted { .. }
            | RunEvent::ItemFailed { .. }
            | RunEvent::RetryScheduled { .. }
            | RunEvent::MergeConflict { .. }
            | RunEvent::ItemsMerged { .. }
            | RunEvent::RetryDelayed { .. }
            | RunEvent::RetryDue { .. }
            | RunEvent::Verdict { .. }
            | RunEvent::VerdictRejected { .. }
            | RunEvent::PhaseReset { .. }
            | RunEvent::WorkspaceChanged { .. }
            | RunEvent::Draining { .. }
            | RunEvent::CancelRequested { .. }
            | RunEvent::OrchestratorFailed { .. } => {}
        }
    }

    fn close(&mut self, phase: &PhaseName, outcome: &str, reason: Option<&str>) {
        self.activations.remove(phase);
        let Some(span) = self.phases.remove(phase) else { return };
        span.record("outcome", outcome);
        if let Some(reason) = reason {
            span.record("reason", reason);
        }
        tracing::info!(parent: &span, outcome, "phase {phase} ended");
    }
}
