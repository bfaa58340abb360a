//! All runs: filters, newest first.

use std::sync::Arc;

use axum::extract::State;
use cliq_runs::{RunCursor, RunFilter, RunId, RunState};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::{ago, empty, state, took, usage};
use crate::page::{Page, show};
use crate::visitor::Visitor;
use cliq_web::Core;
use cliq_web::{Query, RunSummary, list_runs};

const PAGE: u32 = 50;

#[derive(Debug, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    state: String,
    #[serde(default)]
    team: String,
    cursor: Option<String>,
}

/// The list of runs.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
) -> Page {
    let filter = RunFilter {
        states: RunState::parse(&filters.state).into_iter().collect(),
        team: Some(filters.team.trim().to_owned()).filter(|team| !team.is_empty()),
        instance: None,
        after: filters.cursor.as_deref().and_then(RunId::parse).map(RunCursor),
        limit: PAGE,
    };
    let (runs, next) = list_runs(&core, filter).await?;
    let counts = core.runs.counts().await?;
    let all: u64 = counts.iter().map(|(_, n)| n).sum();
    let link = |state: &str, cursor: Option<&str>| {
        let mut fields = vec![("state", state), ("team", filters.team.trim())];
        fields.extend(cursor.map(|cursor| ("cursor", cursor)));
        fields.retain(|(_, value)| !value.is_empty());
        format!("/?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
    };
    let content = html! {
        h1 { "Runs" }
        nav.filters #counts data-live aria-label="Filter by state" {
            a href=(link("", None)) aria-current=[filters.state.is_empty().then_some("true")] { "all " span.n { (all) } }
            @for (state, n) in counts.iter().filter(|(state, n)| *n > 0 || state.as_str() == filters.state) {
                a href=(link(state.as_str(), None)) aria-current=[(state.as_str() == filters.state).then_some("true")] {
                    (state.as_str()) " " span.n { (n) }
                }
            }
        }
        form.inline method="get" action="/" {
            input type="hidden" name="state" value=(filters.state);
            label for="team" { "Team" }
            input #team name="team" value=(filters.team) placeholder="@scope/name";
            button type="submit" { "Filter" }
        }
        div #runs data-live { (table(&runs)) }
        @if let Some(next) = next { p { a rel="next" href=(link(&filters.state, Some(&next))) { "Older runs" } } }
    };
    show(&visitor, "Runs", "/", &html! { div data-changes="/live" { (content) } })
}

fn table(runs: &[RunSummary]) -> Markup {
    if runs.is_empty() {
        return empty("No runs yet. “New run” starts one; runs of registered projects are shown too.");
    }
    html! {
        table {
            thead { tr { th { "State" } th { "Team" } th { "Run" } th { "Asked for" } th { "Took" } th { "Used" } th { "Why" } } }
            tbody {
                @for run in runs {
                    tr {
                        td { (state(run.state)) }
                        td { (run.team) }
                        td { a href=(format!("/runs/{}", run.id)) { code { (short(&run.id)) } } }
                        td { (ago(&run.queued_at)) " by " (run.caller) }
                        td data-label="took" { (took(run.started_at.as_deref(), run.ended_at.as_deref())) }
                        td data-label="used" { (usage(&run.usage)) }
                        td.why { (run.reason.as_deref().unwrap_or_default()) }
                    }
                }
            }
        }
    }
}

/// The end of an id, which is its random part.
pub(super) fn short(id: &str) -> &str {
    id.rsplit('-').next().unwrap_or(id)
}
