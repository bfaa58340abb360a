//! A stream of notifications for pages that are not about one run.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::text::shown;
use crate::visitor::Visitor;
use cliq_supervisor::Words;
use cliq_web::{Core, Query};

/// Changes that follow each other within this time are one.
const PAUSE: Duration = Duration::from_millis(500);
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Number of changes that a page shows.
#[derive(Debug, Deserialize)]
pub(super) struct Since {
    since: Option<u64>,
}

/// Returns the address of the stream for a page that is made now.
pub(super) fn address(core: &Core) -> String {
    format!("/live?since={}", *core.supervisor.hub().changes().borrow())
}

/// Sends `change` whenever runs have changed since the page was made, and `words` of agents at work.
pub(super) async fn stream(
    _: Visitor,
    State(core): State<Arc<Core>>,
    Query(since): Query<Since>,
) -> impl IntoResponse {
    let mut changes = core.supervisor.hub().changes();
    // Changes between the making of the page and this request are news to it.
    let is_behind = since.since.is_some_and(|since| since != *changes.borrow_and_update());
    if is_behind {
        changes.mark_changed();
    }
    let state = Following {
        changes,
        words: core.supervisor.hub().listen(),
        stopping: core.stopping.clone(),
        has_begun: false,
        next: Instant::now(),
        is_due: false,
    };
    let body = stream::unfold(state, async |mut state| {
        let frame = state.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(frame), state))
    });
    ([("content-type", "text/event-stream"), ("x-accel-buffering", "no")], Body::from_stream(body))
}

/// Reader of the stream.
struct Following {
    changes: watch::Receiver<u64>,
    words: broadcast::Receiver<Arc<Words>>,
    stopping: CancellationToken,
    has_begun: bool,
    /// Time before which no further change is sent.
    next: Instant,
    /// Whether a change is to be sent.
    is_due: bool,
}

impl Following {
    /// Returns the next frame, or `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        loop {
            let (next, is_due) = (self.next, self.is_due);
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                changed = self.changes.changed(), if !is_due => {
                    changed.ok()?;
                    self.is_due = true;
                }
                // The first change is sent at once.
                () = tokio::time::sleep_until(next), if is_due => {
                    self.changes.mark_unchanged();
                    self.is_due = false;
                    self.next = Instant::now() + PAUSE;
                    return Some(Bytes::from_static(b"event: change\ndata: {}\n\n"));
                }
                words = self.words.recv() => match words {
                    Ok(words) => return Some(frame(&words)),
                    // What was lost is old: the next words of each phase replace it.
                    Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return None,
                },
                () = tokio::time::sleep(HEARTBEAT) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
    }
}

/// Frame with the words of a phase: `{"of": "RUN/PHASE", "text": "…"}`.
fn frame(words: &Words) -> Bytes {
    let data = json!({"of": format!("{}/{}", words.run, words.phase), "text": shown(words.text.as_bytes())});
    format!("event: words\ndata: {data}\n\n").into()
}
