//! Plans: their waves and tasks, and questions to answer.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_gateway::PlanName;
use cliq_lifecycle::Command;
use cliq_project::Project;
use cliq_runs::{Instance, Scope};
use maud::{Markup, html};
use serde_json::Value;

use crate::elements::{badge, empty};
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_web::Core;
use cliq_web::Problem;
use cliq_web::{Form, Path, find_project, list_plans};

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// All plans of registered projects.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let instances = core.runs.instances().await?;
    let plans = list_plans(&core, None).await?;
    let place = |plan: &Value| instances.iter().find(|instance| instance.path == text(plan, "project"));
    let content = html! {
        h1 { "Plans" }
        @if plans.is_empty() { (empty("No plans. `cliq plan add FILE` adds one in a project.")) }
        @if !plans.is_empty() {
            table {
                thead { tr { th { "Plan" } th { "State" } th { "Wave" } th { "Questions" } th { "Project" } } }
                tbody { @for plan in &plans { (row(plan, place(plan))) } }
            }
        }
    };
    show(&visitor, "Plans", "/plans", &content)
}

fn row(plan: &Value, instance: Option<&Instance>) -> Markup {
    let questions = plan["questions"].as_array().map_or(0, Vec::len);
    html! {
        tr {
            td {
                @match instance {
                    Some(instance) => a href=(format!("/plans/{}/{}", instance.id, text(plan, "name"))) { (text(plan, "name")) },
                    None => (text(plan, "name")),
                }
            }
            td { (badge(text(plan, "state"))) }
            td { (plan["wave"]) " of " (plan["waves"]) }
            td { @if questions > 0 { (badge("asks")) } }
            td { (text(plan, "project")) @if instance.is_none() { " (not registered)" } }
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
        p.facts { (badge(text(&plan, "state"))) span { "wave " (plan["wave"]) " of " (plan["waves"]) } span { (project) } }
        @for question in plan["questions"].as_array().into_iter().flatten() { (ask(question, &action, visitor.may_run())) }
        @if visitor.may_run() {
            div.actions {
                @for (command, label) in commands(text(&plan, "state")) {
                    form method="post" action=(action) { button type="submit" name="command" value=(command) { (label) } }
                }
            }
        }
        h2 { "Tasks" }
        table {
            thead { tr { th { "Task" } th { "Title" } th { "Stage" } th { "Failures" } th { "Why" } } }
            tbody {
                @for task in plan["tasks"].as_array().into_iter().flatten() {
                    tr {
                        td { (task["id"].as_str().map_or_else(|| task["id"].to_string(), str::to_owned)) }
                        td { (shown(text(task, "title").as_bytes())) }
                        td { (text(task, "stage")) }
                        td.number { (task["failures"].as_u64().unwrap_or(0)) }
                        td.why { (shown(text(task, "why").as_bytes())) }
                    }
                }
            }
        }
        h2 { "Events" }
        ol.timeline {
            @for event in events.iter().rev().take(200).rev() {
                li { time datetime=(event.at) { (event.at) } " " (event.kind) " " (event.from) " → " (event.to) }
            }
        }
    };
    show(&visitor, &name, "/plans", &content)
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
    let project = Project::open(&instance.path, core.host().clone())
        .map_err(|_| Problem::gone("the project is gone from its directory"))?;
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
