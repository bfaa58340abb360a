//! Usage of a run by phase and by model.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use cliq_model::RunTotals;
use cliq_web::{Core, Path, find_run};
use maud::{Markup, html};
use serde_json::Value;

use super::head::{Tab, head};
use crate::chart::{Bar, bars};
use crate::elements::{count, empty, is_estimated};
use crate::page::{Page, show};
use crate::visitor::Visitor;

/// Usage of a phase or a model.
#[derive(Default)]
struct Used {
    totals: RunTotals,
    /// Whether a part of the counts is an estimate.
    is_estimated: bool,
}

impl Used {
    fn of_document(usage: &Value) -> Self {
        Self { totals: RunTotals::of_document(usage), is_estimated: is_estimated(usage) }
    }

    fn add(&mut self, other: &Self) {
        self.totals.add(&other.totals);
        self.is_estimated |= other.is_estimated;
    }
}

/// The page.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(id): Path<String>) -> Page {
    let (run, document) = find_run(&core, &id).await?;
    let (mut phases, mut models) = (Vec::new(), BTreeMap::<String, Used>::new());
    for phase in document.phases.as_array().into_iter().flatten() {
        let used = Used::of_document(&phase["usage"]);
        if used.totals.tokens() > 0 {
            phases.push((phase["name"].as_str().unwrap_or_default().to_owned(), used));
        }
        for model in phase["usage"]["models"].as_array().into_iter().flatten() {
            let name = model["model"].as_str().unwrap_or("unknown model").to_owned();
            models.entry(name).or_default().add(&Used::of_document(model));
        }
    }
    // The dearest first, then the one that used most.
    let order = |a: &Used, b: &Used| {
        let (a, b) = (&a.totals, &b.totals);
        b.cost_usd.unwrap_or(0.0).total_cmp(&a.cost_usd.unwrap_or(0.0)).then(b.tokens().cmp(&a.tokens()))
    };
    phases.sort_by(|(_, a), (_, b)| order(a, b));
    let mut models: Vec<(String, Used)> = models.into_iter().collect();
    models.sort_by(|(_, a), (_, b)| order(a, b));
    let has_cost = phases.iter().any(|(_, used)| used.totals.cost_usd.is_some());
    let chart: Vec<Bar> = phases
        .iter()
        .take(12)
        .map(|(name, used)| match used.totals.cost_usd {
            _ if !has_cost => {
                let tokens = used.totals.tokens();
                Bar { label: name.clone(), value: tokens as f64, text: count(tokens) }
            }
            cost => Bar { label: name.clone(), value: cost.unwrap_or(0.0), text: dollars(cost) },
        })
        .collect();
    let content = html! {
        (head(&run, Tab::Cost))
        div #cost data-live {
            @if phases.is_empty() { (empty("No phase reported usage of a language model.")) } @else {
                @if let Some(sentence) = dearest(&phases) { p.sentence { (sentence) } }
                h2 { "By phase" }
                (bars("Cost by phase", &chart))
                (table("Phase", &phases))
                h2 { "By model" }
                (table("Model", &models))
                @if models.iter().any(|(_, used)| used.is_estimated) {
                    p.quiet { "≈ has a part that is estimated: replies that were cancelled, timed out or killed." }
                }
            }
        }
    };
    let events = super::events_of(&run);
    show(&visitor, &format!("Cost of {}", run.title), "", &html! { div data-events=[events] { (content) } })
}

/// The phase that costs most, with its share.
fn dearest(phases: &[(String, Used)]) -> Option<String> {
    let mut all = Used::default();
    phases.iter().for_each(|(_, used)| all.add(used));
    let (name, used) = phases.first()?;
    let all = all.totals.cost_usd.filter(|all| *all > 0.0)?;
    let cost = used.totals.cost_usd?;
    Some(format!("{name} costs most: ${cost:.4}, {:.0} % of the run.", cost / all * 100.0))
}

fn dollars(cost: Option<f64>) -> String {
    cost.map_or("unknown".to_owned(), |cost| format!("${cost:.4}"))
}

fn table(title: &str, rows: &[(String, Used)]) -> Markup {
    let mut all = Used::default();
    rows.iter().for_each(|(_, used)| all.add(used));
    html! {
        table {
            thead { tr { th { (title) } th.number { "Tokens in" } th.number { "Tokens out" } th.number { "Cost" } } }
            tbody {
                @for (name, used) in rows.iter().map(|(name, used)| (name.as_str(), used)).chain([("all", &all)]) {
                    tr {
                        td { (name) }
                        td.number data-label="in" { @if used.is_estimated { "≈" } (count(used.totals.tokens_in)) }
                        td.number data-label="out" { @if used.is_estimated { "≈" } (count(used.totals.tokens_out)) }
                        td.number data-label="cost" { (dollars(used.totals.cost_usd)) }
                    }
                }
            }
        }
    }
}
