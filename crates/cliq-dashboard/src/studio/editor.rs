//! Editor of a draft: files, the text of one, problems by line, graph or preview.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_model::Scope;
use cliq_project::{DraftFile, DraftName, UnsavedTexts};
use cliq_web::{
    Core, DraftProblemDocument, Form, Path, Problem, Query, draft_name, draft_path, drafts_of, validate_draft,
};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::json;

use super::{tabs, text_of, warning};
use crate::assets;
use crate::elements::badge;
use crate::graph::graph_of_team;
use crate::layout;
use crate::markdown;
use crate::page::{Page, PageError};
use crate::visitor::Visitor;

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Choice {
    file: Option<String>,
    /// Line that a problem is about.
    #[serde(default)]
    line: Option<usize>,
}

/// Text that could not be saved: another version was saved since it was read.
struct Unsaved {
    path: String,
    text: String,
    problem: Problem,
}

/// A draft as it is shown.
struct Shown {
    files: Vec<DraftFile>,
    problems: Vec<DraftProblemDocument>,
    graph: Option<String>,
    team: Option<String>,
    /// Names that are offered while a person types.
    names: serde_json::Value,
}

/// Page with the files, the editor and the problems of a draft.
pub(crate) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    Query(choice): Query<Choice>,
) -> Page {
    let name = draft_name(&draft)?;
    let shown = read(&core, &name).await?;
    let content = content(&visitor, &name, &shown, &choice, None);
    Ok(layout::page_with_script(
        &visitor,
        &format!("{name} · Studio"),
        "/studio",
        assets::url("studio.js"),
        &content,
    ))
}

async fn read(core: &Core, name: &DraftName) -> Result<Shown, Problem> {
    let name = name.clone();
    core.blocking(move |host| {
        let drafts = drafts_of(host)?;
        let files = drafts.files(&name)?;
        let checked = validate_draft(host, &name, &UnsavedTexts::new())?;
        let workflow = checked.check.workflow.as_ref();
        let built_in = cliq_workflow::BUILT_IN.iter().map(|name| (*name).to_owned());
        let agents: Vec<String> = built_in.chain(host.agents_outside_teams()).collect();
        let teams: Vec<String> = cliq_web::list_teams(host)?.into_iter().map(|team| team.name).collect();
        Ok(Shown {
            problems: checked.problems,
            graph: workflow.map(graph_of_team),
            team: workflow.map(|workflow| workflow.name.to_string()),
            names: json!({"agents": agents, "teams": teams}),
            files,
        })
    })
    .await
}

