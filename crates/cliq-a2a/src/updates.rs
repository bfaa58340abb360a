//! The events of a run as updates of a task (docs/a2a.md).
//!
//! A task has no log of its own: its updates follow from the events of its run, each from one event, without anything else. The
//! same event gives the same updates at any time, to any reader.

use std::fmt;

use cliq_model::{LogEvent, RunState, ServerEvent, Setback, TaskOutcome, ToolCheck};
use serde_json::{Map, Value, json};

use crate::model::{Artifact, Message, Part, Role, Status, StreamItem, TaskState};
use crate::version::Version;
use crate::wire::read_artifact;

/// The task that a run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskContext {
    /// The task's id, which is the run's.
    pub task_id: String,
    /// The conversation.
    pub context_id: String,
    /// The name of the team.
    pub team: String,
    /// The id of this cliq (`server.a2a.instance_id`).
    pub instance_id: String,
}

/// The number of an update: that of the event, and its place among the updates of the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct EventNumber {
    /// The number of the run's event, from 1.
    pub event: i64,
    /// The place, from 0.
    pub index: u32,
}

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.event, self.index)
    }
}

impl EventNumber {
    /// Reads a number as a stream gave it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (event, index) = text.split_once('.')?;
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (digits(event) && digits(index)).then_some(())?;
        Some(Self { event: event.parse().ok()?, index: index.parse().ok()? })
    }
}

/// An update of a task.
#[derive(Debug, Clone, PartialEq)]
pub struct Update {
    /// Number of the update.
    pub number: EventNumber,
    /// Item of the stream.
    pub item: StreamItem,
}

/// An update without number and ids.
enum Draft {
    Status { state: TaskState, text: String, data: Option<Value> },
    Artifact(Artifact),
}

/// The updates of an event of a run: a line of its journal, or an event of the server (`docs/server.md`).
#[must_use]
pub fn updates_of(context: &TaskContext, number: i64, event: &Value) -> Vec<Update> {
    let ts = event["ts"].as_str().map(str::to_owned);
    let drafts = drafts(context, event);
    let update = |(index, draft)| {
        let number = EventNumber { event: number, index };
        let metadata = Some(Map::from_iter([("eventId".to_owned(), number.to_string().into())]));
        let (task_id, context_id) = (context.task_id.clone(), context.context_id.clone());
        let item = match draft {
            Draft::Status { state, text, data } => {
                let message = Message {
                    // The same each time that the event is read.
                    message_id: format!("{task_id}.{number}"),
                    context_id: Some(context_id.clone()),
                    task_id: Some(task_id.clone()),
                    role: Role::Agent,
                    parts: [Part::text(text)].into_iter().chain(data.map(Part::data)).collect(),
                    metadata: None,
                    extensions: Vec::new(),
                    reference_task_ids: Vec::new(),
                };
                let status = Status { state, message: Some(message), timestamp: ts.clone() };
                StreamItem::Status { task_id, context_id, status, metadata }
            }
            Draft::Artifact(artifact) => StreamItem::Artifact { task_id, context_id, artifact, metadata },
        };
        Update { number, item }
    };
    (0..).zip(drafts).map(update).collect()
}

fn working(text: String, data: Value) -> Draft {
    Draft::Status { state: TaskState::Working, text, data: Some(data) }
}

/// The updates of an event; while a review waits, the state is that the caller's input is required.
fn drafts(context: &TaskContext, event: &Value) -> Vec<Draft> {
    let mut drafts = match LogEvent::of(event) {
        LogEvent::Server(event) => server_drafts(context, *event),
        LogEvent::Other => journal_drafts(context, event),
    };
    if event["input_required"] == true {
        for draft in &mut drafts {
            if let Draft::Status { state, .. } = draft
                && *state == TaskState::Working
            {
                *state = TaskState::InputRequired;
            }
        }
    }
    drafts
}

