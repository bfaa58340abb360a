//! The latest signals of the queue.

use std::sync::Arc;

use axum::extract::State;
use cliq_gateway::Filter;
use maud::html;

use crate::elements::{ago, badge, empty};
use crate::page::{Page, show};
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_web::Core;

/// The list of signals.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let filter = Filter { limit: Some(100), ..Filter::default() };
    let mut signals = core.signals.signals(&filter).await?;
    signals.reverse();
    let content = html! {
        h1 { "Signals" }
        @if signals.is_empty() { (empty("No signals.")) } @else {
            table {
                thead { tr { th { "Signal" } th { "Status" } th { "Type" } th { "Plan" } th { "Emitted" } th { "Result" } } }
                tbody {
                    @for signal in &signals {
                        tr {
                            td.number { (signal.id) }
                            td { (badge(signal.status.as_str())) }
                            td { (signal.kind) }
                            td { (signal.plan) " " span.quiet { (signal.project) } }
                            td { (ago(&signal.created_at)) }
                            td.why { (shown(signal.result.as_bytes())) }
                        }
                    }
                }
            }
        }
    };
    show(&visitor, "Signals", "/signals", &content)
}
