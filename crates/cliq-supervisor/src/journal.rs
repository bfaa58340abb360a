//! Meaning of journal records for the stored run.

// A new event has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use cliq_fs::CliqDir;
use cliq_model::{LifecycleEffect, LifecycleEvent, NewRunEvent, Run, RunOutcome, RunTotals};
use cliq_orchestrator::{PipelineStatus, Record, RunEvent, RunView};
use cliq_project::{Host, Project, RunStatus};
use cliq_protocol::{PhaseName, TeamName, Timestamp};
use serde_json::{Value, json};

/// Whether a journal is of this run.
pub(crate) fn is_of(records: &[Record], run: &Run) -> bool {
    records.iter().any(
        |record| matches!(&record.event, RunEvent::RunStarted { run_id, .. } if run_id == run.id.as_str()),
    )
}

/// The phase whose agent has printed its last with an event.
pub(crate) fn ended_work(event: &RunEvent) -> Option<&PhaseName> {
    match event {
        RunEvent::AgentCompleted { phase, .. }
        | RunEvent::WorkFailed { phase, .. }
        | RunEvent::PhaseCompleted { phase }
        | RunEvent::PhaseEscalated { phase, .. }
        | RunEvent::PhaseStopped { phase } => Some(phase),
        RunEvent::RunStarted { .. }
        | RunEvent::RunInterrupted
        | RunEvent::RunResumed { .. }
        | RunEvent::PhaseStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::CommandStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::CommandsFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::UsageReported { .. }
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
        | RunEvent::Draining { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::OrchestratorFailed { .. }
        | RunEvent::RunFinished { .. } => None,
        _ => None,
    }
}

/// An event of the journal as it is stored.
pub(crate) fn stored(record: &Record) -> NewRunEvent {
    let line = String::from_utf8(record.encode()).unwrap_or_default();
    let value: Value = serde_json::from_str(&line).unwrap_or_default();
    let kind = value["event"].as_str().unwrap_or("unknown").to_owned();
    NewRunEvent::of_journal(record.ts.clone(), kind, line.trim_end().to_owned())
}

/// A line of the journal with the details for those who delegated the run.
pub(crate) fn stored_with_details(record: &Record, event: &Value) -> NewRunEvent {
    let kind = event["event"].as_str().unwrap_or("unknown").to_owned();
    NewRunEvent::of_journal(record.ts.clone(), kind, event.to_string())
}

/// The end that the server records for a run without an orchestrator, in the form of the journal.
pub(crate) fn ended(status: PipelineStatus, reason: Option<String>) -> NewRunEvent {
    let event = RunEvent::RunFinished { status, reason, phase: None };
    stored(&Record::new(cliq_fs::now(), event))
}

/// Applies an event of the journal to the run.
pub(crate) fn apply(run: &mut Run, event: &RunEvent, ts: Timestamp) -> Vec<LifecycleEffect> {
    let step = match event {
        RunEvent::RunStarted { team, title, .. } => {
            // The name of a checked team: nothing else is in a journal.
            if let Ok(team) = TeamName::parse(team) {
                run.team = team;
            }
            run.title = title.clone().unwrap_or_else(|| team.clone());
            run.started_at = Some(ts);
            // A run that had not begun before may have been resumed.
            (run.ended_at, run.phase) = (None, None);
            // It may have been cancelled before its start was read: the reason of its caller stays.
            if !run.life.cancel_requested {
                run.reason = None;
            }
            LifecycleEvent::Began
        }
        RunEvent::RunResumed { .. } => {
            (run.wake_at, run.woken_at) = (None, None);
            run.ended_at = None;
            run.caveats.clear();
            if !run.life.cancel_requested {
                run.reason = None;
            }
            run.phase = None;
            if run.life.state.is_active() { LifecycleEvent::Began } else { LifecycleEvent::TakenUp }
        }
        RunEvent::RunFinished { status, reason, phase } => {
            run.ended_at = Some(ts);
            // The server knows who asked for a cancellation, and why.
            let is_known =
                *status == PipelineStatus::Cancelled && reason.is_none() && run.life.cancel_requested;
            if !is_known {
                run.reason.clone_from(reason);
            }
            run.phase = phase.as_ref().map(ToString::to_string);
            LifecycleEvent::Ended(match status {
                PipelineStatus::Completed => RunOutcome::Completed,
                PipelineStatus::Escalated => RunOutcome::Escalated,
                PipelineStatus::Failed => RunOutcome::Failed,
                PipelineStatus::Cancelled => RunOutcome::Cancelled,
            })
        }
        RunEvent::RunInterrupted
        | RunEvent::PhaseStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::CommandStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::CommandsFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::ReviewWaits { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseSandboxed { .. }
        | RunEvent::AccessRefused { .. }
        | RunEvent::RunIdle { .. }
        | RunEvent::RunParked { .. }
        | RunEvent::SteeringReceived { .. }
        | RunEvent::SteeringDelivered { .. }
        | RunEvent::NotifyRequested { .. }
        | RunEvent::AgentCompleted { .. }
        | RunEvent::WorkFailed { .. }
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
        | RunEvent::PhaseCompleted { .. }
        | RunEvent::PhaseEscalated { .. }
        | RunEvent::PhaseReset { .. }
        | RunEvent::PhaseStopped { .. }
        | RunEvent::Draining { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::OrchestratorFailed { .. } => return Vec::new(),
        _ => return Vec::new(),
    };
    run.life.step(step).unwrap_or_default()
}

pub(crate) fn totals(view: &RunView) -> RunTotals {
    let Some(usage) = view.usage() else { return RunTotals::default() };
    RunTotals { tokens_in: usage.tokens_in, tokens_out: usage.tokens_out, cost_usd: usage.cost_usd }
}

/// Records how many phases of a run are done, and the size of its changes.
pub(crate) fn record_progress(run: &mut Run, view: &RunView) {
    run.phases_all = view.phase_count.map_or(0, u64::from);
    run.phases_done = u64::from(view.done_count());
    run.changed = view.changed.map(Into::into);
}

/// Returns the document of `cliq status --json`. Runs of team phases are included if the workspace still has them.
pub fn status_document(host: &Host, run: &Run, view: &RunView) -> Value {
    match CliqDir::open(&run.workspace) {
        Ok(dir) => {
            let project = Project::of(dir, host.clone());
            RunStatus::new(view, &project).document()
        }
        Err(_) => json!(view),
    }
}
