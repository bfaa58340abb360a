//! Usage of language models over time: by day, team and model.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use cliq_model::RunTotals;
use maud::{Markup, html};
use serde::Deserialize;

use crate::chart::{Bar, bars, columns};
use crate::elements::{count, empty};
use crate::page::{Page, show};
use crate::visitor::Visitor;
use cliq_supervisor::internals::clock;
use cliq_web::{Core, Query};

/// Spans of days that can be chosen.
const SPANS: [u64; 4] = [7, 30, 90, 365];
const DAY: u64 = 86_400;

#[derive(Debug, Deserialize)]
pub(super) struct Span {
    days: Option<u64>,
}

/// A row of a table: name, number of runs, usage.
type Sum = (String, u64, RunTotals);

/// The page of usage.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Query(span): Query<Span>) -> Page {
    let days = span.days.filter(|days| SPANS.contains(days)).unwrap_or(30);
    let used = core.runs.usage(clock::ago(Duration::from_secs(days * DAY))).await?;
    let (teams, by_day) = (used.by_team(), used.by_day());
    let models: Vec<Sum> = used.models.iter().map(|row| (row.model.clone(), row.runs, row.totals)).collect();
    let has_cost = teams.iter().any(|(_, _, used)| used.cost_usd.is_some());
    let bar = |(name, _, used): &Sum| amount(name.clone(), used, has_cost);
    let content = html! {
        h1 { "Usage" }
        nav.filters aria-label="Time" {
            @for choice in SPANS {
                a href=(format!("/usage?days={choice}")) aria-current=[(choice == days).then_some("true")] { (choice) " days" }
            }
        }
        p { "Runs of the last " (days) " days. A cost is a lower bound where the cost of a run is not known." }
        @if teams.is_empty() { (empty("No runs.")) } @else {
            h2 { "By day" }
            (columns(if has_cost { "Cost by day" } else { "Tokens by day" }, &all_days(days, &by_day, has_cost)))
            details { summary { "Table" } (table("Day", &by_day)) }
            h2 { "By team" }
            (bars("By team", &teams.iter().map(bar).collect::<Vec<_>>()))
            (table("Team", &teams))
            @if !models.is_empty() {
                h2 { "By model" }
                p.quiet { "Runs that have ended." }
                (bars("By model", &models.iter().map(bar).collect::<Vec<_>>()))
                (table("Model", &models))
            }
        }
    };
    show(&visitor, "Usage", "/usage", &content)
}

fn amount(label: String, used: &RunTotals, has_cost: bool) -> Bar {
    let tokens = used.tokens();
    if has_cost {
        let cost = used.cost_usd.unwrap_or(0.0);
        Bar { label, value: cost, text: format!("${cost:.2}") }
    } else {
        Bar { label, value: tokens as f64, text: count(tokens) }
    }
}

/// Every day of the span, those without runs too.
fn all_days(days: u64, rows: &[Sum], has_cost: bool) -> Vec<Bar> {
    let known: HashMap<&str, &RunTotals> = rows.iter().map(|(day, _, used)| (day.as_str(), used)).collect();
    let nothing = RunTotals::default();
    let day = |ago: u64| {
        let at = clock::ago(Duration::from_secs(ago * DAY));
        let day: String = at.to_string().chars().take(10).collect();
        let used = known.get(day.as_str()).copied().unwrap_or(&nothing);
        // Month and day.
        amount(day.chars().skip(5).collect(), used, has_cost)
    };
    (0..days).rev().map(day).collect()
}

fn table(title: &str, rows: &[Sum]) -> Markup {
    html! {
        table {
            thead { tr { th { (title) } th.number { "Runs" } th.number { "Tokens in" } th.number { "Tokens out" } th.number { "Cost" } } }
            tbody {
                @for (name, runs, used) in rows {
                    tr {
                        td { (name) }
                        td.number data-label="runs" { (runs) }
                        td.number data-label="in" { (count(used.tokens_in)) }
                        td.number data-label="out" { (count(used.tokens_out)) }
                        td.number data-label="cost" { @if let Some(cost) = used.cost_usd { "$" (format!("{cost:.4}")) } @else { "–" } }
                    }
                }
            }
        }
    }
}
