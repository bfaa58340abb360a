//! Teams with their graphs and problems.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, PreEscaped, html};

use crate::elements::badge;
use crate::graph::graph_of_team;
use crate::markdown;
use crate::page::{Page, show};
use crate::team_cards::cards;
use crate::team_runs::{facts, list as list_of_runs, runs_of};
use crate::visitor::Visitor;
use cliq_project::FoundTeam;
use cliq_web::Core;
use cliq_web::{Path, find_team, team_cards, team_document};
use cliq_workflow::TeamCheck;

/// All teams.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let teams = core.blocking(team_cards).await?;
    let content = html! {
        h1 { "Teams" }
        (cards(&teams, false))
        p.hint { "`cliq team install` on the server's machine adds one." }
    };
    show(&visitor, "Teams", "/teams", &content)
}

/// A team.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path((scope, name)): Path<(String, String)>,
) -> Page {
    let full = format!("{scope}/{name}");
    let read = {
        let full = full.clone();
        core.blocking(move |host| find_team(host, &full))
    };
    let (found, checked) = read.await?;
    let team = team_document(&full, &checked);
    let picture = checked.workflow.as_ref().map(graph_of_team);
    let (runs, figures) = runs_of(&core, &full).await?;
    let roles = roles(&found, &checked);
    let content = html! {
        h1 { (team.name) @if let Some(version) = &team.version { " " span.quiet { (version) } } }
        @if let Some(description) = &team.description { p { (description) } }
        @for (title, list) in [("Use it when", &team.use_when), ("Not for", &team.not_for), ("Tags", &team.tags)] {
            @if !list.is_empty() { p { strong { (title) ": " } (list.join("; ")) } }
        }
        @if team.valid && visitor.may_run() {
            p { a.button.primary href=(format!("/runs/new?team={}", team.name)) { "New run" } }
        }
        (facts(&figures))
        @if !team.diagnostics.is_empty() {
            h2 { "Problems" }
            ul {
                @for d in &team.diagnostics {
                    li { (badge(&d.severity)) " line " (d.line) ", column " (d.column) ": " (d.message) " " span.quiet { (d.help) } }
                }
            }
        }
        @if let Some(svg) = picture {
            h2 { "Phases" }
            div.scroll tabindex="0" role="region" aria-label="Graph of the phases" { (PreEscaped(svg)) }
        }
        @if !team.inputs.is_empty() {
            h2 { "Inputs" }
            dl.inputs {
                @for input in &team.inputs {
                    dt { (input.name) @if input.required { " (required)" } }
                    dd { (input.description.as_deref().unwrap_or_default()) @if let Some(default) = &input.default { " (" (default) ")" } }
                }
            }
        }
        (roles)
        (list_of_runs(&runs, &full))
    };
    show(&visitor, &team.name, "/teams", &content)
}

/// Roles of the phases, each once.
pub(super) fn roles(found: &FoundTeam, checked: &TeamCheck) -> Markup {
    let mut names: Vec<&str> = Vec::new();
    for (_, phase) in checked.workflow.iter().flat_map(cliq_workflow::ValidatedWorkflow::phases) {
        if !names.contains(&phase.role.as_str()) {
            names.push(&phase.role);
        }
    }
    let roles: Vec<(&str, &str)> =
        names.into_iter().filter_map(|name| Some((name, found.folder.role(name)?))).collect();
    html! {
        @if !roles.is_empty() {
            h2 { "Roles" }
            @for (name, text) in roles { details.card { summary { (name) } div.prose { (markdown::render(text)) } } }
        }
    }
}
