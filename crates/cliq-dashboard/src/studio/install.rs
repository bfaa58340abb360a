//! Installing and publishing a draft, after its permissions were shown.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use cliq_model::Scope;
use cliq_project::DraftName;
use cliq_web::{Core, Path, Problem, draft_name, install_draft, prepare_draft, publish_draft};
use maud::{Markup, html};

use super::{tabs, warning};
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::visitor::Visitor;

/// Page with the permissions of a draft.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(draft): Path<String>) -> Page {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let content = content(&core, &name, None, None).await?;
    show(&visitor, &format!("Install {name} · Studio"), "/studio", &content)
}

async fn content(
    core: &Core,
    name: &DraftName,
    done: Option<&Markup>,
    wrong: Option<&Problem>,
) -> Result<Markup, Problem> {
    let draft = name.clone();
    let prepared = core
        .blocking(move |host| {
            Ok(prepare_draft(host, &draft).map(|team| {
                let sentences: Vec<(String, Vec<String>)> =
                    team.permissions.iter().map(|team| (team.team.clone(), team.sentences())).collect();
                let present = host.list_teams("/nonexistent".into()).unwrap_or_default();
                let hides = present.iter().any(|other| other.name == team.name && other.path.is_none());
                (team.name, team.version.map(|version| version.to_string()), sentences, hides)
            }))
        })
        .await?;
    let has_drafts = !matches!(&prepared, Err(problem) if problem.status == 404);
    if !has_drafts {
        return prepared.map(|_| html! {});
    }
    Ok(html! {
        h1 { "Install " (name) }
        (tabs(name, "/install", true))
        (warning(wrong))
        @if let Some(done) = done { div.note role="status" { (done) } }
        @match &prepared {
            Err(problem) => { (warning(Some(problem))) p { a href=(format!("/studio/{name}")) { "Back to the files" } } }
            Ok((team, version, permissions, hides)) => {
                @for (team, sentences) in permissions {
                    h2 { (team) " may" }
                    ul { @for sentence in sentences { li { (sentence) } } }
                }
                div.columns {
                    section {
                        h2 { "On this server" }
                        p { "All who may start runs here can then run " code { (team) } ". An installed copy of the name is replaced." }
                        @if *hides { p.warning { "The program brings a team of this name along. It is hidden while yours is installed: give yours another name in team.yml." } }
                        form method="post" action=(format!("/studio/{name}/install")) { button.primary type="submit" { "Install" } }
                    }
                    section {
                        h2 { "In a registry" }
                        @match version {
                            Some(version) => {
                                p { "Publishes version " (version) " in the registry of its scope (setting " code { "registries" } "). A version is published once." }
                                form method="post" action=(format!("/studio/{name}/publish")) { button type="submit" { "Publish" } }
                            }
                            None => { p.quiet { "To publish it, give team.yml a " code { "version:" } " and a scope other than @local." } }
                        }
                    }
                }
            }
        }
    })
}

async fn after(
    visitor: &Visitor,
    core: &Core,
    name: &DraftName,
    done: Result<Markup, Problem>,
) -> Result<Response, PageError> {
    let title = format!("Install {name} · Studio");
    match done {
        Ok(done) => {
            let content = content(core, name, Some(&done), None).await?;
            Ok(layout::page(visitor, &title, Some("/studio"), &content).into_response())
        }
        Err(problem) => {
            let content = content(core, name, None, Some(&problem)).await?;
            Ok((problem.status(), layout::page(visitor, &title, Some("/studio"), &content)).into_response())
        }
    }
}

/// Installs a draft.
pub(crate) async fn install(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let draft = name.clone();
    let done = core.blocking(move |host| install_draft(host, &draft)).await.map(|installed| {
        html! {
            p { (installed.team) @if let Some(version) = &installed.version { " " (version) } @if installed.replaced { " was installed in the place of the former one." } @else { " was installed." } }
            p { a.button.primary href=(format!("/runs/new?team={}", installed.team)) { "Run it" } " " a href=(format!("/teams/{}", installed.team)) { "Its page" } }
        }
    });
    after(&visitor, &core, &name, done).await
}

/// Publishes a draft.
pub(crate) async fn publish(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let draft = name.clone();
    let done = core.blocking(move |host| publish_draft(host, &draft)).await.map(|published| {
        html! {
            p { (published.team) " " (published.version) " was published as " code { (published.repository) ":" (published.version) } "." }
            p.quiet { "`cliq team install " (published.team) "@^" (published.version) "` installs it elsewhere. " (published.digest) }
        }
    });
    after(&visitor, &core, &name, done).await
}
