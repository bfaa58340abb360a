//! The audit log: newest first, by actor. For admins.

use std::sync::Arc;

use axum::extract::State;
use cliq_model::{AuditEntry, AuditFilter, Scope};
use cliq_web::{Core, Query};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::{ago, empty};
use crate::page::{Page, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Number of entries on a page.
const PAGE: u32 = 100;

/// Filters, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    actor: String,
    before: Option<i64>,
}

/// The audit log.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
) -> Page {
    visitor.demand(Scope::Admin)?;
    let actor = filters.actor.trim().replace('\0', "");
    let filter = AuditFilter {
        actor: Some(actor.clone()).filter(|actor| !actor.is_empty()),
        before: filters.before,
        limit: PAGE + 1,
        ..AuditFilter::default()
    };
    let mut entries = core.audit.audit(&filter).await?;
    let has_more = entries.len() > PAGE as usize;
    entries.truncate(PAGE as usize);
    let older = entries.last().filter(|_| has_more).map(|last| {
        let fields = [("actor", actor.clone()), ("before", last.id.to_string())];
        format!("/audit?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
    });
    let content = html! {
        h1 { "Audit log" }
        p { "Actions by the API, pages, commands, MCP and A2A. Entries are never changed or removed. " code { "cliq audit --json" } " exports them." }
        form.bar method="get" action="/audit" role="search" aria-label="Filter the audit log" {
            div.field { label for="actor" { "Actor" } input #actor name="actor" value=(actor) placeholder="name or mail address"; }
            button type="submit" { "Filter" }
            @if !actor.is_empty() || filters.before.is_some() { a.button.ghost href="/audit" { "Clear" } }
        }
        @if entries.is_empty() { (empty("No actions are recorded.")) } @else {
            table {
                thead { tr { th.number { "Nr." } th { "Action" } th { "Actor" } th { "Outcome" } th { "Time" } } }
                tbody { @for entry in &entries { (row(entry)) } }
            }
        }
        @if let Some(older) = older { p { a href=(older) { "Older entries" } } }
    };
    show(&visitor, "Audit log", "/audit", &content)
}

fn row(entry: &AuditEntry) -> Markup {
    let action = &entry.action;
    html! {
        tr {
            td.number { (entry.id) }
            td.title { strong { (shown(action.action.as_bytes())) } div.quiet { (shown(action.target.as_bytes())) } }
            td data-label="by" {
                span {
                    (shown(action.actor.as_bytes())) " " span.quiet { (action.via) }
                    @if let Some(peer) = &action.peer { " " span.quiet { (peer) } }
                }
            }
            td data-label="outcome" { (action.outcome) }
            td data-label="time" { (ago(action.ts)) }
        }
    }
}
