//! Posting updates to their receivers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cliq_a2a::{StreamItem, Task, TaskContext, Update, Version, wire};
use cliq_http::{Client, Guard, Limits, Request};
use cliq_model::{PushRow, PushState, StoreError};
use cliq_orchestrator::internals::spawn_blocking;
use cliq_protocol::RunId;
use tokio::sync::Semaphore;

use super::attempt::{Attempt, after};
use crate::a2a::view::{context_of, updates};
use crate::app::App;
use cliq_supervisor::internals::Duty;
use cliq_supervisor::internals::clock;

/// Polling interval of the receivers: the time of a retry may have come.
const POLL: Duration = Duration::from_secs(1);
/// Maximum number of concurrent deliveries to receivers whose last delivery succeeded, or that are new.
const AT_ONCE: usize = 128;
/// Maximum number of concurrent deliveries to receivers whose last delivery failed. Receivers that hang do not delay others.
const FAILING_AT_ONCE: usize = 16;
/// Number of receivers read at once.
const BATCH: u32 = 1024;
/// Number of events read at once.
const PAGE: u32 = 100;
/// Deadlines of a delivery. Retries happen later, not at once.
const LIMITS: Limits = Limits {
    connect: Duration::from_secs(15),
    first_byte: Duration::from_secs(15),
    idle: Duration::from_secs(15),
    whole: Duration::from_secs(15),
    tries: 1,
    answer: 1 << 20,
    redirects: 0,
};
/// Maximum number of characters kept from an error.
const QUOTED: usize = 240;

/// Receivers that a delivery is under way for.
type ActiveDeliveries = Arc<Mutex<HashSet<(RunId, String)>>>;

/// Delivers until the server stops.
pub(crate) async fn deliver(app: Arc<App>) {
    let Some(options) = &app.options.a2a else { return };
    let guard = options.push_guard.clone();
    let busy = ActiveDeliveries::default();
    let [slots, failing_slots] = [AT_ONCE, FAILING_AT_ONCE].map(|n| Arc::new(Semaphore::new(n)));
    let mut changes = app.core.supervisor.hub().changes();
    let mut duty = Duty::new("pushes");
    loop {
        match duty.is_own(app.core.runs.as_ref(), app.core.supervisor.options()).await {
            Ok(true) => {}
            other => {
                if let Err(error) = other {
                    tracing::error!(%error, "push notifications wait: the database cannot be used");
                }
                tokio::select! {
                    () = app.core.stopping.cancelled() => return,
                    () = tokio::time::sleep(POLL) => continue,
                }
            }
        }
        match app.tasks.due_pushes(clock::now(), BATCH).await {
            Ok(due) => {
                for push in due {
                    let key = (push.task_id.clone(), push.id.clone());
                    let lane = if push.attempts > 0 { &failing_slots } else { &slots };
                    // Without a free slot, the receiver is read again with the next poll.
                    let Ok(slot) = Arc::clone(lane).try_acquire_owned() else { continue };
                    if !busy.lock().unwrap_or_else(PoisonError::into_inner).insert(key.clone()) {
                        continue;
                    }
                    let (app, busy, guard) = (Arc::clone(&app), Arc::clone(&busy), guard.clone());
                    tokio::spawn(async move {
                        if let Err(error) = deliver_to(&app, &guard, push).await {
                            tracing::error!(%error, "push notifications wait: the database cannot be used");
                        }
                        drop(slot);
                        busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
                    });
                }
            }
            Err(error) => tracing::error!(%error, "push notifications wait: the database cannot be read"),
        }
        tokio::select! {
            () = app.core.stopping.cancelled() => return,
            _ = changes.changed() => {}
            () = tokio::time::sleep(POLL) => {}
        }
    }
}

