//! Usage of the last 30 days by team.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use maud::html;

use crate::elements::{count, empty};
use crate::page::{Page, show};
use crate::visitor::Visitor;
use cliq_supervisor::clock;
use cliq_web::Core;

const DAYS: u64 = 30;

/// The page of usage.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let rows = core.runs.totals(&clock::ago(Duration::from_secs(DAYS * 86_400))).await?;
    let content = html! {
        h1 { "Usage" }
        p { "Runs of the last " (DAYS) " days. A cost is a lower bound where the cost of a run is not known." }
        @if rows.is_empty() { (empty("No runs.")) } @else {
            table {
                thead { tr { th { "Team" } th { "Runs" } th { "Tokens in" } th { "Tokens out" } th { "Cost" } } }
                tbody {
                    @for (team, runs, used) in &rows {
                        tr {
                            td { (team) }
                            td.number { (runs) }
                            td.number { (count(used.tokens_in)) }
                            td.number { (count(used.tokens_out)) }
                            td.number { @if let Some(cost) = used.cost_usd { "$" (format!("{cost:.4}")) } @else { "–" } }
                        }
                    }
                }
            }
        }
    };
    show(&visitor, "Usage", "/usage", &content)
}
