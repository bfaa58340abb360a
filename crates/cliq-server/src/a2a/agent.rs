//! Implementation of the calls, for both bindings and versions.

use std::sync::Arc;
use std::time::Duration;

use cliq_a2a::{A2aError, Call, ErrorKind, EventNumber, Listing, SendRequest, TaskState, Version, wire};
use cliq_model::{Scope, StoredTask, TaskFilter};
use cliq_protocol::{RunId, Timestamp};
use serde_json::{Value, json};

use super::lookup::{find, internal};
use super::new_task::Origin;
use super::stream::TaskStream;
use super::view::{PendingReviews, TaskView, accepted, listed, states_of, view};
use super::{A2aCaller, new_task, push};
use crate::app::App;
use cliq_supervisor::ChangeError;
use cliq_supervisor::TailItem;
use cliq_web::{CallerAction, record};

/// Time that the response to a cancellation waits for the end.
const CANCEL: Duration = Duration::from_secs(10);

/// Reply to a caller.
pub(super) enum Reply {
    /// One result.
    Result(Value),
    /// A stream of them.
    Stream(TaskStream),
}

/// A call with what came around it.
pub(super) struct Request {
    pub(super) version: Version,
    pub(super) call: Call,
    /// The last update that the caller has (`Last-Event-ID`).
    pub(super) last_event_id: Option<EventNumber>,
}

/// Carries out a call, and records it if it changes something.
pub(super) async fn execute(app: &Arc<App>, caller: &A2aCaller, request: Request) -> Result<Reply, A2aError> {
    let action = request.call.changes().then(|| action_of(&request.call));
    let result = perform(app, caller, request).await;
    if let Some((action, task)) = action {
        let made = match &result {
            Ok(Reply::Result(value)) => value["task"]["id"].as_str().or_else(|| value["id"].as_str()),
            _ => None,
        };
        let target = task.or_else(|| made.map(str::to_owned)).unwrap_or_default();
        let done = CallerAction { via: "a2a", action, target: &target, is_done: result.is_ok() };
        record(&app.core, &caller.0, done).await;
    }
    result
}

/// Returns the name of a call, and the task that it names.
fn action_of(call: &Call) -> (&'static str, Option<String>) {
    match call {
        Call::Send(send) => ("message/send", send.message.task_id.clone()),
        Call::Stream(send) => ("message/stream", send.message.task_id.clone()),
        Call::Cancel { id, .. } => ("tasks/cancel", Some(id.clone())),
        Call::SetPush { task_id, .. } => ("tasks/pushNotificationConfig/set", Some(task_id.clone())),
        Call::DeletePush { task_id, .. } => ("tasks/pushNotificationConfig/delete", Some(task_id.clone())),
        _ => ("other call", None),
    }
}

async fn perform(app: &Arc<App>, caller: &A2aCaller, request: Request) -> Result<Reply, A2aError> {
    let Some(options) = &app.options.a2a else {
        return Err(A2aError::new(ErrorKind::UnsupportedOperation, "this server is not an A2A agent"));
    };
    let (version, owner) = (request.version, caller.owner());
    let result = match request.call {
        Call::Send(send) => {
            let (stored, origin) = new_task::start(app, options, caller, version, &send).await?;
            let task = if send.blocking {
                let stored = wait(app, &owner, stored).await?;
                seen(app, &stored, send.history_length).await?.task
            } else if origin == Origin::New {
                accepted(&stored, send.history_length)
            } else {
                seen(app, &stored, send.history_length).await?.task
            };
            wire::write_send_response(version, &task)
        }
        Call::Stream(send) => return stream_new(app, caller, version, &send).await,
        Call::Subscribe { id } => return subscribe(app, &owner, version, &id, request.last_event_id).await,
        Call::Get { id, history_length } => {
            let stored = find(app, &owner, &id).await?;
            wire::write_task(version, &seen(app, &stored, history_length).await?.task)
        }
        Call::List(listing) => list(app, owner, version, &listing).await?,
        Call::Cancel { id, reason } => {
            wire::write_task(version, &cancel(app, caller, &id, reason.as_deref()).await?.task)
        }
        Call::SetPush { task_id, config } => {
            let stored = find(app, &owner, &task_id).await?;
            push::set(app, options, version, &stored, &config).await?
        }
        Call::GetPush { task_id, id } => {
            let stored = find(app, &owner, &task_id).await?;
            push::get(app, version, &stored, id.as_deref()).await?
        }
        Call::ListPush { task_id } => {
            let stored = find(app, &owner, &task_id).await?;
            push::list(app, version, &stored).await?
        }
        Call::DeletePush { task_id, id } => {
            let stored = find(app, &owner, &task_id).await?;
            app.tasks.remove_push(&stored.run.id, &id).await.map_err(|error| internal(&error))?;
            match version {
                Version::V0_3 => Value::Null,
                Version::V1_0 => json!({}),
            }
        }
        Call::ExtendedCard => {
            let card = app.agent_card().await;
            card.map_err(|problem| A2aError::new(ErrorKind::Internal, problem.detail))?.value.clone()
        }
    };
    Ok(Reply::Result(result))
}

