//! Plans: their waves and tasks, and questions to answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_gateway::PlanName;
use cliq_lifecycle::{Command, PlanState, WorkId};
use cliq_model::{Instance, RunTotals, Scope};
use maud::{Markup, html};
use serde::Deserialize;
use serde_json::Value;

use crate::elements::{ago_text, badge, empty, folded, moment, progress, usage};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_web::{Core, Form, Path, Problem, Query, find_project, list_plans};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// Filters of the list, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Filters {
    #[serde(default)]
    state: String,
    #[serde(default)]
    project: String,
}

impl Filters {
    fn link(&self, state: &str) -> String {
        let fields = [("state", state), ("project", &self.project)];
        let fields: Vec<_> = fields.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        format!("/plans?{}", serde_urlencoded::to_string(fields).unwrap_or_default())
    }
}

/// All plans, those with questions first.
pub(super) async fn list(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Query(filters): Query<Filters>,
) -> Page {
    let instances = core.runs.instances().await?;
    let project = instances.iter().find(|instance| instance.id == filters.project);
    let mut plans = list_plans(&core, project.map(|instance| instance.path.as_str())).await?;
    let counts = PlanState::ALL.map(|state| {
        let word = state.as_str();
        (word, plans.iter().filter(|plan| text(plan, "state") == word).count())
    });
    let all = plans.len();
    plans.retain(|plan| filters.state.is_empty() || text(plan, "state") == filters.state);
    plans.sort_by_key(|plan| questions(plan) == 0);
    let place = |plan: &Value| instances.iter().find(|instance| instance.path == text(plan, "project"));
    let content = html! {
        h1 { "Plans" }
        p { "A plan has waves of tasks that the daemon gives to agents." @if let Some(project) = project { " Those of " code { (project.path) } "." } }
        nav.filters aria-label="Filter by state" {
            a href=(filters.link("")) aria-current=[filters.state.is_empty().then_some("true")] { "all " span.n { (all) } }
            @for (word, n) in counts.iter().filter(|(word, n)| *n > 0 || *word == filters.state) {
                a href=(filters.link(word)) aria-current=[(*word == filters.state).then_some("true")] { (word) " " span.n { (n) } }
            }
            @if project.is_some() { a href="/plans" { "of all projects" } }
        }
        @if plans.is_empty() { (empty("No plans. `cliq plan add FILE` adds one in a project.")) }
        @if !plans.is_empty() {
            table {
                thead { tr { th { "Plan" } th { "State" } th { "Tasks" } th { "Wave" } th { "Used" } th { "Changed" } } }
                tbody { @for plan in &plans { (row(plan, place(plan))) } }
            }
        }
    };
    show(&visitor, "Plans", "/plans", &content)
}

fn questions(plan: &Value) -> usize {
    plan["questions"].as_array().map_or(0, Vec::len)
}

fn tasks(plan: &Value) -> &[Value] {
    plan["tasks"].as_array().map_or(&[], Vec::as_slice)
}

/// The progress of a plan: completed tasks of all.
fn done(plan: &Value) -> Markup {
    let done = tasks(plan).iter().filter(|task| text(task, "stage") == "complete").count();
    progress(done as u64, tasks(plan).len() as u64, "tasks")
}

fn used(plan: &Value) -> String {
    usage(&RunTotals::of_document(&plan["usage"]))
}

fn row(plan: &Value, instance: Option<&Instance>) -> Markup {
    html! {
        tr {
            td.title {
                @match instance {
                    Some(instance) => a.strong href=(format!("/plans/{}/{}", instance.id, text(plan, "name"))) { (text(plan, "name")) },
                    None => strong { (text(plan, "name")) },
                }
                div.quiet { (text(plan, "project")) @if instance.is_none() { " (not registered)" } }
            }
            td { (badge(text(plan, "state"))) @if questions(plan) > 0 { " " (badge("asks")) } @if plan["stuck"] == true { " " (badge("stuck")) } }
            td data-label="tasks" { (done(plan)) }
            td.number data-label="wave" { (plan["wave"]) " of " (plan["waves"]) }
            td.number data-label="used" { (used(plan)) }
            td data-label="changed" { (ago_text(text(plan, "updated_at"))) }
        }
    }
}

/// A plan.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, name)): Path<(String, String)>,
) -> Page {
    let instance = find_project(&core, &id).await?;
    let project = instance.path.as_str();
    let plans = list_plans(&core, Some(project)).await?;
    let plan = plans.into_iter().find(|plan| text(plan, "name") == name);
    let plan = plan.ok_or_else(|| Problem::not_found("there is no plan of this name"))?;
    let action = format!("/plans/{id}/{name}");
    let events = core.signals.events(project, &name, 0).await?;
    let content = html! {
        h1 { (name) }
        p.sentence { (badge(text(&plan, "state"))) " " (sentence(&plan)) }
        p.facts {
            (done(&plan))
            span { "wave " (plan["wave"]) " of " (plan["waves"]) }
            span { "used " (used(&plan)) }
            span { (project) }
            a href=(format!("/signals?project={id}&plan={name}")) { "Signals" }
        }
        @for question in plan["questions"].as_array().into_iter().flatten() { (ask(question, &action, visitor.may_run())) }
        @if visitor.may_run() {
            div.actions {
                @for (command, label) in commands(text(&plan, "state")) {
                    form method="post" action=(action) { button type="submit" name="command" value=(command) class=[(*command == "cancel").then_some("danger")] { (label) } }
                }
            }
        }
        (waves(&plan))
        h2 { "Events" }
        ol.timeline {
            @for event in events.iter().rev().take(200).rev() {
                li { (moment(&event.at.to_string(), None)) " " (event.kind) @if event.from != event.to { " " (event.from) " → " (event.to) } (about(&event.detail)) }
            }
        }
    };
    show(&visitor, &name, "/plans", &content)
}

