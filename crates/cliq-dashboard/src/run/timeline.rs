//! Page of a run over time.

use std::sync::Arc;

use axum::extract::State;
use cliq_model::Run;
use cliq_orchestrator::Record;
use cliq_web::{Core, Path, Problem, Query};
use maud::{PreEscaped, html};
use serde::Deserialize;

use super::gantt::{Chart, draw};
use super::head::{Tab, head};
use crate::elements::empty;
use crate::page::{Page, show};
use crate::visitor::Visitor;

/// The most rows of a part of the chart.
const ROWS: usize = 200;

#[derive(Debug, Deserialize)]
pub(crate) struct Part {
    /// Index of the part, 0-based.
    #[serde(default)]
    part: usize,
}

/// The page.
pub(crate) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Page {
    let run = core.run(&id).await?;
    let chart = chart(&core, &run).await?;
    let parts = chart.rows.len().div_ceil(ROWS);
    let part = part.part.min(parts.saturating_sub(1));
    let rows = &chart.rows[part * ROWS..chart.rows.len().min((part + 1) * ROWS)];
    let picture = chart.from.map(|from| {
        let to = if chart.is_over { chart.to.unwrap_or(from) } else { cliq_fs::now_millis() };
        draw(rows, from, to, &format!("/runs/{id}?phase="))
    });
    let steps = super::steps::of(&core, &run).await?;
    let link = |part: usize| format!("/runs/{id}/timeline?part={part}");
    let content = html! {
        (head(&run, Tab::Timeline))
        div #timeline.scroll data-live tabindex="0" role="region" aria-label="Timeline" {
            @match picture {
                Some(svg) if !rows.is_empty() => (PreEscaped(svg)),
                _ => (empty("Nothing has started.")),
            }
        }
        p.facts {
            span { "green: complete" } span { "blue: at work" } span { "yellow: sent back by a gate, or dashed: waits for a person" }
            span { "red: not completed" } span { "grey line: commands" }
        }
        @if parts > 1 {
            p {
                "Part " (part + 1) " of " (parts) ", " (chart.rows.len()) " phases "
                @if part > 0 { a href=(link(part - 1)) { "before" } " " }
                @if part + 1 < parts { a href=(link(part + 1)) { "after" } }
            }
        }
        section aria-labelledby="steps-title" {
            h2 #steps-title { "Steps" }
            div #steps data-live { (steps) }
        }
    };
    let events = super::events_of(&run);
    show(
        &visitor,
        &format!("Timeline of {}", run.title),
        "",
        &html! { div data-events=[events] { (content) } },
    )
}

/// Folds the stored events of a run.
async fn chart(core: &Core, run: &Run) -> Result<Chart, Problem> {
    let mut chart = Chart::default();
    each_record(core, run, |record| chart.apply(record)).await?;
    Ok(chart)
}

/// Calls `each` with the stored events of a run, oldest first.
pub(super) async fn each_record(
    core: &Core,
    run: &Run,
    mut each: impl FnMut(&Record),
) -> Result<(), Problem> {
    const PAGE: u32 = 2000;
    let mut after = 0;
    loop {
        let rows = core.runs.run_events(&run.id, after, PAGE).await?;
        rows.iter()
            .filter_map(|row| Record::decode(row.data.as_bytes()).ok())
            .for_each(|record| each(&record));
        match rows.last() {
            Some(last) if rows.len() == PAGE as usize => after = last.id,
            _ => return Ok(()),
        }
    }
}
