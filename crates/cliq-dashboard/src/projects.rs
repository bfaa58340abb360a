//! Registered projects.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_runs::Scope;
use maud::html;

use crate::elements::{ago, empty};
use crate::page::{Page, PageError, show};
use crate::visitor::Visitor;
use cliq_web::Core;
use cliq_web::{Form, register_project};

/// The list of projects.
pub(super) async fn page(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let instances = core.runs.instances().await?;
    let content = html! {
        h1 { "Projects" }
        p { "Runs can be started in registered projects, and those that people start there by " code { "cliq run" } " are shown." }
        @if instances.is_empty() { (empty("None is registered.")) } @else {
            table {
                thead { tr { th { "Id" } th { "Directory" } th { "Registered" } } }
                tbody {
                    @for instance in &instances {
                        tr { td { code { (instance.id) } } td { (instance.path) } td { (ago(&instance.registered_at)) } }
                    }
                }
            }
        }
        @if visitor.caller.scope >= Scope::Admin {
            h2 { "Register a project" }
            form.stack method="post" action="/projects" {
                label for="path" { "Its directory on the server's machine" }
                input #path name="path" required;
                button.primary type="submit" { "Register" }
            }
        }
    };
    show(&visitor, "Projects", "/projects", &content)
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
