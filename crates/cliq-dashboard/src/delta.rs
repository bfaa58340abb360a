//! Changes of a page in place of the whole page: a page that is open and fetched again and again gets the difference to what it has
//! (docs/decisions/0077-pages-send-differences.md).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use cliq_orchestrator::internals::spawn_blocking;
use serde::Serialize;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};

/// Header of requests and responses: the tag of the page that the browser has. A request without it gets the whole page, which is not kept.
const PAGE: HeaderName = HeaderName::from_static("cliq-page");
/// Maximum size of a page that is kept, in bytes.
const MAX_PAGE: u64 = 2 << 20;
/// Maximum number of pages that are kept, and their total size in bytes.
const MAX_PAGES: usize = 256;
const MAX_SIZE: usize = 16 << 20;
/// Maximum number of differences to a page that are kept.
const MAX_DIFFERENCES: usize = 8;
/// Time after which the search for a small difference is given up.
const DEADLINE: Duration = Duration::from_millis(50);

/// Part of a page: a range of the previous page, in UTF-16 units as JavaScript counts, or a new text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
enum Part {
    Copied(usize, usize),
    New(String),
}

/// Pages that were sent last.
#[derive(Debug, Default)]
pub(crate) struct SentPages(Mutex<VecDeque<Arc<SentPage>>>);

#[derive(Debug)]
struct SentPage {
    tag: String,
    text: String,
    /// Differences to this page from pages before, by their tags.
    differences: tokio::sync::Mutex<Vec<(String, Arc<str>)>>,
}

impl SentPages {
    fn find(&self, tag: &str) -> Option<Arc<SentPage>> {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.iter().rev().find(|page| page.tag == tag).cloned()
    }

    /// Keeps a page. Drops the oldest ones beyond the limits.
    fn keep(&self, text: String) -> Arc<SentPage> {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let tag = hex::encode(&digest.as_ref()[..16]);
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = pages.iter().position(|page| page.tag == tag);
        let known = place.and_then(|place| pages.remove(place));
        let page = known.unwrap_or_else(|| Arc::new(SentPage { tag, text, differences: Default::default() }));
        pages.push_back(Arc::clone(&page));
        let mut size: usize = pages.iter().map(|page| page.text.len()).sum();
        while pages.len() > 1 && (pages.len() > MAX_PAGES || size > MAX_SIZE) {
            size -= pages.pop_front().map_or(0, |page| page.text.len());
        }
        page
    }
}

impl SentPage {
    /// Returns the difference from a page to this one as JSON, or `None` if it is not much smaller than this page. Requests at the same
    /// time wait for one computation.
    async fn difference(self: &Arc<Self>, from: &Arc<Self>) -> Option<Arc<str>> {
        let mut known = self.differences.lock().await;
        let found = known.iter().find(|(tag, _)| *tag == from.tag).map(|(_, json)| Arc::clone(json));
        let json = if let Some(json) = found {
            json
        } else {
            let (old, new) = (Arc::clone(from), Arc::clone(self));
            let computed = spawn_blocking(move || serde_json::to_string(&parts(&old.text, &new.text)));
            // Without a difference the whole page is sent.
            let json: Arc<str> = computed.await.ok()?.ok()?.into();
            if known.len() < MAX_DIFFERENCES {
                known.push((from.tag.clone(), Arc::clone(&json)));
            }
            json
        };
        (json.len() < self.text.len() / 2).then_some(json)
    }
}

/// Sends a page as its difference to the one that the browser has.
pub(crate) async fn differences(
    State(sent): State<Arc<SentPages>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(tag) = request.headers().get(PAGE).and_then(|tag| tag.to_str().ok()).map(str::to_owned) else {
        return next.run(request).await;
    };
    let response = next.run(request).await;
    let is_page = response.status() == StatusCode::OK
        && response
            .headers()
            .get(header::CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
        && response.body().size_hint().exact().is_some_and(|size| size <= MAX_PAGE);
    if !is_page {
        return response;
    }
    let (mut head, body) = response.into_parts();
    // The body is a text in memory: nothing can fail here.
    let text = to_bytes(body, usize::MAX).await.ok().and_then(|bytes| String::from_utf8(bytes.into()).ok());
    let Some(text) = text else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
    let before = sent.find(&tag);
    let page = sent.keep(text);
    if let Ok(tag) = HeaderValue::from_str(&page.tag) {
        head.headers.insert(PAGE, tag);
    }
    head.headers.append(header::VARY, HeaderValue::from_static("cliq-page"));
    head.headers.remove(header::CONTENT_LENGTH);
    let difference = match before {
        Some(before) => page.difference(&before).await,
        None => None,
    };
    let body = match difference {
        Some(json) => {
            head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Body::from(json.to_string())
        }
        None => Body::from(page.text.clone()),
    };
    Response::from_parts(head, body)
}

/// Pieces of a page that stay or change as one: a tag with the text behind it, or a line of it.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut begin = 0;
    for (at, byte) in text.bytes().enumerate() {
        let end = match byte {
            b'<' => at,
            b'\n' => at + 1,
            _ => continue,
        };
        if end > begin {
            pieces.push(&text[begin..end]);
            begin = end;
        }
    }
    if begin < text.len() {
        pieces.push(&text[begin..]);
    }
    pieces
}