/// Whether the caller may make a call.
pub(super) fn may(caller: &A2aCaller, call: &Call) -> bool {
    caller.0.scope >= if call.changes() { Scope::Run } else { Scope::Read }
}

async fn seen(app: &App, stored: &StoredTask, history_length: Option<usize>) -> Result<TaskView, A2aError> {
    view(app, stored, history_length, true).await.map_err(|error| internal(&error))
}

/// Waits until a task is over or asks for input, or the server stops. Returns at once if it does already (docs/a2a.md).
async fn wait(app: &Arc<App>, owner: &str, stored: StoredTask) -> Result<StoredTask, A2aError> {
    if stored.run.life.state.is_final() {
        return Ok(stored);
    }
    let pending = PendingReviews::of(app, &stored).await.map_err(|error| internal(&error))?;
    if pending.includes(&stored) {
        return Ok(stored);
    }
    wait_for_change(app, owner, stored).await
}

/// Waits until a task ends or asks for input after what `stored` shows, or the server stops.
async fn wait_for_change(app: &Arc<App>, owner: &str, stored: StoredTask) -> Result<StoredTask, A2aError> {
    let mut tail = app.core.supervisor.tail(&stored.run.id, stored.run.last_event);
    loop {
        match tail.next().await.map_err(|error| internal(&error))? {
            TailItem::Events(events)
                if events.iter().any(|event| match event.row.kind.as_str() {
                    "task_finished" => true,
                    "review_waits" => waits_for_somebody(&event.row.data),
                    _ => false,
                }) =>
            {
                break;
            }
            TailItem::Events(_) | TailItem::Idle => {}
            TailItem::Stopping | TailItem::End => break,
        }
    }
    find(app, owner, stored.run.id.as_str()).await
}

/// Whether the event of a review names people who have not answered. Without them, the review is over and its phase goes on.
fn waits_for_somebody(event: &str) -> bool {
    let event: Value = serde_json::from_str(event).unwrap_or_default();
    event["review"]["reviewers"].as_array().is_some_and(|names| !names.is_empty())
}

/// A stream that begins with the task, and gives all updates from its beginning on.
async fn stream_new(
    app: &Arc<App>,
    caller: &A2aCaller,
    version: Version,
    send: &SendRequest,
) -> Result<Reply, A2aError> {
    let options = app.options.a2a.as_ref();
    let options = options
        .ok_or_else(|| A2aError::new(ErrorKind::UnsupportedOperation, "this server is not an A2A agent"))?;
    let (stored, origin) = new_task::start(app, options, caller, version, send).await?;
    if origin == Origin::FollowUp {
        let first = seen(app, &stored, send.history_length).await?;
        return Ok(Reply::Stream(TaskStream::new(app, version, &stored, first.task, first.last)));
    }
    // A message that came again: the response to the first was lost. The stream is the same as the first, from its beginning on.
    let first = accepted(&stored, send.history_length);
    Ok(Reply::Stream(TaskStream::new(app, version, &stored, first, EventNumber::default())))
}

/// A stream of a task that exists. It begins with the task; then come the updates after the last that the caller has, or after
/// what the task shows.
async fn subscribe(
    app: &Arc<App>,
    owner: &str,
    version: Version,
    id: &str,
    last: Option<EventNumber>,
) -> Result<Reply, A2aError> {
    let stored = find(app, owner, id).await?;
    let first = seen(app, &stored, None).await?;
    if stored.run.life.state.is_final() && last.is_none() && version == Version::V1_0 {
        let message = format!(
            "the task is {}: get it, or send Last-Event-ID to read its updates",
            stored.run.life.state.as_str()
        );
        return Err(A2aError::new(ErrorKind::UnsupportedOperation, message).with("taskId", id));
    }
    let after = last.unwrap_or(first.last);
    Ok(Reply::Stream(TaskStream::new(app, version, &stored, first.task, after)))
}

