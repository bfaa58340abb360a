//! Updates of the lines of a journal.

use cliq_a2a::{TaskContext, TaskState, UpdateDraft};
use cliq_orchestrator::RunEvent;
use cliq_project::internals::TaskDetails;
use cliq_protocol::{Outcome, PhaseName, WaitingReview};
use serde_json::json;

use super::commands::{self, Summary};

/// Translates a line of the journal.
pub(super) fn drafts(context: &TaskContext, event: &RunEvent, details: &TaskDetails) -> Vec<UpdateDraft> {
    let instance = &context.instance_id;
    match event {
        RunEvent::PhaseStarted { phase, kind, iteration, .. } => {
            let data = json!({"event": "on_phase_start", "phase": phase, "phase_type": kind,
                "instance_id": instance, "iteration": iteration});
            vec![UpdateDraft::working(format!("Running: {phase}"), data)]
        }
        RunEvent::CommandStarted { phase, command } => vec![commands::started(command, phase)],
        RunEvent::CommandFinished { phase, result } => vec![commands::completed(result, phase)],
        RunEvent::CommandsFinished { phase, iteration, results, max_iterations, reported } => {
            let (iteration, max_iterations, is_reported) = (*iteration, *max_iterations, *reported);
            Summary { phase, results, iteration, max_iterations, is_reported }.drafts()
        }
        RunEvent::Verdict { gate, iteration, max_iterations, verdict, failing } => {
            let mut data = json!({"event": "on_gate_verdict", "gate": gate, "iteration": iteration,
                "max_iterations": max_iterations, "commands": details.commands.as_deref().unwrap_or_default(),
                "verdict": verdict, "instance_id": instance});
            let outcome = match verdict.outcome {
                Outcome::Pass => "PASS",
                Outcome::Route(_) => "ROUTE",
                Outcome::Escalate => "ESCALATE",
            };
            let mut text = format!("Gate {gate}: {outcome}");
            // A PASS with optional commands that fail.
            if !failing.is_empty() {
                data["failing"] = json!(failing);
                text = format!("{text} (failing: {})", failing.join(", "));
            }
            vec![UpdateDraft::working(text, data)]
        }
        RunEvent::PhaseCompleted { phase } => {
            let data = json!({"event": "on_phase_complete", "phase": phase, "phase_type": details.phase_type,
                "outcome": details.outcome.as_deref().unwrap_or("done"), "iteration": details.iteration,
                "instance_id": instance});
            vec![UpdateDraft::working(format!("Phase completed: {phase}"), data)]
        }
        RunEvent::PhaseSkipped { phase, kind, reason } => {
            let data = json!({"event": "on_phase_skip", "phase": phase, "phase_type": kind, "reason": reason,
                "instance_id": instance});
            vec![UpdateDraft::working(format!("Phase skipped: {phase}"), data)]
        }
        RunEvent::ItemsStarted { phase, items, starting } => {
            let data = json!({"event": "on_items_start", "phase": phase, "items": items, "starting": starting,
                "instance_id": instance});
            vec![UpdateDraft::working(format!("Running: {phase}, {starting} of {items} items"), data)]
        }
        RunEvent::ItemFailed { phase, reason } => {
            let data =
                json!({"event": "on_item_fail", "phase": phase, "reason": reason, "instance_id": instance});
            vec![UpdateDraft::working(format!("Item failed: {phase}: {reason}"), data)]
        }
        RunEvent::RetryScheduled { phase, attempt, attempts, delay_ms, reason } => {
            let data = json!({"event": "on_retry", "phase": phase, "attempt": attempt, "attempts": attempts,
                "delay_ms": delay_ms, "reason": reason, "instance_id": instance});
            let text = format!("Attempt {attempt} of {attempts} follows: {phase}: {reason}");
            vec![UpdateDraft::working(text, data)]
        }
        RunEvent::MergeConflict { phase, item, files, .. } => {
            let data = json!({"event": "on_merge_conflict", "phase": phase, "item": item, "files": files,
                "instance_id": instance});
            vec![UpdateDraft::working(format!("Merge conflict: {phase}, item {item}"), data)]
        }
        RunEvent::PhaseEscalated { phase, reason } => {
            let data =
                json!({"event": "on_escalate", "phase": phase, "reason": reason, "instance_id": instance});
            vec![UpdateDraft::working(format!("Pipeline escalated: {phase}: {reason}"), data)]
        }
        // The phase goes on.
        RunEvent::ReviewWaits { phase, review, .. } if review.reviewers.is_empty() => {
            let over = || format!("review {} is over", review.id);
            let answer = review.answer.clone().unwrap_or_else(over);
            let data = json!({"event": "hug_answered", "phase": phase, "review": review.id, "instance_id": instance});
            vec![UpdateDraft::working(format!("{phase}: {answer}"), data)]
        }
        RunEvent::ReviewWaits { phase, iteration, review } => {
            vec![question(context, phase, *iteration, review)]
        }
        RunEvent::RunResumed { .. } => {
            let data = json!({"event": "on_resume", "instance_id": instance});
            vec![UpdateDraft::working("Pipeline resumed".to_owned(), data)]
        }
        // The server reports start and end of the task by events of its own; the rest is of no use to a caller.
        RunEvent::RunStarted { .. }
        | RunEvent::RunInterrupted
        | RunEvent::RunFinished { .. }
        | RunEvent::RunIdle { .. }
        | RunEvent::RunParked { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::AgentCompleted { .. }
        | RunEvent::WorkFailed { .. }
        | RunEvent::Progress { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseSandboxed { .. }
        | RunEvent::AccessRefused { .. }
        | RunEvent::SteeringReceived { .. }
        | RunEvent::SteeringDelivered { .. }
        | RunEvent::NotifyRequested { .. }
        | RunEvent::PhaseDecided { .. }
        | RunEvent::ItemsMerged { .. }
        | RunEvent::RetryDelayed { .. }
        | RunEvent::RetryDue { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::PhaseReset { .. }
        | RunEvent::PhaseStopped { .. }
        | RunEvent::Draining { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::OrchestratorFailed { .. } => Vec::new(),
        _ => Vec::new(),
    }
}

/// Asks the caller for the answer to a review.
fn question(context: &TaskContext, phase: &PhaseName, iteration: u32, review: &WaitingReview) -> UpdateDraft {
    let WaitingReview { id, reviewers, since, until, route_targets, inputs, asks, .. } = review;
    let mut data = json!({"event": "hug_review", "phase": phase, "iteration": iteration, "review": id,
        "reviewers": reviewers, "since": since, "until": until, "route_targets": route_targets,
        "inputs": inputs, "instance_id": context.instance_id});
    let names = reviewers.join(", ");
    let text = match asks {
        Some(asks) => {
            data["asks"] = json!(asks);
            format!(
                "{phase}: {asks}. {names} decides. Answer with data {{\"verdict\": \"approve\" | \"reject\"}}"
            )
        }
        None => format!(
            "Review needed: {phase}, by {names}. Answer with data {{\"verdict\": \"approve\" | \"request-changes\" | \"reject\"}}"
        ),
    };
    UpdateDraft::Status { state: TaskState::InputRequired, text, data: Some(data) }
}