/// Returns the parts from which a page can be made out of another one.
fn parts(old: &str, new: &str) -> Vec<Part> {
    let (old, new) = (pieces(old), pieces(new));
    let length = |piece: &&str| piece.encode_utf16().count();
    // Place of each piece of the old page.
    let mut places = Vec::with_capacity(old.len() + 1);
    let mut at = 0;
    for piece in &old {
        places.push(at);
        at += length(piece);
    }
    places.push(at);
    let deadline = Instant::now() + DEADLINE;
    let mut parts = Vec::new();
    let mut done = 0;
    let insert = |parts: &mut Vec<Part>, from: usize, to: usize| {
        if from < to {
            parts.push(Part::New(new[from..to].concat()));
        }
    };
    for op in capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline)) {
        if let DiffOp::Equal { old_index, new_index, len } = op {
            insert(&mut parts, done, new_index);
            let (from, to) = (places[old_index], places[old_index + len]);
            parts.push(Part::Copied(from, to - from));
            done = new_index + len;
        }
    }
    insert(&mut parts, done, new.len());
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Does what the script of a page does.
    fn put_together(old: &str, parts: &[Part]) -> String {
        let old: Vec<u16> = old.encode_utf16().collect();
        let mut out = Vec::new();
        for part in parts {
            match part {
                Part::Copied(from, length) => out.extend_from_slice(&old[*from..from + length]),
                Part::New(text) => out.extend(text.encode_utf16()),
            }
        }
        String::from_utf16(&out).unwrap()
    }

    fn page() -> impl Strategy<Value = String> {
        let piece =
            prop::sample::select(vec!["<p>", "</p>", "<td class=a>", "x", "\u{1f980}", "\n", "ä", "12"]);
        prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn a_difference_makes_the_new_page_out_of_the_old_one(old in page(), new in page()) {
            prop_assert_eq!(put_together(&old, &parts(&old, &new)), new);
        }
    }

    #[test]
    fn what_stays_is_not_sent_again() {
        let row = |n: usize, word: &str| format!("<tr><td>phase {n}</td><td>{word}</td></tr>");
        let page =
            |word: &str| -> String { (0..50).map(|n| row(n, if n == 25 { word } else { "done" })).collect() };
        let parts = parts(&page("running"), &page("completed"));
        assert!(parts.contains(&Part::New("<td>completed".to_owned())), "{parts:?}");
        assert!(serde_json::to_string(&parts).unwrap().len() < 100, "{parts:?}");
    }

    #[tokio::test]
    async fn a_difference_is_made_once_and_only_if_it_is_small() {
        let sent = SentPages::default();
        let (old, new) = (sent.keep("<p>one".repeat(20)), sent.keep("<p>one".repeat(20) + "<p>two"));
        let difference = new.difference(&old).await.unwrap();
        assert_eq!(&*difference, "[[0,120],\"<p>two\"]");
        assert!(Arc::ptr_eq(&difference, &new.difference(&old).await.unwrap()));
        assert_eq!(new.difference(&sent.keep("<b>other".to_owned())).await, None);
    }

    #[test]
    fn old_pages_are_dropped() {
        let sent = SentPages::default();
        let first = sent.keep("first".to_owned());
        assert_eq!(sent.find(&first.tag).unwrap().text, "first");
        for n in 0..MAX_PAGES {
            sent.keep(format!("page {n}"));
        }
        assert!(sent.find(&first.tag).is_none());
        let large = sent.keep("x".repeat(MAX_SIZE + 1));
        assert!(sent.find(&large.tag).is_some(), "the last page is always kept");
        assert_eq!(sent.0.lock().unwrap().len(), 1);
    }
}