/// Posts what a receiver has not got, until it has everything or does not take it.
async fn deliver_to(app: &App, guard: &Guard, mut push: PushRow) -> Result<(), StoreError> {
    let (Some(run), Some(task)) =
        (app.core.runs.run(&push.task_id).await?, app.tasks.task_of_run(&push.task_id).await?)
    else {
        return Ok(());
    };
    let context = context_of(app, run.id.as_str(), run.team.as_str(), &task.context_id);
    loop {
        let rows = app.core.runs.run_events(&push.task_id, push.event, PAGE).await?;
        if rows.is_empty() {
            return Ok(());
        }
        for row in &rows {
            let list: Vec<Update> = updates(&context, [row]).collect();
            let done = usize::try_from(push.part).unwrap_or(usize::MAX);
            for update in list.iter().skip(done) {
                if app.core.stopping.is_cancelled() {
                    return Ok(());
                }
                let attempt = post(guard, &push, &context, update).await;
                app.metrics.push_attempted(attempt == Attempt::Delivered);
                push = step(push, attempt, update.item.is_last());
                if !keep(app, &mut push).await? || push.state != PushState::Active || push.attempts > 0 {
                    return Ok(());
                }
            }
            (push.event, push.part) = (row.id, 0);
        }
        // Events without updates are passed over without a write; here the place is kept.
        if !keep(app, &mut push).await? {
            return Ok(());
        }
    }
}

fn step(push: PushRow, attempt: Attempt, is_last: bool) -> PushRow {
    let now = clock::now();
    if let Attempt::Failed(reason) | Attempt::Gone(reason) = &attempt {
        tracing::info!(task = %push.task_id, receiver = push.id, attempts = push.attempts + 1, reason, "a push notification was not taken");
    }
    let push = after(push, attempt, is_last, now);
    if push.state == PushState::Dead {
        let reason = push.reason.as_deref().unwrap_or_default();
        tracing::warn!(task = %push.task_id, receiver = push.id, reason, "a receiver of push notifications is given up");
    }
    push
}

/// Stores how far a receiver is. `false` where it was removed or changed since.
async fn keep(app: &App, push: &mut PushRow) -> Result<bool, StoreError> {
    let stored = app.tasks.put_push(push).await?;
    push.version += 1;
    Ok(stored)
}

/// Posts one update.
async fn post(guard: &Guard, push: &PushRow, context: &TaskContext, update: &Update) -> Attempt {
    let (body, content_type) = match Version::parse(&push.protocol) {
        Ok(Version::V0_3) => {
            (wire::write_task(Version::V0_3, &snapshot(context, &update.item)), "application/json")
        }
        _ => (wire::write_stream_item(Version::V1_0, &update.item), "application/a2a+json"),
    };
    // In its normal form: what is resolved and checked is what is connected to.
    let url = match guard.parse(&push.url) {
        Ok(url) => url.as_str().to_owned(),
        Err(error) => return Attempt::Failed(error.to_string()),
    };
    let client = Client::guarded(LIMITS, guard);
    let mut request =
        Request::post(url).called("it").header("content-type", content_type).bytes(body.to_string());
    if let Some(token) = &push.token {
        request = request.secret_header("x-a2a-notification-token", token);
    }
    if let Some(scheme) = &push.scheme {
        let credentials = push.credentials.as_deref().unwrap_or_default();
        request = request.secret_header("authorization", format!("{scheme} {credentials}").trim());
    }
    let sent = spawn_blocking(move || send(&client, &request));
    sent.await.unwrap_or_else(|error| Attempt::Failed(error.to_string()))
}

fn send(client: &Client, request: &Request) -> Attempt {
    match client.send(request) {
        Ok(answer) if (200..300).contains(&answer.status) => Attempt::Delivered,
        Ok(answer) => {
            Attempt::Failed(format!("it answered {}, and redirects are not followed", answer.status))
        }
        Err(error) => {
            let reason = error.message.chars().filter(|c| !c.is_control()).take(QUOTED).collect();
            if error.status == Some(410) { Attempt::Gone(reason) } else { Attempt::Failed(reason) }
        }
    }
}

/// An update as a task: what 0.3 posts.
fn snapshot(context: &TaskContext, item: &StreamItem) -> Task {
    let (status, artifacts, metadata) = match item {
        StreamItem::Task(task) => return task.clone(),
        StreamItem::Status { status, metadata, .. } => (status.clone(), None, metadata.clone()),
        StreamItem::Artifact { artifact, metadata, .. } => {
            (working(), Some(vec![artifact.clone()]), metadata.clone())
        }
        StreamItem::Message(_) => (working(), None, None),
    };
    Task {
        id: context.task_id.clone(),
        context_id: context.context_id.clone(),
        status,
        artifacts,
        history: None,
        metadata,
    }
}

fn working() -> cliq_a2a::Status {
    cliq_a2a::Status { state: cliq_a2a::TaskState::Working, message: None, timestamp: None }
}
