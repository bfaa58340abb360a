//! Push notifications: each update of a task is posted to an address of the caller, at least once, in order.
//!
//! A receiver is a row that says which updates are delivered. `deliver.rs` posts the next one, and the row moves on when the
//! receiver answered with a success: a server that dies in between posts it again. `attempt.rs` decides what a failure means.

mod attempt;
mod deliver;

use cliq_a2a::{A2aError, Authentication, ErrorKind, PushConfig, Version, wire};
use cliq_model::{PushRow, PushState, StoredTask};
use serde_json::{Value, json};

use super::lookup::internal;
use super::new_task::push_row;
use super::options::A2aOptions;
use crate::app::App;

pub(crate) use deliver::deliver;

/// The most receivers of a task.
const MAX_CONFIGS: usize = 20;

/// Stores a receiver: it gets the updates from now on.
pub(super) async fn set(
    app: &App,
    options: &A2aOptions,
    version: Version,
    stored: &StoredTask,
    config: &PushConfig,
) -> Result<Value, A2aError> {
    let known = app.tasks.pushes(&stored.run.id).await.map_err(|error| internal(&error))?;
    // In 0.3 a task has one receiver unless their ids differ.
    let mut config = config.clone();
    if version == Version::V0_3 && config.id.is_none() {
        config.id = Some(stored.run.id.to_string());
    }
    let is_new = !known.iter().any(|push| Some(&push.id) == config.id.as_ref());
    if is_new && known.len() >= MAX_CONFIGS {
        let message = format!("the task has {MAX_CONFIGS} receivers of push notifications already");
        return Err(A2aError::new(ErrorKind::UnsupportedOperation, message));
    }
    let mut push = push_row(options, version, &stored.run.id, stored.run.last_event, &config).await?;
    if stored.run.life.state.is_final() {
        push.state = PushState::Done;
    }
    app.tasks.put_push(&push).await.map_err(|error| internal(&error))?;
    app.core.supervisor.hub().wake();
    Ok(wire::write_push(version, stored.run.id.as_str(), &config_of(&push)))
}

/// A receiver. Without an id the first.
pub(super) async fn get(
    app: &App,
    version: Version,
    stored: &StoredTask,
    id: Option<&str>,
) -> Result<Value, A2aError> {
    let known = app.tasks.pushes(&stored.run.id).await.map_err(|error| internal(&error))?;
    let found = known.iter().find(|push| id.is_none_or(|id| push.id == id)).ok_or_else(|| {
        A2aError::new(ErrorKind::TaskNotFound, "the task has no such receiver of push notifications")
            .with("taskId", stored.run.id.as_str())
    })?;
    Ok(wire::write_push(version, stored.run.id.as_str(), &config_of(found)))
}

/// All receivers of a task.
pub(super) async fn list(app: &App, version: Version, stored: &StoredTask) -> Result<Value, A2aError> {
    let known = app.tasks.pushes(&stored.run.id).await.map_err(|error| internal(&error))?;
    let id = stored.run.id.as_str();
    let list: Vec<Value> = known.iter().map(|push| wire::write_push(version, id, &config_of(push))).collect();
    Ok(match version {
        Version::V0_3 => Value::Array(list),
        Version::V1_0 => json!({"configs": list, "nextPageToken": ""}),
    })
}

fn config_of(push: &PushRow) -> PushConfig {
    PushConfig {
        id: Some(push.id.clone()),
        url: push.url.clone(),
        token: push.token.clone(),
        authentication: push
            .scheme
            .clone()
            .map(|scheme| Authentication { scheme, credentials: push.credentials.clone() }),
    }
}
