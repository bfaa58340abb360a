//! Raw events of a run, in parts.

use std::sync::Arc;

use axum::extract::State;
use cliq_web::{Core, Path, Query};
use maud::html;
use serde::Deserialize;

use super::head::{Tab, head};
use crate::elements::empty;
use crate::page::{Page, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Number of events of a part.
const PART: i64 = 100;

#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    /// Events after this number; the newest without it.
    after: Option<i64>,
}

/// The page.
pub(crate) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Page {
    let run = core.run(&id).await?;
    let after = part.after.unwrap_or(run.last_event - PART).max(0);
    let rows = core.runs.run_events(&run.id, after, u32::try_from(PART).unwrap_or(u32::MAX)).await?;
    let last = rows.last().map_or(after, |row| row.id);
    let link = |after: i64| format!("/runs/{id}/events?after={}", after.max(0));
    let content = html! {
        (head(&run, Tab::Events))
        p.facts {
            span { (run.last_event) " events" }
            a href=(format!("/api/v1/runs/{id}/events")) { "as JSON" }
            @if after > 0 { a href=(link(0)) { "the first" } a href=(link(after - PART)) { "earlier" } }
            @if last < run.last_event { a href=(link(last)) { "later" } a href=(format!("/runs/{id}/events")) { "the newest" } }
        }
        div #events data-live[part.after.is_none()] {
            @if rows.is_empty() { (empty("No events.")) }
            @for row in &rows {
                details {
                    summary { span.quiet { (row.id) " " (row.ts) " " } (row.kind) }
                    pre { (shown(pretty(&row.data).as_bytes())) }
                }
            }
        }
    };
    let events = super::events_of(&run);
    show(&visitor, &format!("Events of {}", run.title), "", &html! { div data-events=[events] { (content) } })
}

fn pretty(data: &str) -> String {
    let value: Option<serde_json::Value> = serde_json::from_str(data).ok();
    value.map_or_else(|| data.to_owned(), |value| format!("{value:#}"))
}
