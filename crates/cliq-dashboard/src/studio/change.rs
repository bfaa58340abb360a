//! Changing a draft by a model: the difference is shown before anything is saved.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_model::Scope;
use cliq_project::DraftName;
use cliq_web::{
    BuilderTask, ChangedFile, Core, Form, Path, Problem, ProposedChange, draft_name, draft_path, drafts_of,
    improve,
};
use maud::{Markup, html};

use super::{tabs, text_of, warning};
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::text::shown;
use crate::visitor::Visitor;

/// Page with the form.
pub(crate) async fn page(visitor: Visitor, State(core): State<Arc<Core>>, Path(draft): Path<String>) -> Page {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let roles = roles(&core, &name).await?;
    let content = content(&name, &roles, "", None, None);
    show(&visitor, &format!("Change {name} · Studio"), "/studio", &content)
}

async fn roles(core: &Core, name: &DraftName) -> Result<Vec<String>, Problem> {
    let name = name.clone();
    core.blocking(move |host| Ok(drafts_of(host)?.text(&name)?.roles.into_keys().collect())).await
}

fn content(
    name: &DraftName,
    roles: &[String],
    instruction: &str,
    change: Option<&ProposedChange>,
    wrong: Option<&Problem>,
) -> Markup {
    html! {
        h1 { "Change " (name) }
        (tabs(name, "/change", true))
        (warning(wrong))
        @if let Some(change) = change { (proposal(name, change)) }
        form.stack method="post" action=(format!("/studio/{name}/change")) data-slow="The model is changing the team" {
            label for="instruction" { "What is to be changed" }
            textarea #instruction name="instruction" rows="4" required placeholder="Let a person approve the report before it is sent" { (instruction) }
            label for="role" { "Part" }
            select #role name="role" {
                option value="" { "team.yml and the roles" }
                @for role in roles { option value=(role) { "The role " (role) } }
            }
            p.hint { "A model proposes a change of what is saved. Nothing is saved before you accept it." }
            button.primary type="submit" { "Propose a change" }
        }
    }
}

fn proposal(name: &DraftName, change: &ProposedChange) -> Markup {
    html! {
        section aria-labelledby="proposal" {
            h2 #proposal { "Proposed change" }
            @if change.files.is_empty() { p.empty { "The model changed nothing." } }
            @if !change.new_permissions.is_empty() {
                div.warning { p { strong { "The changed team may do what it may not do now:" } } ul { @for sentence in &change.new_permissions { li { "it " (sentence) } } } }
            }
            @for file in &change.files {
                h3 { (file.path) @if file.version.is_none() { " (new)" } }
                pre.diff tabindex="0" role="region" aria-label=(format!("Difference of {}", file.path)) {
                    @let difference = shown(file.difference.as_bytes());
                    @for line in difference.lines() {
                        @match line.as_bytes().first() {
                            Some(b'+') => ins { (line) },
                            Some(b'-') => del { (line) },
                            _ => (line),
                        }
                        "\n"
                    }
                }
            }
            @if !change.files.is_empty() {
                form.actions method="post" action=(format!("/studio/{name}/accept")) {
                    @for file in &change.files {
                        input type="hidden" name="path" value=(file.path);
                        input type="hidden" name="version" value=(file.version.as_deref().unwrap_or_default());
                        input type="hidden" name="text" value=(file.text);
                    }
                    button.primary type="submit" { "Save this change" }
                    a.button href=(format!("/studio/{name}")) { "Leave it" }
                }
            }
        }
    }
}

/// Asks the model, and shows what it proposes.
pub(crate) async fn propose(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let roles = roles(&core, &name).await?;
    let instruction = text_of(&form, "instruction").unwrap_or_default();
    let title = format!("Change {name} · Studio");
    let proposed = if instruction.trim().is_empty() {
        Err(Problem::unprocessable("say what is to be changed", Vec::new()))
    } else {
        let task =
            BuilderTask { instruction: instruction.clone(), role: form.get("role").map(str::to_owned) };
        Box::pin(improve(core.host(), &name, task)).await
    };
    Ok(match proposed {
        Ok(change) => {
            let content = content(&name, &roles, &instruction, Some(&change), None);
            layout::page(&visitor, &title, Some("/studio"), &content).into_response()
        }
        Err(problem) => {
            let content = content(&name, &roles, &instruction, None, Some(&problem));
            (problem.status(), layout::page(&visitor, &title, Some("/studio"), &content)).into_response()
        }
    })
}

/// Saves a proposed change: all files, or none if one was saved by someone else meanwhile. The change is then shown again, compared with what is
/// saved now.
pub(crate) async fn accept(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let values = |field: &str| -> Vec<String> {
        let fields = form.0.iter().filter(|(key, _)| key == field);
        fields.map(|(_, value)| value.replace("\r\n", "\n")).collect()
    };
    let (paths, versions, texts) = (values("path"), values("version"), values("text"));
    let mut files = Vec::new();
    for ((path, version), text) in paths.iter().zip(versions).zip(texts) {
        files.push((draft_path(path)?, Some(version).filter(|version| !version.is_empty()), text));
    }
    let (draft, proposed) = (name.clone(), files.clone());
    let saved = core.blocking(move |host| Ok(drafts_of(host)?.save_all(&draft, &proposed)?)).await;
    let problem = match saved {
        Ok(()) => return Ok(Redirect::to(&format!("/studio/{name}")).into_response()),
        Err(problem) if problem.status() == StatusCode::CONFLICT => problem,
        Err(problem) => return Err(problem.into()),
    };
    let roles = roles(&core, &name).await?;
    let draft = name.clone();
    let present = core.blocking(move |host| Ok(drafts_of(host)?.files(&draft)?)).await?;
    let compared = files.into_iter().map(|(path, _, text)| {
        let now = present.iter().find(|file| file.path == path);
        let before = now.and_then(|file| file.text.as_deref()).unwrap_or_default();
        ChangedFile {
            version: now.map(|file| file.version.clone()),
            difference: similar::TextDiff::from_lines(before, &text)
                .unified_diff()
                .context_radius(2)
                .to_string(),
            path: path.to_string(),
            text,
        }
    });
    let change = ProposedChange { files: compared.collect(), new_permissions: Vec::new() };
    let content = content(&name, &roles, "", Some(&change), Some(&problem));
    let title = format!("Change {name} · Studio");
    Ok((problem.status(), layout::page(&visitor, &title, Some("/studio"), &content)).into_response())
}
