//! A run: its graph, its phases, who handed what to whom, why gates sent work back, what it cost.

pub(super) mod artifacts;
pub(super) mod cost;
pub(super) mod events;
pub(crate) mod files;
mod gantt;
pub(super) mod head;
pub(super) mod outputs;
mod panel;
pub(super) mod steering;
mod steps;
pub(super) mod timeline;
pub(super) mod transcripts;

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Redirect;
use cliq_model::{Run, RunState, Scope};
use cliq_project::RunTeam;
use cliq_protocol::{Budget, RunId, Sandbox};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::Value;

use crate::elements::{count, folded, is_estimated, output, phase_state};
use crate::graph::{self, RunPicture};
use crate::markdown;
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_supervisor::internals::check_phase;
use cliq_web::Core;
use cliq_web::Problem;
use cliq_web::{Form, Path, Query, RunDocument, find_run};
use files::RunFiles;
use head::{Tab, summary, tabs};

/// The most phases, handoffs and logs that are listed at once: a page stays small for teams of thousands.
const LISTED: usize = 60;

/// Note in place of parts that are read from the workspace.
const NOT_RESPONDING: &str = "The file system of the workspace does not respond: this page shows what the server knows without it. The server reads the files again once it does.";

#[derive(Debug, Deserialize)]
pub(super) struct Part {
    /// Index of the page of phases, 0-based.
    #[serde(default)]
    phases: usize,
    /// The phase beside the graph. Without it the one that asks for attention.
    phase: Option<String>,
}

/// Graphs with fewer phases fit without being made smaller.
const LARGE_GRAPH: usize = 12;

/// Choice of the size of the graph. Works by style alone.
fn zoom() -> Markup {
    html! {
        fieldset.choices.zoom {
            legend.hidden { "Size of the graph" }
            @for (value, name) in [("fit", "Fit"), ("large", "Larger"), ("largest", "Largest")] {
                label { input type="radio" name="zoom" value=(value) checked[value == "fit"]; " " (name) }
            }
        }
    }
}

/// The page of a run.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(part): Query<Part>,
) -> Page {
    let (run, document) = find_run(&core, &id).await?;
    let mut responds = document.workspace_responds;
    let files = if responds {
        match core.in_project(&run, |run, project| Ok(RunFiles::read(run, project))).await {
            Ok(files) => Some(files),
            Err(problem) if problem.status() == StatusCode::GONE => None,
            Err(_) if core.supervisor.workspace_io().is_stuck(&run.workspace) => {
                responds = false;
                None
            }
            Err(problem) => return Err(problem.into()),
        }
    } else {
        None
    };
    // A phase that waits for a person opens by itself. Otherwise the graph has the whole width until a person chooses one.
    let chosen = part.phase.as_deref().or_else(|| waits_for_a_person(&document.phases));
    // A finished run that is not the last of its project cannot go on: its outcome stays.
    let can_resume = files.is_some() && core.supervisor.check_resumable(&run).await.is_ok();
    let picture =
        if responds { graph::of_run(&core, &run, &document.phases, chosen).await } else { RunPicture::None };
    let team = if responds { team_of(&core, &run).await } else { None };
    let base = format!("/runs/{id}");
    let phase = chosen.and_then(|name| panel::find(&document.phases, name));
    let words = Words::of(&core, &run.id);
    let tail = match (phase, &files) {
        (Some(phase), Some(files)) => panel::tail(&core, &run, phase, files).await,
        (Some(_) | None, _) => None,
    };
    let review = match phase.and_then(|phase| phase["review"]["id"].as_str()) {
        Some(review) => crate::review::form_in_place(&core, &visitor, review).await,
        None => None,
    };
    let content = html! {
        div #summary data-live { (summary(&run, &document)) (actions(&visitor, &run, &document, can_resume)) }
        (tabs(&run, Tab::Overview))
        @if let Some(requirement) = &document.requirement {
            details.card { summary { "Requirement" } div.prose { (markdown::render(requirement)) } }
        }
        div #overview class=[phase.is_some().then_some("split")] data-mirror {
            section aria-labelledby="graph-title" {
                h2 #graph-title { "Phases" }
                @if document.phases.as_array().is_some_and(|phases| phases.len() >= LARGE_GRAPH) { (zoom()) }
                div #graph.scroll data-live tabindex="0" role="region" aria-label="Graph of the phases" {
                    @match picture {
                        RunPicture::Drawn(svg) => (PreEscaped(svg)),
                        RunPicture::NotKept => p.empty { (graph::NOT_KEPT) },
                        RunPicture::None if !responds => p.empty { (NOT_RESPONDING) },
                        RunPicture::None => p.empty { "The graph is drawn once the team is assembled, and as long as the workspace is there." },
                    }
                }
            }
            aside #panel.panel data-live data-mirror hidden[phase.is_none()] tabindex="-1" aria-label="Phase" {
                @if let Some(phase) = phase {
                    (panel::panel(&run, &document, phase, &words, files.as_ref(), review.as_ref(), tail.as_ref()))
                }
            }
        }
        div #phases.scroll data-live { (phases(&document.phases, &words, &base, part.phases)) }
        (steering::section(&visitor, &document, files.as_ref()))
        @if files.is_none() {
            p.empty { @if responds { "The workspace is gone: logs, handoffs and files with it." } @else { (NOT_RESPONDING) } }
        }
        @if let Some(team) = &team {
            details.card {
                summary { "Team of the run" }
                (output("team.yml of the run", &shown(team.text().as_bytes())))
                @for (name, text) in team.roles() {
                    details { summary { "role " code { (name) } } (output("Role", &shown(text.as_bytes()))) }
                }
            }
        }
    };
    let events = events_of(&run);
    show(&visitor, &run.title, "", &html! { div data-events=[events] { (content) } })
}