/// Cancels a task, and waits a little for its end.
async fn cancel(
    app: &Arc<App>,
    caller: &A2aCaller,
    id: &str,
    reason: Option<&str>,
) -> Result<TaskView, A2aError> {
    let owner = caller.owner();
    let stored = find(app, &owner, id).await?;
    match app.core.supervisor.cancel_with_reason(&stored.run.id, &caller.0.label, reason).await {
        Ok(_) => {}
        Err(ChangeError::NotAllowed(_) | ChangeError::NotLast(_) | ChangeError::DelegationIsOver) => {
            let message = format!("the task is {} and cannot be cancelled", stored.run.life.state.as_str());
            return Err(A2aError::new(ErrorKind::TaskNotCancelable, message).with("taskId", id));
        }
        Err(ChangeError::NoRun) => return Err(A2aError::task_not_found(id)),
        Err(ChangeError::Store(error)) => return Err(internal(&error)),
        Err(ChangeError::Files(error)) => {
            tracing::error!(%error, "cannot cancel a task");
            let message = "the task cannot be cancelled at the moment; try again later";
            return Err(A2aError::new(ErrorKind::Internal, message));
        }
    }
    let stored = find(app, &owner, id).await?;
    let stored = if stored.run.life.state.is_final() {
        stored
    } else {
        match tokio::time::timeout(CANCEL, wait_for_change(app, &owner, stored)).await {
            Ok(stored) => stored?,
            Err(_) => find(app, &owner, id).await?,
        }
    };
    seen(app, &stored, None).await
}

/// Maximum number of an owner's active tasks that are divided into working and waiting ones.
const MAX_ACTIVE: u32 = 100_000;

/// Returns a page of the caller's tasks, last changed first.
async fn list(app: &App, owner: String, version: Version, listing: &Listing) -> Result<Value, A2aError> {
    let cursor = listing.page_token.as_deref().map(|token| {
        let parts = token
            .split_once('~')
            .and_then(|(time, id)| Some((Timestamp::parse(time).ok()?, RunId::parse_uuid(id)?)));
        parts.ok_or_else(|| A2aError::wrong("pageToken", "is not a page token"))
    });
    let states = listing.state.map(states_of);
    let mut filter = TaskFilter {
        owner,
        context_id: listing.context_id.clone(),
        states: states.flatten(),
        after: listing.after,
        cursor: cursor.transpose()?,
        limit: listing.page_size + 1,
    };
    let waiting = PendingReviews::all(app).await.map_err(|error| internal(&error))?;
    // The row of a run does not contain whether it waits for its caller: active tasks are divided here.
    let has_state = |stored: &StoredTask| match listing.state {
        Some(TaskState::InputRequired) => waiting.includes(stored),
        Some(TaskState::Working) => !waiting.includes(stored),
        _ => true,
    };
    let is_divided = matches!(listing.state, Some(TaskState::InputRequired | TaskState::Working));
    let (mut found, total) = if states.is_some_and(|states| states.is_none()) {
        // A state that no run has.
        (Vec::new(), 0)
    } else if is_divided {
        let cursor = filter.cursor.take();
        filter.limit = MAX_ACTIVE;
        let mut active = app.tasks.tasks(&filter).await.map_err(|error| internal(&error))?;
        active.retain(has_state);
        let total = active.len() as u64;
        if let Some((time, id)) = cursor {
            // Newest first, as the store orders them.
            active.retain(|stored| (&stored.task.updated_at, &stored.run.id) < (&time, &id));
        }
        (active, total)
    } else {
        let total = app.tasks.count_tasks(&filter).await.map_err(|error| internal(&error))?;
        (app.tasks.tasks(&filter).await.map_err(|error| internal(&error))?, total)
    };
    filter.limit = listing.page_size;
    let more = found.len() > filter.limit as usize;
    found.truncate(filter.limit as usize);
    let next = found.last().filter(|_| more).map(|last| format!("{}~{}", last.task.updated_at, last.run.id));
    let mut tasks = Vec::new();
    for stored in &found {
        let is_waiting = waiting.includes(stored);
        // A message may be large: a list has them only where they are asked for.
        let history_length = Some(listing.history_length.unwrap_or(0));
        let mut task = if listing.include_artifacts {
            view(app, stored, history_length, true).await.map_err(|error| internal(&error))?.task
        } else {
            listed(stored, history_length, None)
        };
        if is_waiting {
            task.status.state = TaskState::InputRequired;
        }
        tasks.push(wire::write_task(version, &task));
    }
    Ok(
        json!({"tasks": tasks, "nextPageToken": next.unwrap_or_default(), "pageSize": listing.page_size, "totalSize": total}),
    )
}
