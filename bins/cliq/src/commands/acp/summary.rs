//! End of a run in a session: a message for the person, and the answer to the prompt.

use std::fmt::Write;

use cliq_acp::RpcError;
use cliq_acp::agent::TurnEnd;
use cliq_acp::schema::{Meta, StopReason};
use cliq_model::Caveat;
use cliq_orchestrator::{PhaseStatus, PhaseView, PipelineStatus, RunView};
use cliq_project::{Project, RunState, RunStatus};
use cliq_protocol::PhaseKind;
use serde_json::json;

use super::report::{Report, fenced, shorten};
use crate::render::usage;
use crate::ui;

/// Message and answer at the end of a followed run.
pub(super) struct RunEnd {
    pub(super) message: String,
    pub(super) end: TurnEnd,
}

/// Returns the end of a run that no process works on.
pub(super) fn of(project: &Project, report: &Report) -> RunEnd {
    let view = report.view();
    let state = RunState::of(Some(view), false);
    let caveats = Caveat::of_document(&RunStatus::new(view, project).document());
    let run = view.run_id.as_ref().map_or("-", cliq_protocol::RunId::as_str);
    let facts = json!({ "run": run, "status": state.as_str(), "caveats": caveats });
    let meta: Meta = [("cliq".to_owned(), facts)].into_iter().collect();
    let answered = |reason| TurnEnd::Answered { reason, meta: Some(meta.clone()) };
    let failed = |text: String| {
        let error = RpcError::new(RpcError::INTERNAL_ERROR, text);
        TurnEnd::Failed(RpcError { data: Some(json!(meta.clone())), ..error })
    };
    let mut message = text(report, state, &caveats);
    let end = match state {
        RunState::Completed => answered(StopReason::EndTurn),
        RunState::Cancelled => answered(StopReason::Cancelled),
        RunState::Escalated => answered(limit_of(view).unwrap_or(StopReason::EndTurn)),
        RunState::Waiting => answered(StopReason::EndTurn),
        RunState::Failed => {
            failed(format!("the run failed: {}", view.reason.as_deref().unwrap_or("no reason recorded")))
        }
        RunState::Interrupted | RunState::Running | RunState::None => {
            let why = "the run was interrupted: its orchestrator is gone";
            failed(format!("{why}; `/resume` continues it"))
        }
    };
    let _ = writeln!(message, "\n`cliq explain` shows how it went. Run {run}.");
    RunEnd { message, end }
}

/// Returns the stop reason for a limit that ended the run.
fn limit_of(view: &RunView) -> Option<StopReason> {
    let phase = view.phase.as_ref().and_then(|name| view.find(name))?;
    match phase.limited.as_ref()?.limit.as_str() {
        "max_turns" => Some(StopReason::MaxTurnRequests),
        "budget.tokens" | "context_tokens" => Some(StopReason::MaxTokens),
        _ => None,
    }
}

fn text(report: &Report, state: RunState, caveats: &[Caveat]) -> String {
    let view = report.view();
    let took = ui::duration(view.elapsed_ms(cliq_fs::now()));
    let mut out = match state {
        RunState::Waiting => {
            "**The run is parked**: nothing of it is left running, and it waits for people. \
                              After an answer, `/resume` continues it.\n"
                .to_owned()
        }
        state => format!("**{}** after {took}.\n", state.as_str().to_uppercase()),
    };
    if let Some(reason) = view.reason.as_deref().filter(|_| state != RunState::Completed) {
        let phase = view.phase.as_ref().map(|phase| format!("{phase}: ")).unwrap_or_default();
        let _ = writeln!(out, "\nReason: {phase}{}", shorten(reason));
    }
    let output = view.phase.as_ref().and_then(|name| view.find(name)?.output_tail.as_deref());
    if let Some(tail) = output.filter(|tail| state != RunState::Completed && !tail.trim().is_empty()) {
        let _ = writeln!(out, "\n{}", fenced(tail));
    }
    for caveat in caveats {
        let _ = writeln!(out, "\n{}: {}", caveat.label(), caveat.sentence());
    }
    out.push('\n');
    for phase in view.phases.iter().filter(|phase| phase.iterations > 0 && phase.name.item().is_none()) {
        let _ = writeln!(out, "{}", line(phase, report.results().get(&phase.name)));
    }
    let lost: Vec<String> = view
        .steering
        .iter()
        .filter(|message| message.pending)
        .map(|message| format!("> {}", shorten(&message.message.text)))
        .collect();
    if !lost.is_empty() && state != RunState::Waiting {
        let _ = writeln!(out, "\nNo agent received these messages:\n\n{}", lost.join("\n>\n"));
    }
    if let Some(usage) = view.usage() {
        let _ = writeln!(out, "\nUsage: {}", usage::sentence(&usage));
    }
    if state == RunState::Escalated || state == RunState::Failed {
        out.push_str("\nA message starts a new run; `/resume` continues this one where it stopped.\n");
    }
    if state == RunState::Cancelled && view.pipeline_status() == Some(PipelineStatus::Cancelled) {
        out.push_str("\nNothing of the run is left running. `/resume` continues it.\n");
    }
    out
}

fn line(phase: &PhaseView, result: Option<&String>) -> String {
    let mark = match phase.status {
        PhaseStatus::Completed => "✓",
        PhaseStatus::Failed | PhaseStatus::Escalated => "✗",
        PhaseStatus::Skipped | PhaseStatus::Pending => "–",
        PhaseStatus::Running | PhaseStatus::Waiting | PhaseStatus::Stopped => "!",
    };
    let has_completed = phase.status == PhaseStatus::Completed;
    let message = phase.message.as_ref().filter(|_| phase.kind.is_gate() || !has_completed);
    let said = match result.filter(|_| has_completed).or(message) {
        Some(text) if !text.trim().is_empty() && phase.kind != PhaseKind::Exec => {
            format!(": {}", shorten(text.trim()))
        }
        _ => String::new(),
    };
    let times = if phase.iterations > 1 { format!(" ({} times)", phase.iterations) } else { String::new() };
    format!("- {mark} **{}**{times}{said}", phase.name)
}