/// Translates an event of the server.
#[deny(clippy::wildcard_enum_match_arm)]
fn server_drafts(context: &TaskContext, event: ServerEvent) -> Vec<Draft> {
    let instance = &context.instance_id;
    match event {
        ServerEvent::RunDispatched { .. } => {
            let text = format!("Pipeline started — team: {}", context.team);
            vec![Draft::Status { state: TaskState::Working, text, data: None }]
        }
        ServerEvent::WorkspacePrepared(check) => {
            let data = json!({"event": "workspace_initialized", "instance_id": instance, "team": context.team,
                "req_key": check.req_key});
            let mut drafts = vec![working("Workspace initialized".to_owned(), data)];
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
            vec![working(text, data)]
        }
        ServerEvent::OrchestratorDied(Setback { state: RunState::Failed, .. }) => Vec::new(),
        ServerEvent::OrchestratorDied(Setback { reason, .. }) => {
            let data = json!({"event": "on_interrupted", "reason": reason, "instance_id": instance});
            vec![working("Pipeline interrupted; it goes on".to_owned(), data)]
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

/// Translates a line of the journal.
fn journal_drafts(context: &TaskContext, event: &Value) -> Vec<Draft> {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let instance = &context.instance_id;
    let phase = text("phase");
    match text("event") {
        "phase_started" => {
            let data = json!({"event": "on_phase_start", "phase": phase, "phase_type": event["kind"],
                "instance_id": instance, "iteration": event["iteration"]});
            vec![working(format!("Running: {phase}"), data)]
        }
        "command_started" => vec![command_started(text("command"), phase)],
        "command_finished" => vec![command_completed(&event["result"], phase)],
        "commands_finished" => commands(event, phase),
        "verdict" => {
            let gate = text("gate");
            let outcome = event["verdict"]["outcome"].as_str().unwrap_or_default();
            let mut data = json!({"event": "on_gate_verdict", "gate": gate, "iteration": event["iteration"],
                "max_iterations": event["max_iterations"], "commands": event.get("commands").unwrap_or(&json!([])),
                "verdict": event["verdict"], "instance_id": instance});
            // A PASS with optional commands that fail.
            let failing: Vec<&str> =
                event["failing"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let mut text = format!("Gate {gate}: {outcome}");
            if !failing.is_empty() {
                data["failing"] = json!(failing);
                text = format!("{text} (failing: {})", failing.join(", "));
            }
            vec![working(text, data)]
        }
        "phase_completed" => {
            let data = json!({"event": "on_phase_complete", "phase": phase, "phase_type": event["phase_type"],
                "outcome": event.get("outcome").unwrap_or(&json!("done")), "iteration": event["iteration"],
                "instance_id": instance});
            vec![working(format!("Phase completed: {phase}"), data)]
        }
        "phase_skipped" | "items_started" | "item_failed" | "retry_scheduled" | "merge_conflict" => {
            vec![bounded_work(context, event)]
        }
        "phase_escalated" => {
            let reason = text("reason");
            let data =
                json!({"event": "on_escalate", "phase": phase, "reason": reason, "instance_id": instance});
            vec![working(format!("Pipeline escalated: {phase}: {reason}"), data)]
        }
        "review_waits" => {
            let review = &event["review"];
            let names: Vec<&str> =
                review["reviewers"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            let data = json!({"event": "hug_review", "phase": phase, "iteration": event["iteration"], "review": review["id"],
                "reviewers": names, "since": review["since"], "until": review["until"],
                "route_targets": review.get("route_targets").unwrap_or(&json!([])),
                "inputs": review.get("inputs").unwrap_or(&json!([])), "instance_id": instance});
            let text = format!(
                "Review needed: {phase}, by {}. Answer with data {{\"verdict\": \"approve\" | \"request-changes\" | \"reject\"}}",
                names.join(", ")
            );
            vec![Draft::Status { state: TaskState::InputRequired, text, data: Some(data) }]
        }
        "run_resumed" => {
            vec![working(
                "Pipeline resumed".to_owned(),
                json!({"event": "on_resume", "instance_id": instance}),
            )]
        }
        _ => Vec::new(),
    }
}

/// Translates events of conditions, items, attempts and merges (docs/expressions.md).
fn bounded_work(context: &TaskContext, event: &Value) -> Draft {
    let instance = &context.instance_id;
    let phase = event["phase"].as_str().unwrap_or_default();
    let reason = event["reason"].as_str().unwrap_or_default();
    match event["event"].as_str().unwrap_or_default() {
        "phase_skipped" => {
            let data = json!({"event": "on_phase_skip", "phase": phase, "phase_type": event["kind"], "reason": reason,
                "instance_id": instance});
            working(format!("Phase skipped: {phase}"), data)
        }
        "items_started" => {
            let data = json!({"event": "on_items_start", "phase": phase, "items": event["items"],
                "starting": event["starting"], "instance_id": instance});
            working(format!("Running: {phase}, {} of {} items", event["starting"], event["items"]), data)
        }
        "item_failed" => {
            let data =
                json!({"event": "on_item_fail", "phase": phase, "reason": reason, "instance_id": instance});
            working(format!("Item failed: {phase}: {reason}"), data)
        }
        "retry_scheduled" => {
            let data = json!({"event": "on_retry", "phase": phase, "attempt": event["attempt"],
                "attempts": event["attempts"], "delay_ms": event["delay_ms"], "reason": reason, "instance_id": instance});
            working(
                format!("Attempt {} of {} follows: {phase}: {reason}", event["attempt"], event["attempts"]),
                data,
            )
        }
        _ => {
            let data = json!({"event": "on_merge_conflict", "phase": phase, "item": event["item"],
                "files": event["files"], "instance_id": instance});
            working(format!("Merge conflict: {phase}, item {}", event["item"]), data)
        }
    }
}

/// Translates the result of the program check before the run.
fn preflight(tools: &[ToolCheck]) -> Vec<Draft> {
    let names: Vec<&str> = tools.iter().map(|check| check.tool.as_str()).collect();
    let passed = tools.iter().filter(|check| check.available).count();
    let verdict = if passed == tools.len() { "PASS" } else { "ESCALATE" };
    let mut drafts = vec![working(
        "Preflight started".to_owned(),
        json!({"type": "cliq:preflight_started", "tools": names}),
    )];
    drafts.extend(tools.iter().map(|ToolCheck { tool, available }| {
        let word = if *available { "available" } else { "not on the PATH" };
        working(
            format!("{tool}: {word}"),
            json!({"type": "cliq:tool_check", "tool": tool, "available": available}),
        )
    }));
    let data = json!({"type": "cliq:preflight_completed", "passed": passed, "total": tools.len(), "verdict": verdict});
    drafts.push(working(format!("Preflight: {verdict}"), data));
    drafts
}

fn command_started(name: &str, phase: &str) -> Draft {
    let data = json!({"type": "cliq:command_started", "command": name, "phase": phase});
    working(format!("Command started: {name}"), data)
}

/// The end of a command. One whose condition is false was skipped: it neither passed nor failed.
fn command_completed(result: &Value, phase: &str) -> Draft {
    let name = result["name"].as_str().unwrap_or_default();
    let (pass, skipped) = (result["pass"] == true, result["skipped"] == true);
    let mut data = json!({"type": "cliq:command_completed", "command": name, "pass": pass, "phase": phase,
        "duration_ms": result["duration_ms"], "exit_code": result["exit_code"]});
    if skipped {
        data["skipped"] = true.into();
    }
    let word = match (skipped, pass) {
        (true, _) => "skipped",
        (false, true) => "passed",
        (false, false) => "failed",
    };
    working(format!("Command {word}: {name}"), data)
}

/// Translates the results of the commands of a phase. Journals that do not record each command get their events here.
fn commands(event: &Value, phase: &str) -> Vec<Draft> {
    let results = event["results"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut drafts = Vec::new();
    for result in results.iter().filter(|_| event["reported"] != true) {
        if result["skipped"] != true {
            drafts.push(command_started(result["name"].as_str().unwrap_or_default(), phase));
        }
        drafts.push(command_completed(result, phase));
    }
    let is = |result: &&Value, name: &str| result[name] == true;
    let skipped = results.iter().filter(|result| is(result, "skipped")).count();
    let passed = results.iter().filter(|result| is(result, "pass") && !is(result, "skipped")).count();
    let (iteration, limit) = (event["iteration"].as_u64().unwrap_or(1), event["max_iterations"].as_u64());
    let verdict = match limit {
        _ if passed + skipped == results.len() => "PASS",
        Some(limit) if iteration < limit => "CONTINUE",
        _ => "ESCALATE",
    };
    let total = results.len();
    let mut data = json!({"type": "cliq:commands_summary", "phase": phase, "passed": passed, "total": total, "verdict": verdict});
    let mut text = format!("Commands of {phase}: {passed} of {total} passed");
    if skipped > 0 {
        data["skipped"] = skipped.into();
        text = format!("{text}, {skipped} skipped");
    }
    drafts.push(working(text, data));
    drafts
}

/// The end: artifacts first, since a stream closes with the final state.
fn finished(
    context: &TaskContext,
    status: TaskOutcome,
    reason: Option<&str>,
    phase: Option<&str>,
    artifacts: &[Value],
) -> Vec<Draft> {
    let mut drafts: Vec<Draft> = artifacts
        .iter()
        .filter_map(|artifact| read_artifact(Version::V1_0, artifact).ok().map(Draft::Artifact))
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
    drafts.push(Draft::Status { state, text, data });
    drafts
}
