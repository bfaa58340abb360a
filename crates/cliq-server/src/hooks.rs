//! Webhooks: `POST /hooks/NAME` (docs/triggers.md). Senders have no token: each request is signed.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use cliq_triggers::{Accepted, HookRefusal, MAX_BODY};
use cliq_web::{Path, Problem, post};
use http_body_util::BodyExt;
use serde_json::json;

use crate::app::App;

/// Deadline for the whole body.
const BODY: Duration = Duration::from_secs(10);

/// Bytes of a body that is too large after which its connection is closed.
const DISCARDED: usize = 8 * MAX_BODY;

/// Routes of webhooks.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/hooks/{name}", post(accept))
        .method_not_allowed_fallback(async || Problem::method_not_allowed())
}

/// Stores a delivery. The response is sent before anything starts.
async fn accept(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = read(body).await?;
    let headers = texts_of(&parts.headers);
    match app.core.triggers.accept(&name, &headers, &body).await {
        Ok(Accepted::Stored(id)) => {
            Ok((StatusCode::ACCEPTED, axum::Json(json!({"status": "accepted", "firing": id})))
                .into_response())
        }
        Ok(Accepted::Known(id)) => Ok(axum::Json(json!({"status": "known", "firing": id})).into_response()),
        Ok(Accepted::Challenge(text)) => {
            Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response())
        }
        Err(refusal) => {
            if !matches!(refusal, HookRefusal::Unknown) {
                tracing::warn!(trigger = name, %refusal, "refused a delivery");
            }
            Err(problem(refusal))
        }
    }
}

/// Headers as texts. Names are in lower case; of several with one name the first counts.
fn texts_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |name: &header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    headers.keys().filter_map(|name| Some((name.as_str().to_owned(), text(name)?.to_owned()))).collect()
}

/// Reads a body of at most [`MAX_BODY`] bytes. A larger one is read a little further, so that its sender gets the response and no broken
/// connection.
async fn read(body: Body) -> Result<Vec<u8>, Problem> {
    let (mut body, mut bytes, mut size) = (body, Vec::new(), 0);
    let reading = async {
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|error| Problem::bad_request(format!("the body cannot be read: {error}")))?;
            let Ok(data) = frame.into_data() else { continue };
            size += data.len();
            if size <= MAX_BODY {
                bytes.extend_from_slice(&data);
            } else if size > DISCARDED {
                break;
            }
        }
        if size > MAX_BODY { Err(Problem::too_large(MAX_BODY)) } else { Ok(()) }
    };
    match tokio::time::timeout(BODY, reading).await {
        Ok(read) => read.map(|()| bytes),
        Err(_) => Err(Problem::timeout()),
    }
}

fn problem(refusal: HookRefusal) -> Problem {
    let detail = refusal.to_string();
    match refusal {
        HookRefusal::Unknown => Problem::not_found(detail),
        HookRefusal::NoSecret => Problem::unavailable(detail),
        HookRefusal::Signature(_) => Problem { detail, ..Problem::unauthorized() },
        HookRefusal::Malformed(_) => Problem::bad_request(detail),
        HookRefusal::Replayed => Problem::conflict(detail),
        HookRefusal::Store(error) => error.into(),
    }
}
