//! Events of a run for callers of A2A: lines of the journal with the details that a caller cannot look up.

use cliq_model::{ToolCheck, WorkspaceCheck};
use cliq_orchestrator::{Record, RunEvent, RunView};
use cliq_protocol::{CommandResult, PhaseKind, PhaseName};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
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

/// Details of a journal's line that its caller cannot look up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskDetails {
    /// Commands that a verdict is based on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<CommandResult>>,
    /// Type of a completed phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase_type: Option<PhaseKind>,
    /// Number of activations of a completed phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    /// Outcome of a completed phase: `PASS` of a gate, `done` of others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// Whether the run waits for a review. For the caller the whole task waits, even while other phases work.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub input_required: bool,
}

impl TaskDetails {
    /// Returns the details of an event. `view` is the run after it.
    #[must_use]
    pub fn of(event: &RunEvent, view: &RunView) -> Self {
        let find = |name: &PhaseName| view.phases.iter().find(|phase| phase.name == *name);
        let mut details = Self::default();
        if let RunEvent::Verdict { gate, .. } = event {
            details.commands = Some(find(gate).map(|phase| phase.commands.clone()).unwrap_or_default());
        }
        if let RunEvent::PhaseCompleted { phase } = event
            && let Some(phase) = find(phase)
        {
            details.phase_type = Some(phase.kind);
            details.iteration = Some(phase.iterations);
            details.outcome = Some(if phase.kind.is_gate() { "PASS" } else { "done" }.to_owned());
        }
        details.input_required = view.phases.iter().any(|phase| phase.review.is_some());
        details
    }
}

/// Returns a line of the journal with its details as a JSON object. `view` is the run after the event.
#[must_use]
pub fn task_event(record: &Record, view: &RunView) -> Value {
    let mut event: Value = serde_json::from_slice(&record.encode()).unwrap_or_default();
    let details = json!(TaskDetails::of(&record.event, view));
    if let (Some(event), Value::Object(details)) = (event.as_object_mut(), details) {
        event.extend(details);
    }
    event
}
