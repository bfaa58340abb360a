//! The timeline of a run from its stored events: it is there when the workspace is gone.

use std::sync::Arc;

use cliq_model::{Run, RunEventRow};
use cliq_orchestrator::{PipelineStatus, Record, RunEvent};
use cliq_protocol::Outcome;
use maud::{Markup, html};
use serde_json::Value;

use crate::text::shown;
use cliq_supervisor::clock;
use cliq_web::Core;
use cliq_web::Problem;

/// The most events that are shown: the newest.
const SHOWN: i64 = 200;

/// The timeline, newest last.
pub(super) async fn of(core: &Arc<Core>, run: &Run) -> Result<Markup, Problem> {
    let first = (run.last_event - SHOWN).max(0);
    let rows = core.runs.run_events(&run.id, first, u32::try_from(SHOWN).unwrap_or(u32::MAX)).await?;
    let begin = clock::millis(&run.queued_at).unwrap_or(0);
    let is_clear = run.caveats.is_empty();
    let steps: Vec<Markup> = rows.iter().filter_map(|row| step(row, begin, is_clear)).collect();
    Ok(html! {
        @if first > 0 { p.quiet { "The last " (SHOWN) " of " (run.last_event) " events; the API has all." } }
        ol.timeline { @for step in steps { (step) } }
    })
}

fn step(row: &RunEventRow, begin: i64, is_clear: bool) -> Option<Markup> {
    let (weight, text) = match Record::decode(row.data.as_bytes()) {
        Ok(record) => (weight(&record.event, is_clear)?, record.event.describe()),
        Err(_) => own(row)?,
    };
    let at = clock::millis(&row.ts).map_or(0, |at| (at - begin).max(0));
    Some(html! {
        li class=(weight) {
            time datetime=(row.ts) title=(row.ts) { "+" (cliq_project::duration(at)) }
            " " (shown(text.as_bytes()))
        }
    })
}

/// Returns the significance of an event for the outcome, or `None` if it is too small. `is_clear` tells whether the run has no caveat.
fn weight(event: &RunEvent, is_clear: bool) -> Option<&'static str> {
    Some(match event {
        RunEvent::CommandStarted { .. }
        | RunEvent::UsageReported { .. }
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
        | RunEvent::VerdictRejected { .. }
        | RunEvent::CancelRequested { .. } => "notable",
        RunEvent::RunFinished { status, .. } => match status {
            PipelineStatus::Completed if is_clear => "good",
            PipelineStatus::Completed => "notable",
            PipelineStatus::Escalated | PipelineStatus::Failed | PipelineStatus::Cancelled => "bad",
        },
        _ => "usual",
    })
}

/// An event of the server's own.
fn own(row: &RunEventRow) -> Option<(&'static str, String)> {
    let data: Value = serde_json::from_str(&row.data).unwrap_or_default();
    let text = |key: &str| data[key].as_str().unwrap_or_default().to_owned();
    Some(match row.kind.as_str() {
        "run_queued" if data["resume"] == true => ("notable", format!("{} resumed the run", text("caller"))),
        "run_queued" => ("usual", format!("{} asked for the run", text("caller"))),
        "run_dispatched" => ("usual", "the run got a place".to_owned()),
        "run_waiting" => ("notable", format!("the run is parked until {}, or an answer", text("until"))),
        "run_woken" if text("by") == "time" => {
            ("usual", "the run continues: a reminder or a deadline is due".to_owned())
        }
        "run_woken" => ("usual", format!("the run continues: review {} is over", text("review"))),
        "run_requeued" => ("notable", "the run waits again: its project was busy".to_owned()),
        "cancel_requested_by_caller" => ("notable", format!("{} asked to cancel the run", text("caller"))),
        "orchestrator_died" => ("bad", format!("{}; the run is {}", text("reason"), text("state"))),
        "run_not_started" => ("bad", text("reason")),
        "run_not_resumed" => {
            ("notable", format!("the run was not resumed, and stays {}: {}", text("state"), text("reason")))
        }
        _ => return None,
    })
}