/// Returns the team of a run as it was when the run started, if it was kept.
async fn team_of(core: &Core, run: &Run) -> Option<RunTeam> {
    core.in_project(run, |run, project| Ok(project.team_of_run(&run.id))).await.ok().flatten()
}

/// Address of the event stream of a run that has not ended, with the words of its agents.
fn events_of(run: &Run) -> Option<String> {
    (!run.life.state.is_final())
        .then(|| format!("/api/v1/runs/{}/events?words=true&after={}", run.id, run.last_event))
}

/// Returns the phase that waits for a review.
fn waits_for_a_person(phases: &Value) -> Option<&str> {
    let mut rows = phases.as_array().into_iter().flatten();
    rows.find(|phase| phase["review"]["reviewers"].as_array().is_some_and(|names| !names.is_empty()))
        .and_then(|phase| phase["name"].as_str())
}

/// Words of the agents of a run at this moment, by phase.
pub(super) struct Words {
    run: String,
    texts: HashMap<String, String>,
}

impl Words {
    fn of(core: &Core, run: &RunId) -> Self {
        let words = core.supervisor.hub().words(run);
        let texts = words.iter().map(|(phase, words)| (phase.to_string(), words.text.to_string())).collect();
        Self { run: run.to_string(), texts }
    }

    /// Place for the words of a phase at work. `None` for a phase that does not work.
    fn of_phase(&self, phase: &Value) -> Option<Markup> {
        let name = phase["name"].as_str()?;
        (phase["status"] == "running").then(|| {
            let said = self
                .texts
                .get(name)
                .map_or_else(|| phase["message"].as_str().unwrap_or_default(), String::as_str);
            html! { span data-words=(format!("{}/{name}", self.run)) { (shown(said.as_bytes())) } }
        })
    }
}

fn actions(visitor: &Visitor, run: &Run, document: &RunDocument, can_resume: bool) -> Markup {
    let base = format!("/runs/{}", run.id);
    let is_final = run.life.state.is_final();
    let names: Vec<&str> = document
        .phases
        .as_array()
        .into_iter()
        .flatten()
        .filter(|phase| phase["support"] != true && phase["iterations"].as_u64() > Some(0))
        .filter_map(|phase| phase["name"].as_str())
        .collect();
    html! {
        @if visitor.may_run() {
            div.actions {
                a.button href=(format!("/runs/new?like={}", run.id)) { "Run again with changes" }
                @if !is_final {
                    form method="post" action=(format!("{base}/cancel")) {
                        button.danger type="submit" disabled[run.life.cancel_requested] { "Cancel" }
                    }
                }
                @if can_resume {
                    @if run.life.state != RunState::Completed {
                        form method="post" action=(format!("{base}/resume")) { button.primary type="submit" { "Resume" } }
                    }
                    @if !names.is_empty() {
                        form.inline method="post" action=(format!("{base}/resume")) {
                            label for="from" { "Run again from" }
                            @if names.len() <= LISTED {
                                select #from name="from" { @for name in names { option { (name) } } }
                            } @else {
                                input #from name="from" required placeholder="phase";
                            }
                            button type="submit" { "Run" }
                        }
                    }
                }
            }
        }
    }
}

fn phases(phases: &Value, words: &Words, base: &str, part: usize) -> Markup {
    let mut rows: Vec<&Value> = phases.as_array().into_iter().flatten().collect();
    if rows.len() > LISTED {
        // First the phases that need attention, then the others in the order of the file.
        let order = ["escalated", "stopped", "running", "waiting"];
        let rank =
            |phase: &&Value| order.iter().position(|word| phase["status"] == **word).unwrap_or(order.len());
        rows.sort_by_key(rank);
    }
    let parts = rows.len().div_ceil(LISTED);
    let part = part.min(parts.saturating_sub(1));
    let link = |part: usize| format!("{base}?phases={part}#phases");
    html! {
        @if rows.is_empty() { p.empty { "No phase has started." } }
        @if !rows.is_empty() {
            table.phases {
                thead { tr { th { "Phase" } th { "State" } th { "Kind" } th { "Rounds" } th { "Took" } th { "Used" } th { "Last" } } }
                tbody { @for phase in rows.iter().skip(part * LISTED).take(LISTED) { (row(phase, words, base, 0)) } }
            }
        }
        @if parts > 1 {
            p {
                "Part " (part + 1) " of " (parts) " of " (rows.len()) " phases "
                @if part > 0 { a href=(link(part - 1)) { "before" } " " }
                @if part + 1 < parts { a href=(link(part + 1)) { "after" } }
            }
        }
    }
}

