//! Registered projects.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_runs::Scope;
use maud::html;

use super::elements::{ago, empty};
use super::{Page, PageError, Visitor, show};
use crate::api::{Form, register_instance};
use crate::app::App;

/// The list of projects.
pub(super) async fn page(visitor: Visitor, State(app): State<Arc<App>>) -> Page {
    let instances = app.runs.instances().await?;
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
    State(app): State<Arc<App>>,
    form: Form,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Admin)?;
    register_instance(&app, form.get("path").unwrap_or_default()).await?;
    Ok(Redirect::to("/projects"))
}
