//! Translation of the events of a run into updates of its task (docs/a2a.md). Pure: an update follows from one event alone.

// A new event has to be translated or left out by name.
#![deny(clippy::wildcard_enum_match_arm)]

mod commands;
mod journal;

use cliq_a2a::{TaskContext, TaskState, Update, UpdateDraft, Version, wire};
use cliq_model::{LogEvent, RunState, ServerEvent, Setback, TaskOutcome, ToolCheck};
use cliq_orchestrator::RunEvent;
use cliq_project::internals::TaskDetails;
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the updates of a stored event: an event of the server, or a line of the journal with its details. `number` is that of the
/// event. Events of a newer version have none.
pub(crate) fn updates_of(context: &TaskContext, number: i64, event: &Value) -> Vec<Update> {
    let mut drafts = match LogEvent::of(event) {
        LogEvent::Server(event) => of_server(context, *event),
        LogEvent::Other => {
            let details = TaskDetails::deserialize(event).unwrap_or_default();
            RunEvent::deserialize(event)
                .map_or_else(|_| Vec::new(), |event| journal::drafts(context, &event, &details))
        }
    };
    // For the caller the whole task waits while a review does, even if other phases work.
    if event["input_required"] == true {
        for draft in &mut drafts {
            if let UpdateDraft::Status { state, .. } = draft
                && *state == TaskState::Working
            {
                *state = TaskState::InputRequired;
            }
        }
    }
    context.updates(number, event["ts"].as_str(), drafts)
}

/// Translates an event of the server.
fn of_server(context: &TaskContext, event: ServerEvent) -> Vec<UpdateDraft> {
    let instance = &context.instance_id;
    match event {
        ServerEvent::RunDispatched { .. } => {
            let text = format!("Pipeline started — team: {}", context.team);
            vec![UpdateDraft::Status { state: TaskState::Working, text, data: None }]
        }
        ServerEvent::WorkspacePrepared(check) => {
            let data = json!({"event": "workspace_initialized", "instance_id": instance, "team": context.team,
                "req_key": check.req_key});
            let mut drafts = vec![UpdateDraft::working("Workspace initialized".to_owned(), data)];
            drafts.extend(preflight(&check.tools));
            drafts
        }
        ServerEvent::PhaseOutput(output) => {
            let text = output.lines.join("\n");
            let mut data = json!({"event": "phase_output", "phase": output.phase, "offset": output.offset, "lines": output.lines});
            if let Some(source) = output.source {
                data["source"] = json!(source);
            }
            if !output.events.is_empty() {
                data["events"] = output.events.into();
            }
            vec![UpdateDraft::working(text, data)]
        }
        ServerEvent::OrchestratorDied(Setback { state: RunState::Failed, .. }) => Vec::new(),
        ServerEvent::OrchestratorDied(Setback { reason, .. }) => {
            let data = json!({"event": "on_interrupted", "reason": reason, "instance_id": instance});
            vec![UpdateDraft::working("Pipeline interrupted; it goes on".to_owned(), data)]
        }
        ServerEvent::TaskFinished { status, reason, phase, artifacts } => {
            finished(context, status, reason.as_deref(), phase.as_deref(), &artifacts)
        }
        // The state of a task in the queue is that of its run.
        ServerEvent::RunQueued { .. }
        | ServerEvent::RunTakenOver { .. }
        | ServerEvent::RunWaiting { .. }
        | ServerEvent::RunWoken { .. }
        | ServerEvent::RunRequeued(_)
        | ServerEvent::CancelRequestedByCaller { .. }
        | ServerEvent::RunNotStarted(_)
        | ServerEvent::RunNotResumed(_)
        | ServerEvent::SteeringStored { .. } => Vec::new(),
    }
}

/// Translates the result of the program check before the run.
fn preflight(tools: &[ToolCheck]) -> Vec<UpdateDraft> {
    let names: Vec<&str> = tools.iter().map(|check| check.tool.as_str()).collect();
    let passed = tools.iter().filter(|check| check.available).count();
    let verdict = if passed == tools.len() { "PASS" } else { "ESCALATE" };
    let started = json!({"type": "cliq:preflight_started", "tools": names});
    let mut drafts = vec![UpdateDraft::working("Preflight started".to_owned(), started)];
    drafts.extend(tools.iter().map(|ToolCheck { tool, available }| {
        let word = if *available { "available" } else { "not on the PATH" };
        let data = json!({"type": "cliq:tool_check", "tool": tool, "available": available});
        UpdateDraft::working(format!("{tool}: {word}"), data)
    }));
    let data = json!({"type": "cliq:preflight_completed", "passed": passed, "total": tools.len(), "verdict": verdict});
    drafts.push(UpdateDraft::working(format!("Preflight: {verdict}"), data));
    drafts
}

/// Translates the end: artifacts first, since a stream closes with the final state.
fn finished(
    context: &TaskContext,
    status: TaskOutcome,
    reason: Option<&str>,
    phase: Option<&str>,
    artifacts: &[Value],
) -> Vec<UpdateDraft> {
    let mut drafts: Vec<UpdateDraft> = artifacts
        .iter()
        .filter_map(|artifact| wire::read_artifact(Version::V1_0, artifact).ok().map(UpdateDraft::Artifact))
        .collect();
    let reason = reason.unwrap_or_default();
    let with = |event_name: &str| json!({"event": event_name, "reason": reason, "phase": phase, "instance_id": context.instance_id});
    let (state, text, data) = match status {
        TaskOutcome::Completed => (TaskState::Completed, "Pipeline completed".to_owned(), None),
        TaskOutcome::Cancelled => {
            (TaskState::Canceled, "Pipeline cancelled".to_owned(), Some(with("on_cancel")))
        }
        TaskOutcome::Failed => {
            (TaskState::Failed, format!("Pipeline failed: {reason}"), Some(with("on_fail")))
        }
    };
    drafts.push(UpdateDraft::Status { state, text, data });
    drafts
}

#[cfg(test)]
mod tests;