fn content(
    visitor: &Visitor,
    name: &DraftName,
    shown: &Shown,
    choice: &Choice,
    unsaved: Option<&Unsaved>,
) -> Markup {
    let wanted =
        unsaved.map(|unsaved| unsaved.path.as_str()).or(choice.file.as_deref()).unwrap_or("team.yml");
    let file = shown.files.iter().find(|file| file.path.as_str() == wanted);
    let may_edit = visitor.may_edit();
    html! {
        div.headline {
            h1 { (name) @if let Some(team) = &shown.team { " " span.quiet { (team) } } }
            @if may_edit {
                details.more {
                    summary { "Remove the draft" }
                    form method="post" action=(format!("/studio/{name}/remove")) { button.danger type="submit" { "Remove it with all its files" } }
                }
            }
        }
        (tabs(name, "", may_edit))
        div.studio {
            (files(name, shown, wanted, may_edit))
            section.text aria-label="Text" {
                (warning(unsaved.map(|unsaved| &unsaved.problem)))
                @match file {
                    Some(file) => { (editor(name, shown, file, choice, unsaved, may_edit)) }
                    None if unsaved.is_some() => { (gone(name, unsaved)) }
                    None => { p.empty { "The draft has no file " (wanted) "." } }
                }
            }
            aside.panel aria-label="Problems and picture" {
                h2 { "Problems" }
                div #problems role="status" aria-live="polite" { (problems(name, &shown.problems)) }
                @match file.and_then(|file| Some((file, file.text.as_ref()?))).filter(|(file, _)| file.path.as_str().ends_with(".md")) {
                    Some((_, text)) => {
                        h2 { "Preview" }
                        div #preview.prose { (markdown::render(text)) }
                    }
                    None => {
                        h2 { "Phases" }
                        div #graph.scroll tabindex="0" role="region" aria-label="Graph of the phases" {
                            @match &shown.graph {
                                Some(svg) => { (PreEscaped(svg)) }
                                None => { p.empty { "The graph comes when team.yml has no errors." } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn files(name: &DraftName, shown: &Shown, wanted: &str, may_edit: bool) -> Markup {
    let has_error = |path: &str| shown.problems.iter().any(|p| p.file == path && p.severity == "error");
    html! {
        nav.tree aria-label="Files" {
            ul {
                @for file in &shown.files {
                    @let path = file.path.as_str();
                    li { a href=(address(name, path)) aria-current=[(path == wanted).then_some("page")] data-file=(path) { (path) @if has_error(path) { " " span.fg-red { "✗" span.hidden { " has errors" } } } } }
                }
            }
            @if may_edit {
                details {
                    summary { "Add a file" }
                    form.stack method="post" action=(format!("/studio/{name}/add")) {
                        label for="path" { "Path" }
                        input #path name="path" required maxlength="200" list="paths" placeholder="roles/writer.md" autocomplete="off";
                        datalist #paths { @for path in ["roles/", "skills/NAME/SKILL.md", "tests/phases.yml", "agents/", "README.md"] { option value=(path) {} } }
                        button type="submit" { "Add" }
                    }
                }
            }
        }
    }
}

/// Address of a file in the editor.
fn address(name: &DraftName, path: &str) -> String {
    format!("/studio/{name}?file={path}")
}

fn editor(
    name: &DraftName,
    shown: &Shown,
    file: &DraftFile,
    choice: &Choice,
    unsaved: Option<&Unsaved>,
    may_edit: bool,
) -> Markup {
    let path = file.path.as_str();
    let Some(saved) = &file.text else {
        return html! { h2 { (path) } p.empty { "This file is not a text, or too large to be edited here." } };
    };
    let text = unsaved.map_or(saved, |unsaved| &unsaved.text);
    html! {
        h2 { (path) }
        @if unsaved.is_some() {
            details.card open { summary { "The text that was saved meanwhile" } pre.text tabindex="0" { (saved) } }
            p { "Below is your text. Saving it now replaces the other one." }
        }
        form #edit method="post" action=(format!("/studio/{name}/save")) data-draft=(name) data-file=(path) data-version=(file.version)
            data-line=[choice.line] data-names=(shown.names) data-edit=[may_edit.then_some("true")] {
            input type="hidden" name="path" value=(path);
            input #version type="hidden" name="version" value=(file.version);
            label.hidden for="text" { "Text of " (path) }
            // A browser takes the first line break away.
            textarea #text.code name="text" rows="28" spellcheck="false" autocomplete="off" readonly[!may_edit] { (PreEscaped("\n")) (text) }
            @if may_edit {
                div.actions {
                    button.primary type="submit" { "Save" }
                    span #saved role="status" aria-live="polite" {}
                }
            }
        }
        @if may_edit && path != "team.yml" {
            form method="post" action=(format!("/studio/{name}/remove-file")) {
                input type="hidden" name="path" value=(path);
                input type="hidden" name="version" value=(file.version);
                button.ghost type="submit" { "Remove this file" }
            }
        }
    }
}

/// The text of a file that was removed meanwhile.
fn gone(name: &DraftName, unsaved: Option<&Unsaved>) -> Markup {
    html! {
        @if let Some(unsaved) = unsaved {
            h2 { (unsaved.path) }
            p { "Below is your text. Saving it now creates the file again." }
            form method="post" action=(format!("/studio/{name}/save")) {
                input type="hidden" name="path" value=(unsaved.path);
                label.hidden for="text" { "Text of " (unsaved.path) }
                textarea #text.code name="text" rows="28" spellcheck="false" { (PreEscaped("\n")) (unsaved.text) }
                div.actions { button.primary type="submit" { "Save" } }
            }
        }
    }
}

fn problems(name: &DraftName, problems: &[DraftProblemDocument]) -> Markup {
    html! {
        @if problems.is_empty() { p { (badge("valid")) " no problems" } }
        ul.plain {
            @for problem in problems {
                li {
                    (badge(&problem.severity)) " "
                    a href=(format!("{}&line={}", address(name, &problem.file), problem.line)) data-line=(problem.line) data-file=(problem.file) { (problem.file) ":" (problem.line) }
                    " " (problem.message) " " span.quiet { (problem.help) }
                }
            }
        }
    }
}

/// Saves a file. A text that meets another version is shown with it.
pub(crate) async fn save(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let path = draft_path(form.get("path").unwrap_or_default())?;
    let text = text_of(&form, "text").unwrap_or_default();
    let version = form.get("version").map(str::to_owned);
    let saved = {
        let (name, path, text) = (name.clone(), path.clone(), text.clone());
        core.blocking(move |host| Ok(drafts_of(host)?.save(&name, &path, &text, version.as_deref())?)).await
    };
    match saved {
        Ok(_) => Ok(Redirect::to(&address(&name, path.as_str())).into_response()),
        Err(problem) if problem.status() == StatusCode::CONFLICT => {
            let shown = read(&core, &name).await?;
            let status = problem.status();
            let unsaved = Unsaved { path: path.to_string(), text, problem };
            let content = content(&visitor, &name, &shown, &Choice::default(), Some(&unsaved));
            let title = format!("{name} · Studio");
            let script = assets::url("studio.js");
            Ok((status, layout::page_with_script(&visitor, &title, "/studio", script, &content))
                .into_response())
        }
        Err(problem) => Err(problem.into()),
    }
}

/// First text of a new file, by its path.
fn first_text(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split('.').next().unwrap_or(name);
    match path.split('/').next() {
        Some("roles") => {
            format!("You are the {stem}. Say what you get, what you do, and when you are done.\n")
        }
        Some("skills") if name == "SKILL.md" => {
            let directory = path.split('/').nth(1).unwrap_or(stem);
            format!(
                "---\nname: {directory}\ndescription: What it is for, and when to use it.\n---\n\n# {directory}\n"
            )
        }
        Some("tests") => "tests:\n  - name: first\n    expect:\n      end: completed\n".to_owned(),
        _ => String::new(),
    }
}

/// Adds a file and opens it. A path that cannot be one is said on the page.
pub(crate) async fn add(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let added = match draft_path(form.get("path").unwrap_or_default()) {
        Err(problem) => Err(problem),
        Ok(path) => {
            let (name, goal) = (name.clone(), address(&name, path.as_str()));
            let add = move |host: &cliq_project::Host| {
                let drafts = drafts_of(host)?;
                match drafts.save(&name, &path, &first_text(path.as_str()), None) {
                    // It is there: it is opened.
                    Err(cliq_project::DraftError::FileExists(_)) if drafts.file(&name, &path).is_ok() => {
                        Ok(())
                    }
                    saved => Ok(saved.map(drop)?),
                }
            };
            core.blocking(add).await.map(|()| goal)
        }
    };
    match added {
        Ok(goal) => Ok(Redirect::to(&goal).into_response()),
        Err(problem) if problem.status() == StatusCode::NOT_FOUND => Err(problem.into()),
        Err(problem) => {
            let shown = read(&core, &name).await?;
            let content = content(&visitor, &name, &shown, &Choice::default(), None);
            let content = html! { (warning(Some(&problem))) (content) };
            let title = format!("{name} · Studio");
            let script = assets::url("studio.js");
            let page = layout::page_with_script(&visitor, &title, "/studio", script, &content);
            Ok((problem.status(), page).into_response())
        }
    }
}

/// Removes a file.
pub(crate) async fn remove_file(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    let path = draft_path(form.get("path").unwrap_or_default())?;
    let version = form.get("version").unwrap_or_default().to_owned();
    let goal = format!("/studio/{name}");
    core.blocking(move |host| Ok(drafts_of(host)?.remove_file(&name, &path, &version)?)).await?;
    Ok(Redirect::to(&goal))
}
