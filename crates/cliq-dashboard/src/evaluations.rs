//! Evaluations: list, report, and the way from a trial to its run.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_eval::report::{Report, dollars, percent};
use cliq_eval::{TrialOutcome, suite_of};
use cliq_model::EvaluationRow;
use cliq_web::{Core, Path, Problem};
use maud::{Markup, html};

use crate::elements::{ago, badge, empty, folded, progress};
use crate::page::{Page, PageError, show};
use crate::runs::short;
use crate::visitor::Visitor;

/// Maximum number of evaluations in the list.
const LISTED: u32 = 100;
/// Maximum number of trials in the table of all trials.
const TRIALS: usize = 500;

/// The list of evaluations, newest first.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let rows = core.evaluations.evaluations(LISTED).await?;
    let content = html! {
        h1 { "Evaluations" }
        p { "Is this team better? " code { "cliq eval SUITE.yml" } " runs a suite of cases with several variants of a team." }
        @if rows.is_empty() { (empty("No evaluations. `cliq eval new simulated` writes a suite that needs no model.")) } @else {
            table {
                thead { tr { th { "Suite" } th { "State" } th { "Trials" } th { "Started" } } }
                tbody {
                    @for row in &rows {
                        tr {
                            td.title { a.strong href=(format!("/evaluations/{}", row.id)) { (row.name) } " " code.quiet { (short(&row.id)) } }
                            td { (state(row)) }
                            td data-label="trials" { (progress(row.finished, row.trials, "trials")) }
                            td data-label="started" { (ago(row.created_at)) }
                        }
                    }
                }
            }
        }
    };
    show(&visitor, "Evaluations", "/evaluations", &content)
}

fn state(row: &EvaluationRow) -> Markup {
    badge(if row.ended_at.is_some() { "completed" } else { "unfinished" })
}

/// The report of an evaluation.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(id): Path<String>) -> Page {
    let row = find(&core, &id).await?;
    let suite = suite_of(&row).map_err(|error| Problem::conflict(error.to_string()))?;
    let trials = core.evaluations.trials(&row.id).await?;
    let report = {
        let row = row.clone();
        core.blocking(move |_| Ok(Report::new(&row, &suite, &trials))).await?
    };
    let content = html! {
        h1 { "Evaluation " (row.name) }
        p.facts { (state(&row)) (progress(row.finished, row.trials, "trials")) @if row.ended_at.is_none() { span { code { "cliq eval --resume " (short(&row.id)) } " continues it" } } }
        (report.body(Some("")))
        h2 { "All trials" }
        details {
            summary { (report.trials.len()) " trials" }
            (all(&report))
        }
    };
    show(&visitor, &format!("Evaluation {}", row.name), "/evaluations", &content)
}

fn all(report: &Report) -> Markup {
    html! {
        table {
            thead { tr { th.number { "Nr." } th { "Variant" } th { "Case" } th.number { "Repeat" } th { "Outcome" } th.number { "Cost" } th { "Reason" } } }
            tbody {
                @for trial in report.trials.iter().take(TRIALS) {
                    tr {
                        td.number { a href=(trial.page) aria-label=(format!("Trial {}", trial.number)) { (trial.number) } }
                        td { (trial.variant) }
                        td { (trial.case) }
                        td.number data-label="repeat" { (trial.repeat) }
                        td { (badge(outcome(trial.outcome))) }
                        td.number data-label="cost" { (dollars(trial.cost_usd)) }
                        td.why { (folded(trial.reason.as_deref().unwrap_or_default())) }
                    }
                }
            }
        }
        @if report.trials.len() > TRIALS { p.quiet { (report.trials.len() - TRIALS) " more: " code { "cliq eval show " (short(&report.id)) " --json" } } }
        p.quiet { "Passed: " (percent((report.counts.counted > 0).then(|| report.counts.passed as f64 / report.counts.counted as f64))) }
    }
}

fn outcome(outcome: Option<TrialOutcome>) -> &'static str {
    match outcome {
        Some(TrialOutcome::Passed) => "completed",
        Some(TrialOutcome::Failed) => "failed",
        Some(TrialOutcome::Infrastructure) => "infrastructure",
        Some(TrialOutcome::Skipped) => "skipped",
        None => "pending",
    }
}

async fn find(core: &Core, id: &str) -> Result<EvaluationRow, Problem> {
    let found = core.evaluations.evaluation(id).await?;
    found.ok_or_else(|| Problem::not_found("there is no evaluation of this id"))
}

/// Leads from a trial to its run. The run is stored when it is looked at first.
pub(super) async fn trial(
    _: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, number)): Path<(String, u32)>,
) -> Result<Redirect, PageError> {
    let row = find(&core, &id).await?;
    let trials = core.evaluations.trials(&row.id).await.map_err(Problem::from)?;
    let trial = trials.iter().find(|trial| trial.number == number);
    let trial = trial.ok_or_else(|| Problem::not_found("the evaluation has no trial of this number"))?;
    if let Some(run) = &trial.run_id
        && core.runs.run(run).await.map_err(Problem::from)?.is_some()
    {
        return Ok(Redirect::to(&format!("/runs/{run}")));
    }
    let workspace = cliq_eval::EvaluationDir::new(row.directory.clone()).trial(number);
    let adopted = core.supervisor.adopt_trial(&workspace).await.map_err(Problem::from)?;
    let run =
        adopted.ok_or_else(|| Problem::not_found("the trial has not started, or its workspace is gone"))?;
    Ok(Redirect::to(&format!("/runs/{run}")))
}
