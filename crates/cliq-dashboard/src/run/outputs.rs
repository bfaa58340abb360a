//! Logs and handoffs of a run.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cliq_web::{Core, HandoffSummary, Path};
use maud::{Markup, html};

use super::LISTED;
use super::files::RunFiles;
use super::head::{Tab, head};
use crate::elements::size;
use crate::page::{Page, show};
use crate::visitor::Visitor;

/// The page.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(id): Path<String>) -> Page {
    let run = core.run(&id).await?;
    let files = match core.in_project(&run, |run, project| Ok(RunFiles::read(run, project))).await {
        Ok(files) => Some(files),
        Err(problem) if problem.status() == StatusCode::GONE => None,
        Err(problem) => return Err(problem.into()),
    };
    let base = format!("/runs/{id}");
    let content = html! {
        (head(&run, Tab::Logs))
        @if let Some(files) = &files {
            div.columns {
                section aria-labelledby="logs-title" {
                    h2 #logs-title { "Logs" }
                    div #logs data-live { (logs(files, &base)) }
                }
                section aria-labelledby="handoffs-title" {
                    h2 #handoffs-title { "Handoffs" }
                    div #handoffs data-live { (handoffs(&files.handoffs, &base)) }
                }
            }
            p { a href=(format!("{base}/files")) { "Files of the workspace" } }
        } @else {
            p.empty { "The workspace is gone: logs, handoffs and files with it." }
        }
    };
    let events = super::events_of(&run);
    show(&visitor, &format!("Logs of {}", run.title), "", &html! { div data-events=[events] { (content) } })
}

fn handoffs(all: &[HandoffSummary], base: &str) -> Markup {
    html! {
        @if all.is_empty() { p.empty { "Nothing was handed over yet." } }
        @if all.len() > LISTED { p.quiet { "The first " (LISTED) " of " (all.len()) "; the API has all." } }
        ul.plain {
            @for handoff in all.iter().take(LISTED) {
                li {
                    a href=(format!("{base}/handoffs/{}/{}", handoff.from, handoff.to)) {
                        (handoff.from) " → " (handoff.to)
                    }
                    " " span.quiet { (size(handoff.size)) }
                }
            }
        }
    }
}

fn logs(files: &RunFiles, base: &str) -> Markup {
    let count = files.logs.len();
    // The orchestrator's, and the newest.
    let is_listed = |n: usize| n == 0 || n > count.saturating_sub(LISTED);
    let listed = files.logs.iter().enumerate().filter(|(n, _)| is_listed(*n)).map(|(_, log)| log);
    html! {
        @if count > LISTED { p.quiet { "The newest " (LISTED) " of " (count) "; the API has all." } }
        ul.plain {
            @for log in listed {
                li {
                    a href=(format!("{base}/logs/{}", log.name)) { (log.name) }
                    " " span.quiet { (size(log.size)) }
                }
            }
        }
    }
}
