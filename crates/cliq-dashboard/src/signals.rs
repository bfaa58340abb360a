//! Signals of the queue: filters in the address, newest first, with payload and result.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_gateway::{Filter, Signal, SignalStatus};
use cliq_model::{Instance, Scope};
use cliq_web::{Core, Path, Problem, Query};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::{ago_text, badge, empty, folded, output};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Number of signals on a page.
const PAGE: u32 = 100;

/// Filters of the list, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    status: String,
    #[serde(default)]
    project: String,
    #[serde(default)]
    plan: String,
}

impl Filters {
    fn link(&self, status: &str) -> String {
        let fields = [("status", status), ("project", &self.project), ("plan", self.plan.trim())];
        let fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        format!("/signals?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
    }

    fn is_any(&self) -> bool {
        [&self.status, &self.project, &self.plan].iter().any(|text| !text.trim().is_empty())
    }

    fn to_filter(&self, instances: &[Instance]) -> Filter {
        let project = instances.iter().find(|instance| instance.id == self.project);
        // A project that is not registered has no signals here.
        let unknown = || (!self.project.is_empty()).then(|| self.project.clone());
        Filter {
            project: project.map(|instance| instance.path.to_string()).or_else(unknown),
            plan: Some(self.plan.trim().to_owned()).filter(|plan| !plan.is_empty()),
            status: SignalStatus::parse(&self.status),
            limit: Some(PAGE),
        }
    }
}

/// The list of signals.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
) -> Page {
    let instances = core.runs.instances().await?;
    let mut signals = core.signals.signals(&filters.to_filter(&instances)).await?;
    signals.reverse();
    let content = html! {
        h1 { "Signals" }
        p { "Messages to and from plans, newest first." }
        nav.filters aria-label="Filter by status" {
            a href=(filters.link("")) aria-current=[filters.status.is_empty().then_some("true")] { "all" }
            @for status in SignalStatus::ALL {
                @let word = status.as_str();
                a href=(filters.link(word)) aria-current=[(word == filters.status).then_some("true")] { (word) }
            }
        }
        form.bar method="get" action="/signals" role="search" aria-label="Filter signals" {
            input type="hidden" name="status" value=(filters.status);
            div.field {
                label for="project" { "Project" }
                select #project name="project" {
                    option value="" { "any" }
                    @for instance in &instances {
                        option value=(instance.id) selected[instance.id == filters.project] { (instance.path.file_name().unwrap_or(instance.path.as_str())) }
                    }
                }
            }
            div.field { label for="plan" { "Plan" } input #plan name="plan" value=(filters.plan); }
            button type="submit" { "Filter" }
            @if filters.is_any() { a.button.ghost href="/signals" { "Clear" } }
        }
        @if signals.is_empty() {
            (empty(if filters.is_any() { "No signal fits. “Clear” shows all." } else { "No signals. Agents of a plan emit them; `cliq signal emit` does too." }))
        } @else {
            (table(&signals, visitor.may_run()))
            @if signals.len() as u64 == u64::from(PAGE) { p.quiet { "The newest " (PAGE) ". A filter, or " code { "cliq signal list" } ", shows older ones." } }
        }
    };
    show(&visitor, "Signals", "/signals", &content)
}

fn table(signals: &[Signal], may_run: bool) -> Markup {
    html! {
        table {
            thead { tr { th.number { "Nr." } th { "Signal" } th { "Status" } th { "Emitted" } th { "Payload" } th { "Result" } } }
            tbody {
                @for signal in signals {
                    tr {
                        td.number { (signal.id) }
                        td.title { strong { (signal.kind) } div.quiet { (signal.plan) " · " (signal.project) } }
                        td {
                            (badge(signal.status.as_str()))
                            @if may_run && signal.status == SignalStatus::Failed {
                                form.inline method="post" action=(format!("/signals/{}/retry", signal.id)) {
                                    button type="submit" aria-label=(format!("Retry signal {}", signal.id)) { "Retry" }
                                }
                            }
                        }
                        td data-label="emitted" { (ago_text(&signal.created_at)) }
                        td.why { (payload(&signal.payload)) }
                        td.why { (folded(&signal.result)) }
                    }
                }
            }
        }
    }
}

/// A short payload in the row, a long one folded.
fn payload(text: &str) -> Markup {
    const SHORT: usize = 60;
    let value: Option<serde_json::Value> = serde_json::from_str(text).ok();
    let pretty = value.map_or_else(|| text.to_owned(), |value| format!("{value:#}"));
    html! {
        @if text.chars().count() <= SHORT { code { (shown(text.as_bytes())) } } @else {
            details.folded { summary { "payload" } (output("Payload", &shown(pretty.as_bytes()))) }
        }
    }
}

/// Makes a failed signal pending again and shows the list.
pub(super) async fn retry(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<i64>,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Run)?;
    if !core.signals.retry(id).await.map_err(Problem::from)? {
        return Err(Problem::conflict("only a failed signal can be made pending again").into());
    }
    Ok(Redirect::to("/signals"))
}
