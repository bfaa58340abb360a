//! The events of a run: a page of them, or a stream that goes on (server-sent events).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use utoipa::{IntoParams, ToSchema};

use super::errors::Reading;
use crate::app::App;
use crate::wire_event::frame;
use cliq_protocol::RunId;
use cliq_supervisor::{EventTail, TailItem, Words};
use cliq_web::Problem;
use cliq_web::Reader;
use cliq_web::{Path, Query};

/// The most events of a page.
const MAX_PAGE: u32 = 1000;
/// First bytes of a stream: reconnection time of the client in milliseconds.
const RETRY: &[u8] = b"retry: 1000\n\n";

/// A page of events.
#[derive(Serialize, ToSchema)]
pub(crate) struct EventPage {
    events: Vec<NumberedEvent>,
    /// The number of the last event of the page: `after` for the next page; `null` where no more are stored.
    next: Option<i64>,
}

/// An event with its number.
#[derive(Serialize, ToSchema)]
pub(crate) struct NumberedEvent {
    /// Number of the event, 1-based, without gaps.
    id: i64,
    /// The event (`docs/server.md`).
    #[schema(value_type = Object)]
    event: Box<RawValue>,
}

/// Range of events.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// Only events with numbers above this one. In a stream, the header `Last-Event-ID` counts more.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// The most events of a page. 200 unless said otherwise. A stream has no limit.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
    /// Whether a stream also has frames `words`: the last words of an agent at work, `{"phase", "text", "of": "RUN/PHASE"}`. They have no number and are not
    /// stored. `text` is empty when the phase no longer works.
    words: Option<bool>,
}

/// The events of a run. With `Accept: text/event-stream` a stream that goes on until the run ends: each event once, in order,
/// with its number as `id`; the last frame is the event `end`. A client that lost the connection sends the number of its last event in
/// the header `Last-Event-ID`.
#[utoipa::path(get, path = "/api/v1/runs/{id}/events", operation_id = "list_events", tag = "runs",
    params(("id" = String, Path, description = "The run."), EventsQuery),
    responses((status = 200, content((EventPage = "application/json"), (String = "text/event-stream"))),
        (status = 204, description = "A stream of a run that ended, whose client has all events."), Reading))]
pub(crate) async fn events(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Query(query): Query<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let accepts_stream = text(header::ACCEPT).is_some_and(|accept| accept.contains("text/event-stream"));
    let after = query.after.unwrap_or(0);
    if after < 0 {
        return Err(Problem::bad_request("`after` is a number from 0 on"));
    }
    if accepts_stream {
        let last =
            match headers.get("last-event-id") {
                None => None,
                Some(value) => {
                    let number =
                        value.to_str().ok().and_then(|text| text.parse::<i64>().ok()).filter(|n| *n >= 0);
                    Some(number.ok_or_else(|| {
                        Problem::bad_request("`Last-Event-ID` is not the number of an event")
                    })?)
                }
            };
        let run = app.run(&id).await?;
        let after = last.unwrap_or(after);
        if run.life.state.is_final() && after >= run.last_event {
            return Ok(StatusCode::NO_CONTENT.into_response());
        }
        return Ok(stream_of(&app, &run.id, after, query.words == Some(true)));
    }
    let limit = query.limit.unwrap_or(200);
    if !(1..=MAX_PAGE).contains(&limit) {
        return Err(Problem::bad_request(format!("`limit` is a number from 1 to {MAX_PAGE}")));
    }
    let run = app.run(&id).await?;
    let rows = app.core.runs.run_events(&run.id, after, limit).await?;
    let next = rows.last().map(|row| row.id).filter(|last| *last < run.last_event);
    let number = |row: cliq_model::RunEventRow| NumberedEvent {
        id: row.id,
        event: RawValue::from_string(row.data).unwrap_or_default(),
    };
    let page = EventPage { events: rows.into_iter().map(number).collect(), next };
    Ok(axum::Json(page).into_response())
}

/// Words of all runs.
struct Listener {
    /// Words from before the stream.
    said: Vec<Arc<Words>>,
    next: broadcast::Receiver<Arc<Words>>,
}

/// A client that reads a run's events.
struct Stream {
    tail: EventTail,
    /// Words of all runs, if they are wanted.
    words: Option<Listener>,
    run: RunId,
    began: bool,
    ended: bool,
}

fn stream_of(app: &App, run: &RunId, after: i64, with_words: bool) -> Response {
    let words = with_words.then(|| app.core.supervisor.hub().listen());
    let state = Stream {
        tail: app.core.supervisor.tail(run, after),
        words: words.map(|(said, next)| Listener { said, next }),
        run: run.clone(),
        began: false,
        ended: false,
    };
    let body = Body::from_stream(stream::unfold(state, async |mut state| {
        let bytes = state.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(bytes), state))
    }));
    // A proxy that collects what it passes on would keep events back.
    let headers = [("content-type", "text/event-stream"), ("x-accel-buffering", "no")];
    (headers, body).into_response()
}

impl Stream {
    /// The next bytes; `None` at the end. Where the store cannot be read the stream breaks, and the client comes back.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.began {
            self.began = true;
            return Some(Bytes::from_static(RETRY));
        }
        if self.ended {
            return None;
        }
        let item = tokio::select! {
            item = self.tail.next() => item,
            words = next_words(&mut self.words, &self.run) => return Some(words),
        };
        Some(match item.ok()? {
            TailItem::Events(events) => match &events[..] {
                [event] => frame(event),
                events => events.iter().map(frame).collect::<Vec<_>>().concat().into(),
            },
            TailItem::Idle => Bytes::from_static(b": still here\n\n"),
            TailItem::Stopping => {
                self.ended = true;
                Bytes::from_static(b": the server stops\nretry: 2000\n\n")
            }
            TailItem::End => {
                self.ended = true;
                Bytes::from_static(b"event: end\ndata: {}\n\n")
            }
        })
    }
}

/// Waits for the next words of a run.
async fn next_words(words: &mut Option<Listener>, run: &RunId) -> Bytes {
    let frame = |words: &Words| {
        let data = json!({"phase": words.phase, "text": words.text, "of": format!("{run}/{}", words.phase)});
        Bytes::from(format!("event: words\ndata: {data}\n\n"))
    };
    let Some(Listener { said, next }) = words else { return std::future::pending().await };
    if let Some(words) = std::iter::from_fn(|| said.pop()).find(|words| words.run == *run) {
        return frame(&words);
    }
    loop {
        match next.recv().await {
            Ok(words) if words.run == *run => return frame(&words),
            // The next words replace those that were lost.
            Ok(_) | Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return std::future::pending().await,
        }
    }
}
