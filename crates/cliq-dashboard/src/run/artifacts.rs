//! Files that a run changed or made, with previews.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use cliq_project::Project;
use cliq_web::{Core, FileKind, Path, changes_of, list_directory};
use maud::{Markup, html};

use super::head::{Tab, head};
use crate::elements::empty;
use crate::page::{Page, show};
use crate::preview::preview;
use crate::visitor::Visitor;
use crate::workspace::document_link;
use cliq_model::Run;
use cliq_supervisor::internals::workspace_files;

/// The most files with a preview, and the most that are listed.
const SHOWN: usize = 10;
const LISTED: usize = 200;

/// The page.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(id): Path<String>) -> Page {
    let run = core.run(&id).await?;
    let read = core.in_project(&run, |run, project| {
        let paths = paths_of(run, project);
        let shown = paths.iter().take(SHOWN).map(|path| file(run, path)).collect::<Vec<_>>();
        Ok((paths, shown))
    });
    let (has_files, (paths, shown)) = match read.await {
        Ok(read) => (true, read),
        Err(problem) if problem.status() == StatusCode::GONE => (false, Default::default()),
        Err(problem) => return Err(problem.into()),
    };
    let content = html! {
        (head(&run, Tab::Artifacts))
        @if has_files {
            p { a href=(format!("/runs/{id}/files")) { "All files of the workspace" } }
            @if paths.is_empty() { (empty("The run has changed no files, or no checkpoints were taken.")) }
        } @else {
            (empty("The workspace is gone."))
        }
        @for part in shown { (part) }
        @if paths.len() > SHOWN {
            h2 { "More files" }
            ul.plain { @for path in paths.iter().skip(SHOWN).take(LISTED) { li { a href=(link(&run, path)) { (path) } } } }
            @if paths.len() > SHOWN + LISTED { p.quiet { (paths.len() - SHOWN - LISTED) " more: the page of changes has all." } }
        }
    };
    show(&visitor, &format!("Artifacts of {}", run.title), "", &content)
}

/// Paths of the files that a run changed or made. Without checkpoints those at the top of a workspace that was made for it.
fn paths_of(run: &Run, project: &Project) -> Vec<String> {
    match changes_of(project, &run.id, None, false) {
        Ok(changes) => {
            let changes = changes.into_iter().flat_map(|activation| activation.changes);
            changes.filter(|change| change.kind != "deleted").map(|change| change.path).collect()
        }
        Err(_) if run.instance.is_none() => {
            let entries = list_directory(&run.workspace, "").unwrap_or_default().into_iter();
            entries.filter(|entry| entry.kind == FileKind::File).map(|entry| entry.path).collect()
        }
        Err(_) => Vec::new(),
    }
}

fn link(run: &Run, path: &str) -> String {
    let query = serde_urlencoded::to_string([("path", path)]).unwrap_or_default();
    format!("/runs/{}/files?{query}", run.id)
}

fn file(run: &Run, path: &str) -> Markup {
    html! {
        section.card aria-label=(path) {
            h2 { a href=(link(run, path)) { (path) } }
            @match workspace_files::read(&run.workspace, path) {
                Ok(bytes) => (preview(path, &bytes, &document_link(run.id.as_str(), path))),
                Err(_) => p.quiet { "It cannot be shown." },
            }
        }
    }
}
