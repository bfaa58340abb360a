//! Steering of a run: the messages with their deliveries, and the form for another (docs/steering.md).

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_model::Scope;
use cliq_protocol::MAX_STEERING_TEXT;
use cliq_web::{Core, Form, Path, Problem, RunDocument, SteeringDocument, new_steering};
use maud::{Markup, html};

use super::LISTED;
use super::files::RunFiles;
use crate::elements::ago_text;
use crate::page::PageError;
use crate::text::shown;
use crate::visitor::Visitor;

/// Section of the run's page. Empty if the run has ended without messages.
pub(super) fn section(visitor: &Visitor, document: &RunDocument, files: Option<&RunFiles>) -> Markup {
    let is_final = document.summary.state.is_final();
    let can_send = !is_final && visitor.may_run();
    html! {
        @if can_send || !document.steering.is_empty() {
            section aria-labelledby="steering-title" {
                h2 #steering-title { "Guidance" }
                div #steering data-live { (messages(&document.steering, is_final)) }
                @if can_send { (form(document.summary.id.as_str(), &phases(document, files))) }
            }
        }
    }
}

fn messages(messages: &[SteeringDocument], is_final: bool) -> Markup {
    html! {
        @if messages.is_empty() { p.empty { "No messages. Agents receive a message while they work if they can, or when they start." } }
        ul.plain {
            @for message in messages.iter().rev() {
                li {
                    p.facts {
                        @if message.pending {
                            span.badge.waiting { @if is_final { "never delivered" } @else { "pending" } }
                        } @else {
                            span.badge.completed { "delivered" }
                            span { "to " (receivers(message)) }
                        }
                        span { "from " (message.from) ", " (ago_text(&message.ts)) }
                        @if let Some(phase) = &message.phase { span { "for " code { (phase) } } }
                    }
                    pre.text { (shown(message.text.as_bytes())) }
                }
            }
        }
    }
}

fn receivers(message: &SteeringDocument) -> String {
    let phases: BTreeSet<&str> = message.delivered.iter().map(|delivery| delivery.phase.as_str()).collect();
    phases.into_iter().collect::<Vec<_>>().join(", ")
}

/// Names of the phases that have agents: those of the team, or those that have started if the team cannot be read.
fn phases(document: &RunDocument, files: Option<&RunFiles>) -> Vec<String> {
    if let Some(phases) = files.and_then(|files| files.agent_phases.clone()) {
        return phases;
    }
    let phases = document.phases.as_array().into_iter().flatten();
    let names = phases.filter(|phase| phase["type"] != "exec").filter_map(|phase| phase["name"].as_str());
    names.map(str::to_owned).collect()
}

fn form(id: &str, names: &[String]) -> Markup {
    html! {
        form.stack method="post" action=(format!("/runs/{id}/steer")) {
            // A form that is sent twice sends one message.
            input type="hidden" name="id" value=(uuid::Uuid::now_v7());
            label for="guidance" { "Message to the agents" }
            textarea #guidance name="text" rows="3" required maxlength=(MAX_STEERING_TEXT) aria-describedby="guidance-about" {}
            p #guidance-about.hint { "An addition to the task. It changes no rule, budget or verdict." }
            label for="guidance-phase" { "Phase" }
            @if names.len() <= LISTED {
                select #guidance-phase name="phase" {
                    option value="" { "all phases" }
                    @for name in names { option { (name) } }
                }
            } @else {
                input #guidance-phase name="phase" placeholder="all phases";
            }
            p {
                button.primary type="submit" { "Send" }
            }
        }
    }
}

/// Sends a message to a run and shows the run.
pub(crate) async fn send(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let caller = visitor.demand(Scope::Run)?;
    let run = core.run(&id).await?;
    let text = form.get("text").unwrap_or_default();
    let new = new_steering(caller, form.get("id"), text, form.get("phase"))?;
    core.supervisor.steer(&run.id, new).await.map_err(Problem::of_steering)?;
    Ok(super::back_or(&form, &format!("/runs/{id}#steering-title")))
}
