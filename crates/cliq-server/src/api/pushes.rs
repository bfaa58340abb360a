//! Push notifications of tasks of A2A: who gets them, and what became of them.

use std::sync::Arc;

use axum::extract::State;
use cliq_model::PushRow;
use cliq_protocol::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::errors::Reading;
use crate::app::App;
use cliq_web::Path;
use cliq_web::Problem;
use cliq_web::Reader;

/// A receiver of push notifications.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PushReceiver {
    /// Id, unique within the run.
    id: String,
    /// The host of its address. The address itself may be a secret.
    host: String,
    /// The version of A2A that notifications are written in.
    protocol: String,
    /// `active`; `done` when everything was delivered; `dead` when it was given up.
    state: String,
    /// The number of the last event that was delivered.
    delivered: i64,
    /// Number of failed delivery attempts for the next notification.
    attempts: i64,
    /// Since when deliveries fail, UTC.
    #[schema(value_type = Option<String>)]
    failing_since: Option<Timestamp>,
    /// When the next delivery may be tried, UTC.
    #[schema(value_type = String)]
    next_at: Timestamp,
    /// Why the last try failed.
    reason: Option<String>,
}

/// The receivers of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PushReceivers {
    receivers: Vec<PushReceiver>,
}

impl PushReceiver {
    fn of(push: PushRow) -> Self {
        let rest = push.url.split_once("://").map_or(push.url.as_str(), |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default().to_owned();
        Self {
            id: push.id,
            host,
            protocol: push.protocol,
            state: push.state.as_str().to_owned(),
            delivered: push.event,
            attempts: push.attempts,
            failing_since: push.failing_since,
            next_at: push.next_at,
            reason: push.reason,
        }
    }
}

/// The receivers of push notifications of a run that is a task of A2A, and how far their deliveries are.
#[utoipa::path(get, path = "/api/v1/runs/{id}/pushes", operation_id = "list_pushes", tag = "runs", params(("id" = String, Path, description = "The run.")),
    responses((status = 200, body = PushReceivers), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<PushReceivers>, Problem> {
    let run = app.run(&id).await?;
    let receivers = app.tasks.pushes(&run.id).await?.into_iter().map(PushReceiver::of).collect();
    Ok(axum::Json(PushReceivers { receivers }))
}
