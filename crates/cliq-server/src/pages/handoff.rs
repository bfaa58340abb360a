//! A handoff, readable.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde_json::Value;

use super::runs::short;
use super::text::shown;
use super::{Page, Visitor, markdown, show};
use crate::api::{Path, read_handoff};
use crate::app::App;

/// The most bytes of a part that are shown.
const MAX_PART: usize = 60_000;

/// The page of a handoff.
pub(super) async fn page(
    visitor: Visitor,
    State(app): State<Arc<App>>,
    Path((id, from, to)): Path<(String, String, String)>,
) -> Page {
    let run = app.run(&id).await?;
    app.project(&run)?;
    let text = read_handoff(&run, &from, &to)?;
    let value: Value = serde_json::from_str(&text).unwrap_or_default();
    let url = format!("/api/v1/runs/{id}/handoffs/{from}/{to}");
    let content = html! {
        h1 { (from) " → " (to) }
        p { a href=(format!("/runs/{id}")) { (run.team) " " (short(&id)) } " · " a href=(url) { "as JSON" } }
        (verdict(&value))
        @if let Some(text) = value["text"].as_str() {
            div.prose.card { (markdown::render(&shown(cut(text).as_bytes()))) }
        }
        @for key in ["data", "checks", "artifacts", "history"] {
            @if let Some(part) = value.get(key).filter(|part| !is_empty(part)) {
                h2 { (key) }
                pre { (shown(cut(&format!("{part:#}")).as_bytes())) }
            }
        }
        @if value.is_null() { pre { (shown(cut(&text).as_bytes())) } }
    };
    show(&visitor, &format!("{from} to {to}"), "", &content)
}

/// What a gate decided, where the handoff is one of a gate.
fn verdict(value: &Value) -> Markup {
    let verdict = value["verdict"]
        .as_str()
        .map(str::to_owned)
        .or_else(|| value.get("verdict").filter(|verdict| !verdict.is_null()).map(ToString::to_string));
    let round = value["iteration"].as_u64();
    html! {
        @if let Some(verdict) = verdict {
            p.warning { strong { (shown(verdict.as_bytes())) } @if let Some(round) = round { " in evaluation " (round) } }
        }
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_array().is_some_and(Vec::is_empty)
        || value.as_object().is_some_and(serde_json::Map::is_empty)
}

fn cut(text: &str) -> String {
    let mut end = MAX_PART.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let more = text.len() - end;
    if more == 0 {
        text.to_owned()
    } else {
        format!("{}\n… {more} more bytes: the JSON has all", &text[..end])
    }
}
