//! Replay of the runs of a session.

use cliq_acp::schema::{ContentChunk, SessionUpdate};
use cliq_orchestrator::{Record, RunEvent, RunView};
use cliq_project::{Project, RunState};
use cliq_protocol::RunId;

use super::report::Report;
use super::sessions::OpenSession;
use super::{follow, runs, summary};

/// Maximum size of a requirement in a replay, in bytes.
const MAX_REQUIREMENT: u64 = 64 << 10;
/// Number of last runs that are replayed.
const MAX_RUNS: usize = 20;

/// Returns the history of a session: for each run the prompt, the plan, the activations as they ended, and the result. Runs whose
/// files were removed are left out.
pub(super) fn of(session: &OpenSession) -> Vec<SessionUpdate> {
    let record = &session.record.runs;
    let from = record.len().saturating_sub(MAX_RUNS);
    let last = runs::last_run(&session.project).ok().flatten();
    let mut updates = Vec::new();
    for run in record.get(from..).unwrap_or_default() {
        let is_last = last.as_ref().is_some_and(|last| last.id == *run);
        updates.extend(of_run(&session.project, run, is_last));
    }
    if let Some(last) = last.filter(|last| record.contains(&last.id)) {
        let text = match last.state {
            RunState::Running => {
                "The run is at work. A message guides it and follows it; `/follow` only follows it."
            }
            RunState::Waiting => {
                "The run is parked. A message guides it and continues it; `/resume` only continues it."
            }
            RunState::Interrupted => {
                "The run was interrupted. A message guides it and continues it; `/resume` only continues it."
            }
            _ => return updates,
        };
        updates.push(SessionUpdate::AgentMessageChunk(ContentChunk::new(text.to_owned().into())));
    }
    updates
}

fn of_run(project: &Project, run: &RunId, is_last: bool) -> Vec<SessionUpdate> {
    let Ok(recorded) = project.recorded_run(Some(run.as_str())) else { return Vec::new() };
    let workspace = project.dir().workspace().to_owned();
    let view = match project.workflow() {
        Ok(workflow) if is_last => RunView::new(&workflow),
        _ => RunView::empty(),
    };
    let mut report = Report::new(run, workspace, view);
    let mut messages = Vec::new();
    for record in &recorded.journal.records {
        report.apply(record);
        messages.extend(message(record));
    }
    // Changes are read from git, which takes its time: those of the last run only.
    for ended in report.take_ended().into_iter().filter(|_| is_last) {
        if let Some((diffs, paths)) = follow::changes(project, run, &ended) {
            report.add_changes(&ended.call, diffs, paths);
        }
    }
    let file = recorded.place.join("requirement.md");
    let requirement = cliq_fs::read_text(&file, MAX_REQUIREMENT).ok();
    let requirement = requirement.or_else(|| report.view().title.clone()).unwrap_or_default();
    let prompt = ContentChunk::new(requirement.trim_end().to_owned().into());
    let mut updates = vec![SessionUpdate::UserMessageChunk(prompt)];
    updates.extend(report.snapshot());
    updates.extend(messages);
    if report.view().status.is_some() {
        let end = summary::of(project, &report);
        updates.push(SessionUpdate::AgentMessageChunk(ContentChunk::new(end.message.into())));
    }
    updates
}

/// Returns a message to the run as one of the person.
fn message(record: &Record) -> Option<SessionUpdate> {
    match &record.event {
        RunEvent::SteeringReceived { text, .. } => {
            Some(SessionUpdate::UserMessageChunk(ContentChunk::new(text.clone().into())))
        }
        _ => None,
    }
}
