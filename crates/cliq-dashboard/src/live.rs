//! A stream of notifications for pages that are not about one run.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use serde::Deserialize;
use tokio::time::Instant;

use crate::visitor::Visitor;
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

/// Sends `change` whenever runs have changed since the page was made.
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
    let stopping = core.stopping.clone();
    let body = stream::unfold((changes, stopping, None), async |(mut changes, stopping, last)| {
        let mut sent = last;
        let frame: &'static [u8] = match last {
            None => {
                sent = Some(Instant::now() - PAUSE);
                b"retry: 1000\n\n"
            }
            Some(at) => tokio::select! {
                () = stopping.cancelled() => return None,
                changed = changes.changed() => {
                    changed.ok()?;
                    // The first change is sent at once.
                    tokio::time::sleep_until(at + PAUSE).await;
                    changes.mark_unchanged();
                    sent = Some(Instant::now());
                    b"event: change\ndata: {}\n\n"
                }
                () = tokio::time::sleep(HEARTBEAT) => b": still here\n\n",
            },
        };
        let item = Ok::<Bytes, std::convert::Infallible>(Bytes::from_static(frame));
        Some((item, (changes, stopping, sent)))
    });
    ([("content-type", "text/event-stream"), ("x-accel-buffering", "no")], Body::from_stream(body))
}
