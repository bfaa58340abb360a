//! Page of the changes that a run made in its workspace.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::empty;
use crate::page::{Page, show};
use crate::run::head::{Tab, head};
use crate::visitor::Visitor;
use cliq_web::{ActivationDiff, Core, Path, Problem, Query, changes_of};

/// Selection of changes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChangesQuery {
    /// Phase, item or activation; the whole run without it.
    of: Option<String>,
}

/// The page.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(query): Query<ChangesQuery>,
) -> Page {
    let run = core.run(&id).await?;
    let (of_run, of) = (run.clone(), query.of.clone());
    let read = match core.project(&run) {
        Ok(project) => {
            let read = move || changes_of(&project, run.id.as_str(), of.as_deref(), true);
            let read = tokio::task::spawn_blocking(read).await;
            read.map_err(|error| Problem::unavailable(error.to_string()))?
        }
        Err(gone) => Err(gone),
    };
    // A run without checkpoints is no wrong address.
    let (activations, why) = match read {
        Ok(activations) => (activations, None),
        Err(problem) if matches!(problem.status().as_u16(), 404 | 410) => (Vec::new(), Some(problem.detail)),
        Err(problem) => return Err(problem.into()),
    };
    let title = query.of.as_deref().map_or("Changes".to_owned(), |of| format!("Changes of {of}"));
    let content = html! {
        (head(&of_run, Tab::Changes))
        @if let Some(of) = &query.of { h2 { "Changes of " (of) } }
        @if let Some(why) = why { (empty(&why)) }
        @for activation in &activations { (section(activation)) }
    };
    show(&visitor, &title, "", &content)
}

fn section(activation: &ActivationDiff) -> Markup {
    html! {
        @if let Some(number) = activation.activation {
            h2 { (activation.phase) ", activation " (number) }
        }
        @if activation.changes.is_empty() {
            p.quiet { "No file changed." }
        } @else {
            ul { @for change in &activation.changes { li { (change.kind) ": " code { (change.path) } } } }
            pre.log.diff tabindex="0" role="region" aria-label="Differences" {
                @for line in activation.patch.as_deref().unwrap_or_default().lines() { (shown(line)) "\n" }
            }
        }
    }
}

/// A line of a patch, with its kind. The sign says the same as the colour.
pub(super) fn shown(line: &str) -> Markup {
    let is_head = line.starts_with("+++") || line.starts_with("---") || line.starts_with("diff ");
    match line.chars().next() {
        _ if is_head => html! { b { (line) } },
        Some('+') => html! { ins { (line) } },
        Some('-') => html! { del { (line) } },
        _ => html! { (line) },
    }
}