/// Task, agent and words of an event.
fn about(detail: &Value) -> Markup {
    let value = |key: &str| match &detail[key] {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    let words = ["text", "why", "body", "report"].into_iter().find_map(value);
    html! {
        @for key in ["task", "work", "role", "planner", "from", "holder", "file", "wave"] {
            @if let Some(value) = value(key) { " " span.quiet { (key) } " " (shown(value.as_bytes())) }
        }
        @if let Some(words) = words { ": " (folded(&words)) }
    }
}

/// The state of a plan in a sentence.
fn sentence(plan: &Value) -> String {
    let at = |stage: &str| tasks(plan).iter().filter(|task| text(task, "stage") == stage).count();
    let waiting = questions(plan);
    if waiting > 0 {
        return format!(
            "{waiting} {} for a person.",
            if waiting == 1 { "question waits" } else { "questions wait" }
        );
    }
    if plan["stuck"] == true {
        return "No work can continue: see the reasons below.".to_owned();
    }
    match text(plan, "state") {
        "ready" => "The plan waits for its start.".to_owned(),
        "planning" => "Waves and tasks are being worked out.".to_owned(),
        "implementing" => {
            format!(
                "{} running, {} queued, {} held, {} failed.",
                at("running"),
                at("queued"),
                at("held"),
                at("failed")
            )
        }
        "reviewing" => "The implementation is being reviewed.".to_owned(),
        "verifying" => "The goal is being verified.".to_owned(),
        "done" => "The goal is reached.".to_owned(),
        _ => "A person cancelled the plan.".to_owned(),
    }
}

/// Tasks, a table for each wave.
fn waves(plan: &Value) -> Markup {
    let mut waves: BTreeMap<u32, Vec<&Value>> = BTreeMap::new();
    for task in tasks(plan) {
        if let Ok(WorkId::Task { wave, .. }) = text(task, "id").parse() {
            waves.entry(wave).or_default().push(task);
        }
    }
    html! {
        @if waves.is_empty() { h2 { "Tasks" } (empty("No tasks yet: the planner writes them.")) }
        @for (n, tasks) in waves {
            h2 { "Wave " (n) }
            table {
                thead { tr { th { "Task" } th { "Stage" } th { "Role" } th.number { "Failures" } th { "Reason" } } }
                tbody {
                    @for task in tasks {
                        tr {
                            td.title { code.quiet { (text(task, "id")) } " " (shown(text(task, "title").as_bytes())) }
                            td { (badge(text(task, "stage"))) }
                            td data-label="role" { (text(task, "role")) }
                            td.number data-label="failures" { (task["failures"].as_u64().unwrap_or(0)) }
                            td.why { (folded(text(task, "why"))) }
                        }
                    }
                }
            }
        }
    }
}

fn ask(question: &Value, action: &str, may_answer: bool) -> Markup {
    let number = question["id"].as_u64().or_else(|| question["number"].as_u64());
    let words = question["text"].as_str().or(question["question"].as_str()).unwrap_or_default();
    html! {
        div.card.warning {
            p { strong { "Question: " } (shown(words.as_bytes())) }
            @if may_answer {
                form.stack method="post" action=(action) {
                    @if let Some(number) = number { input type="hidden" name="question" value=(number); }
                    label for=(format!("answer-{}", number.unwrap_or(0))) { "Answer" }
                    textarea id=(format!("answer-{}", number.unwrap_or(0))) name="text" rows="3" required {}
                    button.primary type="submit" name="command" value="answer" { "Answer" }
                }
            }
        }
    }
}

fn commands(state: &str) -> &'static [(&'static str, &'static str)] {
    match state {
        "ready" => &[("start", "Start"), ("cancel", "Cancel")],
        "done" => &[
            ("start_over", "Start over"),
            ("reimplement", "Reimplement"),
            ("request_review", "Review again"),
        ],
        "cancelled" => &[("reopen", "Reopen")],
        _ => &[("cancel", "Cancel")],
    }
}

/// Does something with a plan and shows it.
pub(super) async fn command(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((id, name)): Path<(String, String)>,
    form: Form,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Run)?;
    let instance = find_project(&core, &id).await?;
    let project = core.open_project(&instance).await?;
    let plan = PlanName::parse(&name).map_err(|_| Problem::not_found("there is no plan of this name"))?;
    let plans = core.plans();
    let command = match form.get("command").unwrap_or_default() {
        "start" => {
            project.start_plan(&plans, &plan).await.map_err(Problem::from)?;
            return Ok(Redirect::to(&format!("/plans/{id}/{name}")));
        }
        "cancel" => Command::Cancel,
        "start_over" => Command::StartOver,
        "reimplement" => Command::Reimplement,
        "request_review" => Command::RequestReview,
        "reopen" => Command::Reopen,
        "answer" => {
            let text =
                form.get("text").ok_or_else(|| Problem::unprocessable("the answer is empty", Vec::new()))?;
            Command::Answer {
                question: form.get("question").and_then(|n| n.parse().ok()),
                text: text.to_owned(),
            }
        }
        _ => return Err(Problem::bad_request("there is no such command").into()),
    };
    project.command_plan(&plans, &plan, command).await.map_err(Problem::from)?;
    Ok(Redirect::to(&format!("/plans/{id}/{name}")))
}
