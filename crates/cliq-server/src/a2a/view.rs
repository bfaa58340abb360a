//! A run as a task.

use std::collections::HashSet;

use camino::Utf8PathBuf;
use cliq_a2a::{
    Artifact, EventNumber, Message, Status, StreamItem, Task, TaskContext, TaskState, Update, Version, wire,
};
use cliq_model::{RunEventRow, RunState, StoreError, StoredTask};
use cliq_orchestrator::{PhaseView, RunEvent, RunView};
use cliq_review::{ReviewFilter, Reviews};
use serde::Deserialize;
use serde_json::{Value, json};

use super::updates::updates_of;
use crate::app::App;

/// Number of trailing events searched for the last message of the agent.
const LAST_EVENTS: i64 = 20;

/// Number of trailing events searched first for the question of a review.
const QUESTION_EVENTS: i64 = 100;

/// Returns the state of a task for a run. A run that escalated needs a person: for the caller it failed.
pub(super) fn state_of(state: RunState) -> TaskState {
    match state {
        RunState::Queued => TaskState::Submitted,
        RunState::Starting | RunState::Running => TaskState::Working,
        RunState::Waiting => TaskState::InputRequired,
        RunState::Completed => TaskState::Completed,
        RunState::Escalated | RunState::Failed => TaskState::Failed,
        RunState::Cancelled => TaskState::Canceled,
    }
}

/// The states of runs that are this state for a caller; `None` if no run is ever in it.
pub(super) fn states_of(state: TaskState) -> Option<[RunState; 3]> {
    // A task that waits for its caller is a parked run, or one with other phases that work.
    let is_this = |run: &RunState| {
        state_of(*run) == state || (state == TaskState::InputRequired && state_of(*run) == TaskState::Working)
    };
    let mut runs = RunState::ALL.into_iter().filter(is_this);
    let first = runs.next()?;
    let states = [first, runs.next().unwrap_or(first), runs.next().unwrap_or(first)];
    debug_assert!(runs.next().is_none(), "a filter of tasks takes three states of runs");
    Some(states)
}

/// Returns the context of a task for its updates.
pub(crate) fn context_of(app: &App, id: &str, team: &str, context_id: &str) -> TaskContext {
    TaskContext {
        task_id: id.to_owned(),
        context_id: context_id.to_owned(),
        team: team.to_owned(),
        instance_id: app.options.instance_id().to_owned(),
    }
}

/// The updates of stored events.
pub(crate) fn updates<'a>(
    context: &'a TaskContext,
    rows: impl IntoIterator<Item = &'a RunEventRow> + 'a,
) -> impl Iterator<Item = Update> + 'a {
    rows.into_iter().flat_map(|row| {
        let event: Value = serde_json::from_str(&row.data).unwrap_or_default();
        updates_of(context, row.id, &event)
    })
}

/// A task as it is now.
pub(super) struct TaskView {
    pub(super) task: Task,
    /// The number of the last update that it contains: a stream goes on after it.
    pub(super) last: EventNumber,
}

/// The task with what the agent said last, and its artifacts where they are wanted.
pub(super) async fn view(
    app: &App,
    stored: &StoredTask,
    history_length: Option<usize>,
    with_artifacts: bool,
) -> Result<TaskView, StoreError> {
    let after = (stored.run.last_event - LAST_EVENTS).max(0);
    let rows = app.core.runs.run_events(&stored.run.id, after, u32::MAX).await?;
    // Events that were stored since belong to a later state.
    let rows: Vec<RunEventRow> = rows.into_iter().filter(|row| row.id <= stored.run.last_event).collect();
    let context = context_of(app, stored.run.id.as_str(), stored.run.team.as_str(), &stored.task.context_id);
    let (mut said, mut artifacts) = (None, Vec::new());
    for update in updates(&context, &rows) {
        match update.item {
            StreamItem::Status { status, .. } => said = status.message,
            StreamItem::Artifact { artifact, .. } => artifacts.push(artifact),
            StreamItem::Task(_) | StreamItem::Message(_) => {}
        }
    }
    let last = EventNumber { event: stored.run.last_event, index: u32::MAX };
    let mut task = task(stored, said, history_length, with_artifacts.then_some(artifacts));
    let asks = match task.status.state {
        TaskState::Working => PendingReviews::of(app, stored).await?.includes(stored),
        TaskState::InputRequired => true,
        _ => false,
    };
    if asks {
        task.status.state = TaskState::InputRequired;
        // Other phases may have said something since.
        if let Some(question) = question(app, stored, &context).await? {
            task.status.message = Some(question);
        }
    }
    if !stored.run.life.state.is_final()
        && let Some(view) = app.core.supervisor.hub().view(&stored.run.id)
        && let Some(metadata) = &mut task.metadata
    {
        metadata.insert("phases".to_owned(), phases(&view));
    }
    Ok(TaskView { task, last })
}

/// Progress of the phases of an active task.
fn phases(view: &RunView) -> Value {
    let phase = |phase: &PhaseView| {
        json!({"name": phase.name, "type": phase.kind, "status": phase.status, "iterations": phase.iterations,
            "message": phase.message})
    };
    view.phases.iter().map(phase).collect()
}

