//! Events of a run for callers of A2A: lines of the journal with the details that a caller cannot look up.

use cliq_model::{ToolCheck, WorkspaceCheck};
use cliq_orchestrator::{Record, RunEvent, RunView};
use cliq_protocol::PhaseName;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};

use crate::Project;

/// Checks which of the team's programs are on the PATH, for the event of a task whose workspace is ready. `project` is `None` if the workspace has no project or no valid team.
#[must_use]
pub fn check_workspace(project: Option<&Project>, requirement: &str) -> WorkspaceCheck {
    let tools = project.and_then(|project| project.workflow().ok().map(|workflow| workflow.tools));
    let is_available =
        |tool: &str| project.is_some_and(|project| project.host().environment.find_program(tool).is_some());
    let tools = tools
        .unwrap_or_default()
        .into_iter()
        .map(|tool| ToolCheck { available: is_available(&tool), tool })
        .collect();
    let hash = digest(&SHA256, requirement.as_bytes());
    let req_key: String = hash.as_ref()[..6].iter().map(|byte| format!("{byte:02x}")).collect();
    WorkspaceCheck { req_key, tools }
}

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
