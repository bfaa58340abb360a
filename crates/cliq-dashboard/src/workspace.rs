//! Files of a run's workspace: directories, and texts as text.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use camino::Utf8Path;
use maud::{Markup, html};
use serde::Deserialize;

use crate::elements::size;
use crate::page::{Page, PageError, show};
use crate::preview::{PDF, preview};
use crate::runs::short;
use crate::text::shown;
use crate::visitor::Visitor;
use cliq_model::Run;
use cliq_project::Project;
use cliq_supervisor::internals::workspace_files;
use cliq_web::{Core, Problem};
use cliq_web::{FileEntry, FileKind, Path, Query, list_directory};

#[derive(Debug, Deserialize)]
pub(super) struct FileQuery {
    #[serde(default)]
    path: String,
}

fn link(id: &str, path: &str) -> String {
    let query = serde_urlencoded::to_string([("path", path)]).unwrap_or_default();
    format!("/runs/{id}/files?{query}")
}

/// Address of a PDF document for a frame.
pub(super) fn document_link(id: &str, path: &str) -> String {
    let query = serde_urlencoded::to_string([("path", path)]).unwrap_or_default();
    format!("/runs/{id}/document?{query}")
}

/// A PDF document, which a frame of a page shows. Other files are refused: a browser could run them as pages of this server.
pub(super) async fn document(
    _: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(place): Query<FileQuery>,
) -> Result<impl IntoResponse, PageError> {
    let run = core.run(&id).await?;
    let read = move |run: &Run, _: &Project| Ok(workspace_files::read(&run.workspace, &place.path)?);
    let bytes = core.in_project(&run, read).await?;
    if !bytes.starts_with(PDF) {
        return Err(Problem::not_found("the file is not a PDF document").into());
    }
    let headers = [
        (header::CONTENT_TYPE, "application/pdf"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'self'; script-src 'none'; frame-ancestors 'self'"),
        (header::X_FRAME_OPTIONS, "SAMEORIGIN"),
    ];
    Ok((headers, bytes))
}

/// The page of a directory or a file.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(place): Query<FileQuery>,
) -> Page {
    let run = core.run(&id).await?;
    let path = place.path.clone();
    let body = core.in_project(&run, move |run, _| {
        let found = workspace_files::locate(&run.workspace, &path)?;
        if found.is_dir() {
            return Ok(directory(run.id.as_str(), &list_directory(&run.workspace, &path)?));
        }
        Ok(file(run.id.as_str(), &path, &workspace_files::read(&run.workspace, &path)?))
    });
    let body = body.await?;
    let parents: Vec<&Utf8Path> = Utf8Path::new(&place.path).ancestors().filter(|path| *path != "").collect();
    let content = html! {
        h1 { "Files" }
        p { a href=(format!("/runs/{id}")) { (run.team) " " (short(&id)) } }
        nav.crumbs aria-label="Path" {
            a href=(link(&id, "")) { "workspace" }
            @for path in parents.iter().rev() { " / " a href=(link(&id, path.as_str())) { (path.file_name().unwrap_or("?")) } }
        }
        (body)
    };
    show(&visitor, "Files", "", &content)
}

fn directory(id: &str, entries: &[FileEntry]) -> Markup {
    html! {
        table {
            thead { tr { th { "Name" } th { "Size" } } }
            tbody {
                @for entry in entries {
                    tr {
                        td {
                            @match entry.kind {
                                FileKind::Other => (shown(entry.name.as_bytes())),
                                FileKind::Directory => a href=(link(id, &entry.path)) { (shown(entry.name.as_bytes())) "/" },
                                FileKind::File => a href=(link(id, &entry.path)) { (shown(entry.name.as_bytes())) },
                            }
                        }
                        td.number { @if entry.kind == FileKind::File { (size(entry.size)) } }
                    }
                }
            }
        }
        @if entries.is_empty() { p.empty { "This directory is empty." } }
    }
}

fn file(id: &str, path: &str, bytes: &[u8]) -> Markup {
    let query = serde_urlencoded::to_string([("path", path)]).unwrap_or_default();
    html! {
        p { a href=(format!("/api/v1/runs/{id}/files/content?{query}")) { "Save" } " · " (size(bytes.len() as u64)) }
        (preview(path, bytes, &document_link(id, path)))
    }
}
