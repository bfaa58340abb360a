//! Events of a run for callers of A2A: lines of the journal with the details that a caller cannot look up.

use cliq_orchestrator::{Record, RunEvent, RunView};
use cliq_protocol::PhaseName;
use serde_json::{Value, json};

/// A line of the journal as a JSON object. A verdict gets the commands that it was based on, a completed phase its kind, iteration
/// and outcome. An event of a run that waits for a review says so (`input_required`). `view` is the run after the event.
#[must_use]
pub fn task_event(record: &Record, view: &RunView) -> Value {
    let mut event: Value = serde_json::from_slice(&record.encode()).unwrap_or_default();
    let find = |name: &PhaseName| view.phases.iter().find(|phase| phase.name == *name);
    match &record.event {
        RunEvent::Verdict { gate, .. } => {
            event["commands"] = json!(find(gate).map(|phase| phase.commands.as_slice()).unwrap_or_default());
        }
        RunEvent::PhaseCompleted { phase } => {
            if let Some(phase) = find(phase) {
                event["phase_type"] = json!(phase.kind);
                event["iteration"] = phase.iterations.into();
                event["outcome"] = if phase.kind.is_gate() { "PASS" } else { "done" }.into();
            }
        }
        _ => {}
    }
    // For the caller the whole task waits, even while other phases work.
    if view.phases.iter().any(|phase| phase.review.is_some()) {
        event["input_required"] = true.into();
    }
    event
}
