//! The timeline of a run from its stored events: it is there when the workspace is gone.

use std::sync::Arc;

use cliq_model::{Cause, LogEvent, QueueRequest, Run, RunEventRow, ServerEvent, Setback};
use cliq_orchestrator::{PipelineStatus, Record, RunEvent};
use cliq_protocol::{Outcome, Timestamp};
use maud::{Markup, html};

use crate::text::shown;
use cliq_web::Core;
use cliq_web::Problem;

/// The most events that are shown: the newest.
const SHOWN: i64 = 200;

/// The timeline, newest last.
pub(super) async fn of(core: &Arc<Core>, run: &Run) -> Result<Markup, Problem> {
    let first = (run.last_event - SHOWN).max(0);
    let rows = core.runs.run_events(&run.id, first, u32::try_from(SHOWN).unwrap_or(u32::MAX)).await?;
    let begin = run.queued_at;
    let is_clear = run.caveats.is_empty();
    let steps: Vec<Markup> = rows.iter().filter_map(|row| step(row, begin, is_clear)).collect();
    Ok(html! {
        @if first > 0 { p.quiet { "The last " (SHOWN) " of " (run.last_event) " events; the API has all." } }
        ol.timeline { @for step in steps { (step) } }
    })
}

fn step(row: &RunEventRow, begin: Timestamp, is_clear: bool) -> Option<Markup> {
    let (weight, text) = match LogEvent::parse(&row.data) {
        LogEvent::Server(event) => describe(&event)?,
        LogEvent::Other => {
            // Events of a newer version are on the page of raw events only.
            let record = Record::decode(row.data.as_bytes()).ok()?;
            (weight(&record.event, is_clear)?, record.event.describe())
        }
    };
    let at = row.ts.time().map_or(0, |at| (at.unix_millis() - begin.unix_millis()).max(0));
    Some(html! {
        li class=(weight) {
            time datetime=(row.ts) title=(row.ts) { "+" (cliq_project::internals::duration(at)) }
            " " (shown(text.as_bytes()))
        }
    })
}

/// Returns the significance of an event for the outcome, or `None` if it is too small. `is_clear` tells whether the run has no caveat.
#[deny(clippy::wildcard_enum_match_arm)]
fn weight(event: &RunEvent, is_clear: bool) -> Option<&'static str> {
    Some(match event {
        RunEvent::CommandStarted { .. }
        | RunEvent::UsageReported { .. }
        | RunEvent::WorkspaceChanged { .. }
        | RunEvent::AgentCompleted { .. } => return None,
        RunEvent::PhaseCompleted { .. } => "good",
        RunEvent::Verdict { verdict, .. } => match verdict.outcome {
            Outcome::Pass => "good",
            Outcome::Route(_) | Outcome::Escalate => "notable",
        },
        RunEvent::PhaseEscalated { .. }
        | RunEvent::WorkFailed { .. }
        | RunEvent::OrchestratorFailed { .. } => "bad",
        RunEvent::AccessRefused { .. }
        | RunEvent::Warning { .. }
        | RunEvent::CompletionContradicted { .. }
        | RunEvent::VerdictRejected { .. }
        | RunEvent::CancelRequested { .. } => "notable",
        RunEvent::RunFinished { status, .. } => match status {
            PipelineStatus::Completed if is_clear => "good",
            PipelineStatus::Completed => "notable",
            PipelineStatus::Escalated | PipelineStatus::Failed | PipelineStatus::Cancelled => "bad",
        },
        RunEvent::RunStarted { .. }
        | RunEvent::RunInterrupted
        | RunEvent::RunResumed { .. }
        | RunEvent::PhaseStarted { .. }
        | RunEvent::AgentStarted { .. }
        | RunEvent::CommandFinished { .. }
        | RunEvent::CommandsFinished { .. }
        | RunEvent::Progress { .. }
        | RunEvent::ReviewWaits { .. }
        | RunEvent::ReviewIdle { .. }
        | RunEvent::PhaseSandboxed { .. }
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
        | RunEvent::PhaseReset { .. }
        | RunEvent::PhaseStopped { .. }
        | RunEvent::Draining { .. } => "usual",
        _ => "usual",
    })
}

/// Returns the significance and the description of an event of the server, or `None` if the timeline leaves it out.
#[deny(clippy::wildcard_enum_match_arm)]
fn describe(event: &ServerEvent) -> Option<(&'static str, String)> {
    Some(match event {
        ServerEvent::RunQueued { caller, request, .. } => match request {
            QueueRequest::Resume { .. } => ("notable", format!("{caller} resumed the run")),
            QueueRequest::New | QueueRequest::Trigger { .. } => {
                ("usual", format!("{caller} asked for the run"))
            }
        },
        ServerEvent::RunDispatched { .. } => ("usual", "the run got a place".to_owned()),
        ServerEvent::RunWaiting { until, .. } => {
            ("notable", format!("the run is parked until {until}, or an answer"))
        }
        ServerEvent::RunWoken { cause: Cause::Time } => {
            ("usual", "the run continues: a reminder or a deadline is due".to_owned())
        }
        ServerEvent::RunWoken { cause: Cause::Review { review } } => {
            ("usual", format!("the run continues: review {review} is over"))
        }
        ServerEvent::RunRequeued(_) => ("notable", "the run waits again: its project was busy".to_owned()),
        ServerEvent::CancelRequestedByCaller { caller, .. } => {
            ("notable", format!("{caller} asked to cancel the run"))
        }
        ServerEvent::OrchestratorDied(Setback { reason, state }) => {
            ("bad", format!("{reason}; the run is {}", state.as_str()))
        }
        ServerEvent::RunNotStarted(setback) => ("bad", setback.reason.clone()),
        ServerEvent::RunNotResumed(Setback { reason, state }) => {
            ("notable", format!("the run was not resumed, and stays {}: {reason}", state.as_str()))
        }
        ServerEvent::RunTakenOver { .. }
        | ServerEvent::SteeringStored { .. }
        | ServerEvent::WorkspacePrepared(_)
        | ServerEvent::PhaseOutput(_)
        | ServerEvent::TaskFinished { .. } => return None,
    })
}
