//! A stream of notifications for pages that are not about one run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use bytes::{Bytes, BytesMut};
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
/// Time that is added to the pause for each open page: fetching a page takes a thirtieth of it.
const PAUSE_PER_PAGE: Duration = Duration::from_millis(20);
/// Maximum time between two notifications of changes, however many pages are open.
const MAX_PAUSE: Duration = Duration::from_secs(5);
/// Words that follow each other within this time are sent together.
const WORDS_PAUSE: Duration = Duration::from_millis(150);
/// Maximum number of words that are kept as they are sent.
const FRAMES: usize = 64;
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Number of changes that a page shows.
#[derive(Debug, Deserialize)]
pub(super) struct Since {
    since: Option<u64>,
}

/// Returns the address of the stream for a page that is made now.
pub(super) fn address(core: &Core) -> String {
    since(*core.supervisor.hub().changes().borrow())
}

/// Returns the address of the stream for a page that was made after this number of changes.
pub(super) fn since(changes: u64) -> String {
    format!("/live?since={changes}")
}

/// Sends `change` when runs have changed since the page was made, and `words` of agents at work.
pub(super) async fn stream(
    _: Visitor,
    State(core): State<Arc<Core>>,
    Extension(pages): Extension<Arc<OpenPages>>,
    Query(since): Query<Since>,
) -> impl IntoResponse {
    let mut changes = core.supervisor.hub().changes();
    // Changes between the making of the page and this request are news to it.
    let is_behind = since.since.is_some_and(|since| since != *changes.borrow_and_update());
    if is_behind {
        changes.mark_changed();
    }
    let now = Instant::now();
    // So are words: those that the page has already change nothing.
    let (said, words) = core.supervisor.hub().listen();
    let unsent = said.iter().flat_map(|words| pages.frame(words)).collect();
    let state = Following {
        words,
        stopping: core.stopping.clone(),
        core,
        pages,
        changes,
        has_begun: false,
        next_change: now,
        is_due: false,
        next_words: now,
        unsent,
    };
    let body = stream::unfold(state, async |mut state| {
        let frame = state.next().await?;
        Some((Ok::<Bytes, std::convert::Infallible>(frame), state))
    });
    ([("content-type", "text/event-stream"), ("x-accel-buffering", "no")], Body::from_stream(body))
}

/// Facts that all open pages share.
#[derive(Debug)]
pub(super) struct OpenPages {
    began: Instant,
    /// Words with the frames that were made of them, the newest last.
    frames: Mutex<VecDeque<(Arc<Words>, Bytes)>>,
}

impl Default for OpenPages {
    fn default() -> Self {
        Self { began: Instant::now(), frames: Mutex::default() }
    }
}

impl OpenPages {
    /// Returns the frame of words. Made once for all pages.
    fn frame(&self, words: &Arc<Words>) -> Bytes {
        let mut frames = self.frames.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, frame)) = frames.iter().rev().find(|(known, _)| Arc::ptr_eq(known, words)) {
            return frame.clone();
        }
        let frame = frame(words);
        frames.push_back((Arc::clone(words), frame.clone()));
        if frames.len() > FRAMES {
            frames.pop_front();
        }
        frame
    }

    /// Returns the earliest time of the next notification of a change. All pages have the same times, so that they share a rendering. The
    /// interval grows with the number of open pages, which bounds what they cost together.
    fn next_change(&self, now: Instant, open: usize) -> Instant {
        let pages = u32::try_from(open).unwrap_or(u32::MAX);
        let pause = PAUSE_PER_PAGE.saturating_mul(pages).clamp(PAUSE, MAX_PAUSE);
        let earliest = now.duration_since(self.began) + pause / 2;
        let ticks = earliest.as_millis() / pause.as_millis() + 1;
        self.began + pause.saturating_mul(u32::try_from(ticks).unwrap_or(u32::MAX))
    }
}

/// Reader of the stream.
struct Following {
    core: Arc<Core>,
    pages: Arc<OpenPages>,
    changes: watch::Receiver<u64>,
    words: broadcast::Receiver<Arc<Words>>,
    stopping: CancellationToken,
    has_begun: bool,
    /// Time before which no further change is sent.
    next_change: Instant,
    /// Whether a change is to be sent.
    is_due: bool,
    /// Time before which no further words are sent.
    next_words: Instant,
    /// Words that are to be sent.
    unsent: BytesMut,
}

impl Following {
    /// Returns the next frames, or `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.has_begun, true) {
            return Some(Bytes::from_static(b"retry: 1000\n\n"));
        }
        loop {
            let (next_change, is_due) = (self.next_change, self.is_due);
            let (next_words, has_words) = (self.next_words, !self.unsent.is_empty());
            tokio::select! {
                () = self.stopping.cancelled() => return None,
                changed = self.changes.changed(), if !is_due => {
                    changed.ok()?;
                    self.is_due = true;
                }
                // The first change is sent at once.
                () = tokio::time::sleep_until(next_change), if is_due => {
                    self.changes.mark_unchanged();
                    self.is_due = false;
                    self.next_change = self.pages.next_change(Instant::now(), self.core.supervisor.hub().listeners());
                    return Some(Bytes::from_static(b"event: change\ndata: {}\n\n"));
                }
                // So are the first words.
                () = tokio::time::sleep_until(next_words), if has_words => {
                    self.next_words = Instant::now() + WORDS_PAUSE;
                    return Some(self.unsent.split().freeze());
                }
                words = self.words.recv() => match words {
                    Ok(words) => self.unsent.extend_from_slice(&self.pages.frame(&words)),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_notified_at_the_same_times_and_less_often_if_there_are_many() {
        let pages = OpenPages::default();
        let at = |millis: u64| pages.began + Duration::from_millis(millis);
        assert_eq!(pages.next_change(at(0), 1), at(500));
        assert_eq!(pages.next_change(at(240), 1), pages.next_change(at(10), 25));
        assert_eq!(
            pages.next_change(at(260), 1),
            at(1000),
            "at least half of the pause is between two changes"
        );
        assert_eq!(pages.next_change(at(100), 100), at(2000));
        assert_eq!(pages.next_change(at(1100), 100), at(4000));
        assert_eq!(pages.next_change(at(100), 100_000), at(5000));
    }
}
