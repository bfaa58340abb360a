//! Registered projects: their runs, plans and signals; registration and removal.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_fs::CliqDir;
use cliq_model::{Instance, Scope};
use cliq_web::{Core, Form, Path, Problem, find_project, register_project};
use maud::{Markup, html};

use crate::elements::{ago, badge, empty};
use crate::page::{Page, PageError, show};
use crate::visitor::Visitor;

/// The list of projects.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let instances = core.runs.instances().await?;
    let may_change = visitor.caller.scope >= Scope::Admin;
    let mut states = Vec::new();
    for instance in &instances {
        let path = instance.path.clone();
        let is_there = core.in_workspace(&instance.path, move || CliqDir::open(&path).is_ok()).await;
        states.push(is_there.map_or("unknown", |is_there| if is_there { "valid" } else { "missing" }));
    }
    let content = html! {
        h1 { "Projects" }
        p { "Runs and plans work in registered projects. Runs that people start there with " code { "cliq run" } " are listed too." }
        @if instances.is_empty() {
            (empty("No projects. `cliq init` makes a directory a project; the form below registers it."))
        } @else {
            table {
                thead { tr { th { "Project" } th { "State" } th { "Registered" } th { "Its work" } @if may_change { th { span.hidden { "Actions" } } } } }
                tbody { @for (instance, state) in instances.iter().zip(states) { (row(instance, state, may_change)) } }
            }
        }
        @if may_change {
            h2 { "Register a project" }
            form.stack method="post" action="/projects" {
                label for="path" { "Directory on the server's machine" }
                input #path name="path" required placeholder="/home/me/project";
                button.primary type="submit" { "Register" }
            }
        }
    };
    show(&visitor, "Projects", "/projects", &content)
}

fn row(instance: &Instance, state: &str, may_change: bool) -> Markup {
    let name = instance.path.file_name().unwrap_or(instance.path.as_str());
    html! {
        tr {
            td.title { strong { (name) } " " code.quiet { (instance.id) } div.quiet { (instance.path) } }
            td { (badge(state)) }
            td data-label="registered" { (ago(instance.registered_at)) }
            td {
                span.inline {
                    a href=(format!("/?project={}", instance.id)) aria-label=(format!("Runs of {name}")) { "Runs" }
                    a href=(format!("/plans?project={}", instance.id)) aria-label=(format!("Plans of {name}")) { "Plans" }
                    a href=(format!("/signals?project={}", instance.id)) aria-label=(format!("Signals of {name}")) { "Signals" }
                }
            }
            @if may_change {
                td {
                    form.inline method="post" action=(format!("/projects/{}/forget", instance.id)) {
                        button.danger type="submit" aria-label=(format!("Forget {name}")) title="Its files and its runs stay." { "Forget" }
                    }
                }
            }
        }
    }
}

/// Registers a project and shows the list.
pub(super) async fn register(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    form: Form,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Admin)?;
    register_project(&core, form.get("path").unwrap_or_default()).await?;
    Ok(Redirect::to("/projects"))
}

/// Forgets a project and shows the list. Its files and the record of its runs stay.
pub(super) async fn forget(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Admin)?;
    find_project(&core, &id).await?;
    core.runs.forget_instance(&id).await.map_err(Problem::from)?;
    Ok(Redirect::to("/projects"))
}
