//! Runs of a team: how often it succeeds, how long it takes, what it costs.

use cliq_model::{Run, RunFilter, RunState};
use cliq_web::{Core, Problem};
use maud::{Markup, html};

use crate::elements::{ago, folded, state, took, usage};
use crate::text::shown;

/// The newest runs that are counted, and those whose gates are looked at.
const COUNTED: u32 = 200;
const LOOKED_AT: usize = 20;
/// Runs that are listed.
const LISTED: usize = 10;

/// Figures of the newest runs of a team.
#[derive(Debug, Default, PartialEq)]
pub(super) struct TeamFigures {
    /// Runs that ended.
    ended: usize,
    /// Runs that completed.
    completed: usize,
    /// Median duration of completed runs, in milliseconds.
    duration_ms: Option<i64>,
    /// Median cost of runs whose cost is known, in US dollars.
    cost_usd: Option<f64>,
    /// Mean number of rounds of a gate.
    rounds: Option<f64>,
}

/// Returns the newest runs of a team with their figures.
pub(super) async fn runs_of(core: &Core, team: &str) -> Result<(Vec<Run>, TeamFigures), Problem> {
    let filter = RunFilter { team: Some(team.to_owned()), limit: COUNTED, ..RunFilter::default() };
    let runs = core.runs.runs(&filter).await?;
    let mut rounds = Vec::new();
    for run in runs.iter().filter(|run| run.life.state.is_final()).take(LOOKED_AT) {
        if let Some(whole) = core.runs.run(&run.id).await? {
            let phases = whole.view["phases"].as_array().cloned().unwrap_or_default();
            let gates = phases.iter().filter(|phase| phase["verdict"].is_object());
            rounds.extend(gates.filter_map(|gate| gate["iterations"].as_f64()));
        }
    }
    let figures = figures(&runs, &rounds);
    Ok((runs, figures))
}

fn figures(runs: &[Run], rounds: &[f64]) -> TeamFigures {
    // A person who cancels says nothing about the team.
    let ended: Vec<&Run> = runs
        .iter()
        .filter(|run| run.life.state.is_final() && run.life.state != RunState::Cancelled)
        .collect();
    let completed: Vec<&&Run> = ended.iter().filter(|run| run.life.state == RunState::Completed).collect();
    let duration = |run: &&&Run| Some((run.ended_at?.unix_millis() - run.started_at?.unix_millis()) as f64);
    let durations = completed.iter().filter_map(duration).collect();
    let costs = ended.iter().filter_map(|run| run.totals.cost_usd).collect();
    let mean = (!rounds.is_empty()).then(|| rounds.iter().sum::<f64>() / rounds.len() as f64);
    TeamFigures {
        ended: ended.len(),
        completed: completed.len(),
        duration_ms: median(durations).map(|millis| millis as i64),
        cost_usd: median(costs),
        rounds: mean,
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        count if count % 2 == 1 => Some(values[middle]),
        _ => Some(f64::midpoint(values[middle - 1], values[middle])),
    }
}

/// The figures in a line.
pub(super) fn facts(figures: &TeamFigures) -> Markup {
    html! {
        p.facts {
            @if figures.ended == 0 { span { "No run of it has ended yet." } } @else {
                span { (figures.completed) " of " (figures.ended) " runs completed (" (figures.completed * 100 / figures.ended) " %)" }
                @if let Some(millis) = figures.duration_ms { span { "median " (cliq_project::internals::duration(millis)) } }
                @if let Some(cost) = figures.cost_usd { span { "median $" (format!("{cost:.4}")) } }
                @if let Some(rounds) = figures.rounds { span { (format!("{rounds:.1}")) " rounds per gate" } }
            }
        }
    }
}

/// The newest runs.
pub(super) fn list(runs: &[Run], team: &str) -> Markup {
    let query = serde_urlencoded::to_string([("team", team)]).unwrap_or_default();
    html! {
        @if !runs.is_empty() {
            h2 { "Runs" }
            form method="get" action="/compare" {
                table {
                    thead { tr { th { "Run" } th { "State" } th { "Asked for" } th { "Took" } th { "Used" } } }
                    tbody {
                        @for run in runs.iter().take(LISTED) {
                            tr {
                                td.title { div.choice {
                                    input type="checkbox" name="id" value=(run.id) aria-label=(format!("Select {}", run.title));
                                    div {
                                        a.strong href=(format!("/runs/{}", run.id)) { (shown(run.title.as_bytes())) }
                                        @if let Some(reason) = &run.reason { div.why { (folded(reason)) } }
                                    }
                                } }
                                td { (state(run.life.state, &run.caveats)) }
                                td { (ago(run.queued_at)) " by " (run.caller) }
                                td.number data-label="took" { (took(run.started_at, run.ended_at)) }
                                td.number data-label="used" { (usage(&run.totals)) }
                            }
                        }
                    }
                }
                p.actions { button type="submit" { "Compare two" } a.button.ghost href=(format!("/?{query}")) { "All runs of the team" } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cliq_model::RunOrigin;
    use cliq_protocol::Timestamp;

    use super::*;

    #[test]
    fn figures_leave_out_what_people_cancelled() {
        let run = |state: RunState, seconds: i64, cost: Option<f64>| {
            let mut run = Run::new(
                cliq_fs::new_run_id(),
                "@a/b".parse().unwrap(),
                RunOrigin::Server,
                "/w".into(),
                Timestamp::UNIX_EPOCH,
            );
            run.life.state = state;
            run.started_at = Some(Timestamp::UNIX_EPOCH);
            run.ended_at = Some(Timestamp::from_unix_millis(seconds * 1000));
            run.totals.cost_usd = cost;
            run
        };
        let runs = [
            run(RunState::Completed, 10, Some(1.0)),
            run(RunState::Completed, 20, Some(3.0)),
            run(RunState::Escalated, 50, None),
            run(RunState::Cancelled, 1, Some(100.0)),
            run(RunState::Running, 0, None),
        ];
        let figures = figures(&runs, &[1.0, 2.0]);
        assert_eq!(
            figures,
            TeamFigures {
                ended: 3,
                completed: 2,
                duration_ms: Some(15_000),
                cost_usd: Some(2.0),
                rounds: Some(1.5)
            }
        );
    }
}
