//! Triggers: list, next ticks, history, test with a payload.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use cliq_model::{Scope, SourceKind};
use cliq_triggers::{FiringDocument, PlanDocument, PlanOutcome, TestRequest, TriggerDocument};
use cliq_web::{Core, Form, Path, Problem, Query, find_trigger, list_firings, set_trigger_paused};
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::{ago, badge, empty, folded, moment, output};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;
use crate::{live, runs::short};

/// Number of firings on a page.
const PAGE: u32 = 50;

/// The list of triggers.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let live = live::address(&core);
    let triggers = core.triggers.list().await?;
    let content = html! {
        h1 { "Triggers" }
        p { "Schedules, webhooks, ends of runs and changed files start runs. They are in " code { "triggers.yml" } " of the cliq home." }
        @if let Some(problem) = core.triggers.problem() {
            p.warning role="alert" { (shown(problem.as_bytes())) ". The triggers below are those of the last valid file." }
        }
        @if triggers.is_empty() {
            (empty("No triggers. `cliq trigger example` prints a first one."))
        } @else {
            div #triggers data-live {
                table {
                    thead { tr { th { "Trigger" } th { "State" } th { "Team" } th { "Next" } th { "Last firing" } } }
                    tbody { @for trigger in &triggers { (row(trigger)) } }
                }
            }
        }
    };
    show(&visitor, "Triggers", "/triggers", &html! { div data-changes=(live) { (content) } })
}

fn row(trigger: &TriggerDocument) -> Markup {
    html! {
        tr {
            td.title { a.strong href=(format!("/triggers/{}", trigger.name)) { (trigger.name) } div.quiet { (trigger.kind.as_str()) ": " (trigger.source) } }
            td { (state(trigger)) }
            td data-label="team" { (trigger.team.as_deref().or(trigger.project.as_deref()).unwrap_or("–")) }
            td data-label="next" { (next(trigger, trigger.next.first())) }
            td data-label="last" {
                @match &trigger.last {
                    Some(last) => span { (badge(last.state.as_str())) " " (ago(last.at)) },
                    None => "never",
                }
            }
        }
    }
}

fn state(trigger: &TriggerDocument) -> Markup {
    match (&trigger.problem, trigger.paused) {
        (_, true) => badge("paused"),
        (Some(_), false) => badge("error"),
        (None, false) => badge("valid"),
    }
}

/// A tick of a schedule, on an open page in the zone of the schedule.
fn next(trigger: &TriggerDocument, at: Option<&String>) -> Markup {
    let zone = trigger.source.rsplit(' ').next();
    match at {
        Some(at) => moment(at, zone),
        None => html! { "–" },
    }
}

/// Position in the history, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Position {
    before: Option<i64>,
}

/// A trigger with its history.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    Query(position): Query<Position>,
) -> Page {
    render(&visitor, &core, &name, position.before, None).await
}

/// Input and outcome of a test.
struct Tested {
    payload: String,
    outcome: Result<PlanDocument, Problem>,
}

async fn render(
    visitor: &Visitor,
    core: &Core,
    name: &str,
    before: Option<i64>,
    tested: Option<&Tested>,
) -> Result<Html<String>, PageError> {
    let live = live::address(core);
    let trigger = find_trigger(core, name).await?;
    let (firings, older) = list_firings(core, Some(name.to_owned()), None, before, PAGE).await?;
    let content = html! {
        h1 { "Trigger " (trigger.name) }
        @if let Some(problem) = &trigger.problem { p.warning role="alert" { (problem) } }
        (facts(&trigger))
        @if visitor.may_run() { (pause_form(&trigger)) }
        @if !trigger.next.is_empty() {
            h2 { "Next" }
            ul { @for tick in &trigger.next { li { (next(&trigger, Some(tick))) } } }
        }
        h2 { "History" }
        div #history data-live {
            @if firings.is_empty() { (empty("No firings.")) } @else { (history(&firings)) }
        }
        @if let Some(older) = older { p { a href=(format!("/triggers/{name}?before={older}")) { "Older firings" } } }
        @if visitor.may_run() && trigger.kind != SourceKind::Schedule { (test_form(&trigger, tested)) }
    };
    let title = format!("Trigger {}", trigger.name);
    show(visitor, &title, "/triggers", &html! { div data-changes=(live) { (content) } })
}

fn facts(trigger: &TriggerDocument) -> Markup {
    html! {
        p.facts {
            (state(trigger))
            span { (trigger.kind.as_str()) ": " (trigger.source) }
            @if let Some(team) = &trigger.team { span { "starts " (team) } }
            @if let Some(project) = &trigger.project { span { "in " (project) } }
            @if let Some(preset) = &trigger.preset { span { "preset " (preset) } }
            @if let (Some(group), Some(policy)) = (&trigger.group, &trigger.policy) { span { "group " code { (group) } ", " (policy) } }
            @if let Some(path) = &trigger.path { span { "at " code { (path) } } }
        }
        @for when in &trigger.when { p { "when " code { (when) } } }
    }
}

fn pause_form(trigger: &TriggerDocument) -> Markup {
    let (verb, word) = if trigger.paused { ("resume", "Resume") } else { ("pause", "Pause") };
    html! {
        form.inline method="post" action=(format!("/triggers/{}/{verb}", trigger.name)) {
            button type="submit" { (word) }
        }
    }
}

