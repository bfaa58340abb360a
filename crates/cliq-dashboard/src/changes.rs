//! Page of the changes that a run made in its workspace.

use std::sync::Arc;

use axum::extract::State;
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::empty;
use crate::page::{Page, show};
use crate::run::head::{Tab, head};
use crate::visitor::Visitor;
use cliq_web::{ActivationDiff, Core, Path, Query, RunCheckpoint, changes_of, checkpoints_of};

/// The most activations that can be chosen.
const LISTED: usize = 200;

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
    let of = query.of.clone();
    let read = core.in_project(&run, move |run, project| {
        let checkpoints = checkpoints_of(project, &run.id)?;
        Ok((changes_of(project, &run.id, of.as_deref(), true)?, activations(&checkpoints)))
    });
    // A run without checkpoints is no wrong address.
    let ((changes, activations), why) = match read.await {
        Ok(read) => (read, None),
        Err(problem) if matches!(problem.status().as_u16(), 404 | 410) => {
            (Default::default(), Some(problem.detail))
        }
        Err(problem) => return Err(problem.into()),
    };
    let title = query.of.as_deref().map_or("Changes".to_owned(), |of| format!("Changes of {of}"));
    let content = html! {
        (head(&run, Tab::Changes))
        @if activations.len() > 1 { (choice(&id, &activations, query.of.as_deref())) }
        @if let Some(why) = why { (empty(&why)) }
        @for activation in &changes { (section(activation)) }
    };
    show(&visitor, &title, "", &content)
}

/// Activations with checkpoints, each once: phase or item, and number.
fn activations(checkpoints: &[RunCheckpoint]) -> Vec<(String, u32)> {
    let mut found: Vec<(String, u32)> = Vec::new();
    for checkpoint in checkpoints.iter().filter(|checkpoint| checkpoint.moment == "before") {
        let activation = (checkpoint.phase.clone(), checkpoint.activation);
        if !found.contains(&activation) && found.len() < LISTED {
            found.push(activation);
        }
    }
    found
}

/// Links to the changes of the whole run and of each activation.
fn choice(id: &str, activations: &[(String, u32)], of: Option<&str>) -> Markup {
    let base = format!("/runs/{id}/changes");
    html! {
        nav.filters aria-label="Changes of" {
            a href=(base) aria-current=[of.is_none().then_some("true")] { "whole run" }
            @for (phase, number) in activations {
                // An item works under its own name: PHASE.INDEX.
                @let address = if phase.contains('.') { phase.clone() } else { format!("{phase}.{number}") };
                @let is_current = of.is_some_and(|of| of == address || of == phase);
                a href=(format!("{base}?of={address}")) aria-current=[is_current.then_some("true")] {
                    (phase) @if *number > 1 { ", activation " (number) }
                }
            }
        }
    }
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