fn row(phase: &Value, words: &Words, base: &str, depth: usize) -> Markup {
    let text = |key: &str| phase[key].as_str().unwrap_or_default();
    let millis = phase["duration_ms"].as_i64().unwrap_or(0);
    let since = phase["running_since_ms"].as_i64().map_or(0, |since| cliq_fs::now_millis() - since);
    let tokens = |key: &str| phase["usage"][key].as_u64().unwrap_or(0);
    let used = tokens("tokens_in") + tokens("tokens_out");
    let cost = phase["usage"]["cost_usd"].as_f64();
    let failed =
        phase["commands"].as_array().into_iter().flatten().filter(|command| command["pass"] == false);
    let failed: Vec<&Value> = failed.collect();
    html! {
        tr id=[(depth == 0).then(|| format!("phase-{}", text("name")))] {
            td class=(format!("depth-{}", depth.min(4))) {
                @if depth == 0 { a href=(format!("{base}?phase={}#panel", text("name"))) { (text("name")) } } @else { (text("name")) }
                @if !text("title").is_empty() { " " span.quiet { (shown(text("title").as_bytes())) } }
            }
            td { (phase_state(phase)) }
            td { (text("type")) @if phase["support"] == true { " (support)" } }
            td.number data-label="rounds" { (phase["iterations"].as_u64().unwrap_or(0)) }
            td.number data-label="took" { (cliq_project::internals::duration(millis + since)) }
            td.number data-label="used" { @if used > 0 { @if is_estimated(&phase["usage"]) { "≈" } (count(used)) @if let Some(cost) = cost { " $" (format!("{cost:.4}")) } } @else { "–" } }
            td.why {
                @match words.of_phase(phase).filter(|_| depth == 0) {
                    Some(words) => (words),
                    None => (folded(text("message"))),
                }
                @if let Some(review) = phase["review"]["id"].as_str().filter(|id| id.bytes().all(|b| b.is_ascii_hexdigit())) {
                    " " a.button href=(format!("/reviews/{review}")) { "Review" }
                    p.quiet { "since " (phase["review"]["since"].as_str().unwrap_or_default()) ", until " (phase["review"]["until"].as_str().unwrap_or_default()) }
                }
                @for command in &failed {
                    details {
                        summary { "command " code { (command["name"].as_str().or(command["run"].as_str()).unwrap_or("?")) } " failed" }
                        (output("Output of the command", &shown(command["output_tail"].as_str().unwrap_or_default().as_bytes())))
                    }
                }
                @if let Ok(sandbox) = Sandbox::from_value(phase["sandbox"].clone(), "sandbox") { p.quiet { "sandbox " (sandbox.to_string()) } }
                @if let Some(tail) = phase["output_tail"].as_str().filter(|tail| !tail.is_empty()) {
                    details { summary { "the last it printed" } (output("Output of the agent", &shown(tail.as_bytes()))) }
                }
            }
        }
        @for inner in phase["run"]["phases"].as_array().into_iter().flatten() { (row(inner, words, base, depth + 1)) }
    }
}

/// Cancels a run and shows it.
pub(super) async fn cancel(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let caller = visitor.demand(Scope::Run)?;
    let run = core.run(&id).await?;
    core.supervisor
        .cancel(&run.id, &caller.label)
        .await
        .map_err(|error| Problem::of_change(error, "cancelled"))?;
    Ok(back_or(&form, &format!("/runs/{id}")))
}

/// Redirect to the page that a form came from, or to another one.
fn back_or(form: &Form, otherwise: &str) -> Redirect {
    let back = form.get("back").filter(|path| crate::mission::is_way_back(path));
    Redirect::to(back.unwrap_or(otherwise))
}

/// Resumes a run and shows it.
pub(super) async fn resume(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let caller = visitor.demand(Scope::Run)?;
    let run = core.run(&id).await?;
    let from = form.get("from").map(str::to_owned);
    let checked = core.supervisor.check_resumable(&run).await;
    checked.map_err(|error| Problem::of_change(error, "resumed"))?;
    if let Some(from) = from.clone() {
        core.in_project(&run, move |_, project| Ok(check_phase(project, &from)?)).await?;
    }
    let resumed = core.supervisor.resume(&run.id, &caller.label, from, Budget::default()).await;
    resumed.map_err(|error| Problem::of_change(error, "resumed"))?;
    Ok(Redirect::to(&format!("/runs/{id}")))
}