fn history(firings: &[FiringDocument]) -> Markup {
    html! {
        table {
            thead { tr { th.number { "Nr." } th { "Cause" } th { "State" } th { "Time" } th { "Run, or the reason for none" } } }
            tbody {
                @for firing in firings {
                    tr {
                        td.number { (firing.id) }
                        td.title { (shown(firing.cause.as_bytes())) div.quiet { code { (firing.digest.get(..12).unwrap_or_default()) } } }
                        td { (badge(firing.state.as_str())) }
                        td data-label="time" { (ago(firing.at)) }
                        td.why {
                            @if let Some(run) = &firing.run_id { a href=(format!("/runs/{run}")) { "run " (short(run.as_str())) } }
                            @if let Some(reason) = &firing.reason { (folded(reason)) }
                        }
                    }
                }
            }
        }
    }
}

fn test_form(trigger: &TriggerDocument, tested: Option<&Tested>) -> Markup {
    let example = match trigger.kind {
        SourceKind::Webhook => r#"{"headers": {"x-github-event": "issues"}, "body": {"action": "opened"}}"#,
        SourceKind::After => {
            r#"{"run": {"id": "…", "team": "@scope/name", "state": "completed", "title": "…"}}"#
        }
        SourceKind::Files | SourceKind::Schedule => r#"{"files": ["docs/index.md"]}"#,
    };
    let payload = tested.map_or("", |tested| tested.payload.as_str());
    html! {
        h2 #test { "Test" }
        p { "Shows what a payload would start. Starts nothing." }
        form.stack method="post" action=(format!("/triggers/{}/test#test", trigger.name)) {
            label for="payload" { "Payload, JSON" }
            p.hint #payload-about { "A body as the sender sends it, or " code { (example) } "." }
            textarea #payload name="payload" rows="8" required aria-describedby="payload-about" { (payload) }
            button.primary type="submit" { "Test" }
        }
        @if let Some(tested) = tested { (outcome(tested)) }
    }
}

fn outcome(tested: &Tested) -> Markup {
    let plan = match &tested.outcome {
        Ok(plan) => plan,
        Err(problem) => return html! { p.warning role="alert" { (problem.detail) } },
    };
    html! {
        section.card role="status" aria-labelledby="outcome" {
            h3 #outcome { @if plan.outcome == PlanOutcome::Run { "A run would start" } @else { "No run would start" } }
            @if let Some(reason) = &plan.reason { p { (shown(reason.as_bytes())) } }
            @if plan.outcome == PlanOutcome::Run {
                p.facts {
                    @if let Some(title) = &plan.title { strong { (shown(title.as_bytes())) } }
                    @if let Some(team) = &plan.team { span { (team) } }
                    @if let Some(group) = &plan.group { span { "group " code { (shown(group.as_bytes())) } } }
                }
                @if let Some(requirement) = &plan.requirement { (output("Requirement", &shown(requirement.as_bytes()))) }
                @if !plan.inputs.is_empty() {
                    dl.inputs { @for (name, value) in &plan.inputs { dt { (name) } dd { (shown(value.as_bytes())) } } }
                }
                @for repo in &plan.repos { p { "repository " code { (shown(repo.as_bytes())) } } }
            }
        }
    }
}

/// Tests a trigger with the payload of the form.
pub(super) async fn test(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Run)?;
    let payload = form.get("payload").unwrap_or_default().to_owned();
    let outcome = match request_of(&payload) {
        Ok(request) => {
            let (testing, name) = (Arc::clone(&core), name.clone());
            let tested = core.blocking(move |_| Ok(testing.triggers.test(&name, &request))).await?;
            tested.ok_or_else(|| Problem::not_found("there is no trigger of this name"))
        }
        Err(problem) => Err(problem),
    };
    let status = outcome.as_ref().map_or_else(Problem::status, |_| axum::http::StatusCode::OK);
    let page = render(&visitor, &core, &name, None, Some(&Tested { payload, outcome })).await?;
    Ok((status, page).into_response())
}

/// Reads a payload: a body, or an object with `headers`, `body`, `run`, `files`.
fn request_of(payload: &str) -> Result<TestRequest, Problem> {
    let wrong = |what: &str, error: serde_json::Error| {
        Problem::unprocessable(format!("the payload {what}: {error}"), Vec::new())
    };
    let value = serde_json::from_str(payload).map_err(|error| wrong("is not JSON", error))?;
    TestRequest::from_payload(value).map_err(|error| wrong("cannot be read", error))
}

/// Pauses a trigger and shows it.
pub(super) async fn pause(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
) -> Result<Redirect, PageError> {
    set(&visitor, &core, &name, true).await
}

/// Resumes a trigger and shows it.
pub(super) async fn resume(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(name): Path<String>,
) -> Result<Redirect, PageError> {
    set(&visitor, &core, &name, false).await
}

async fn set(visitor: &Visitor, core: &Core, name: &str, is_paused: bool) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Run)?;
    set_trigger_paused(core, name, is_paused).await?;
    Ok(Redirect::to(&format!("/triggers/{name}")))
}