/// Returns the question of the newest review that waits, or `None` if none does. Reads the events backwards, in growing parts.
async fn question(
    app: &App,
    stored: &StoredTask,
    context: &TaskContext,
) -> Result<Option<Message>, StoreError> {
    let project = Some(stored.run.workspace.to_string());
    let filter = ReviewFilter { project, pending: true, ..ReviewFilter::default() };
    let waiting = match app.core.reviews.list(&filter).await {
        Ok(reviews) => reviews,
        Err(error) => {
            tracing::error!(%error, "the reviews cannot be read");
            return Ok(None);
        }
    };
    if waiting.is_empty() {
        return Ok(None);
    }
    let asks = |event: &Value| match RunEvent::deserialize(event) {
        Ok(RunEvent::ReviewWaits { review: asked, .. }) => {
            waiting.iter().any(|review| review.id.as_str() == asked.id)
        }
        _ => false,
    };
    let (mut end, mut size) = (stored.run.last_event, QUESTION_EVENTS);
    while end > 0 {
        let start = (end - size).max(0);
        let rows =
            app.core.runs.run_events(&stored.run.id, start, u32::try_from(end - start).unwrap_or(u32::MAX));
        let rows = rows.await?;
        for row in rows.iter().rev().filter(|row| row.kind == "review_waits" && row.id <= end) {
            let event: Value = serde_json::from_str(&row.data).unwrap_or_default();
            if asks(&event) {
                let update = updates_of(context, row.id, &event).into_iter().next();
                return Ok(update.and_then(|update| match update.item {
                    StreamItem::Status { status, .. } => status.message,
                    StreamItem::Artifact { .. } | StreamItem::Task(_) | StreamItem::Message(_) => None,
                }));
            }
        }
        (end, size) = (start, size * 4);
    }
    Ok(None)
}

/// The workspaces of runs that wait for a review.
pub(super) struct PendingReviews(HashSet<Utf8PathBuf>);

impl PendingReviews {
    /// Of one task.
    pub(super) async fn of(app: &App, stored: &StoredTask) -> Result<Self, StoreError> {
        let project = Some(stored.run.workspace.to_string());
        Self::find(app, ReviewFilter { project, pending: true, ..ReviewFilter::default() }).await
    }

    /// Of all tasks.
    pub(super) async fn all(app: &App) -> Result<Self, StoreError> {
        Self::find(app, ReviewFilter { pending: true, limit: 10_000, ..ReviewFilter::default() }).await
    }

    async fn find(app: &App, filter: ReviewFilter) -> Result<Self, StoreError> {
        match app.core.reviews.list(&filter).await {
            Ok(reviews) => Ok(Self(reviews.into_iter().map(|review| review.project).collect())),
            Err(error) => {
                // The state without it is the one that was told before.
                tracing::error!(%error, "the reviews cannot be read");
                Ok(Self(HashSet::new()))
            }
        }
    }

    /// Whether a task waits for its caller.
    pub(super) fn includes(&self, stored: &StoredTask) -> bool {
        let life = &stored.run.life;
        life.state == RunState::Waiting || life.state.is_active() && self.0.contains(&stored.run.workspace)
    }
}

/// A new task as it was accepted, before its first update: `submitted` (docs/a2a.md).
pub(super) fn accepted(stored: &StoredTask, history_length: Option<usize>) -> Task {
    let mut task = task(stored, None, history_length, Some(Vec::new()));
    task.status.state = TaskState::Submitted;
    task.status.timestamp = Some(stored.run.queued_at.to_string());
    task
}

/// The task in a list: without what the agent said.
pub(super) fn listed(
    stored: &StoredTask,
    history_length: Option<usize>,
    artifacts: Option<Vec<Artifact>>,
) -> Task {
    task(stored, None, history_length, artifacts)
}

fn task(
    stored: &StoredTask,
    said: Option<Message>,
    history_length: Option<usize>,
    artifacts: Option<Vec<Artifact>>,
) -> Task {
    let run = &stored.run;
    let list: Value = serde_json::from_str(&stored.task.messages).unwrap_or_default();
    let mut messages = wire::read_messages(Version::V1_0, &list);
    for message in &mut messages {
        message.task_id = Some(run.id.to_string());
        message.context_id = Some(stored.task.context_id.clone());
    }
    if let Some(most) = history_length {
        messages.drain(..messages.len().saturating_sub(most));
    }
    // For its caller, a run that was woken works, although it may still be queued.
    let is_woken = run.life.state == RunState::Queued && run.life.parked;
    let metadata = serde_json::Map::from_iter([
        ("team".to_owned(), Value::from(run.team.as_str())),
        ("title".to_owned(), Value::from(run.title.as_str())),
    ]);
    Task {
        id: run.id.to_string(),
        context_id: stored.task.context_id.clone(),
        status: Status {
            state: if is_woken { TaskState::Working } else { state_of(run.life.state) },
            message: said,
            timestamp: Some(stored.task.updated_at.to_string()),
        },
        artifacts,
        history: (history_length != Some(0)).then_some(messages),
        metadata: Some(metadata),
    }
}
