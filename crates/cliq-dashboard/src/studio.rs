//! Studio: drafts of teams in the browser (docs/studio.md). All of it works without script; `studio.js` makes an editor of the text field.

pub(crate) mod change;
pub(crate) mod editor;
pub(crate) mod install;
pub(crate) mod trial;

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use cliq_model::Scope;
use cliq_project::{DraftName, DraftSummary};
use cliq_web::{Core, Form, Path, Problem, TeamSummary, draft_name, drafts_of, list_teams};
use maud::{Markup, html};

use crate::elements::{badge, empty};
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::visitor::Visitor;

/// A text of a form as it was written, with the line breaks of files.
fn text_of(form: &Form, name: &str) -> Option<String> {
    let found = form.0.iter().find(|(key, _)| key == name);
    // Browsers send line breaks as two characters.
    found.map(|(_, text)| text.replace("\r\n", "\n"))
}

/// A problem above a form.
fn warning(problem: Option<&Problem>) -> Markup {
    html! {
        @if let Some(problem) = problem {
            div.warning role="alert" {
                p { (problem.detail) }
                @if !problem.errors.is_empty() { ul { @for error in &problem.errors { li { (error) } } } }
            }
        }
    }
}

/// Links between the pages of a draft.
fn tabs(draft: &DraftName, current: &str, may_edit: bool) -> Markup {
    let pages =
        [("", "Files"), ("/try", "Try it"), ("/change", "Change by a model"), ("/install", "Install")];
    html! {
        nav.tabs aria-label="Draft" {
            @for (path, name) in pages.iter().filter(|(path, _)| path.is_empty() || may_edit) {
                a href=(format!("/studio/{draft}{path}")) aria-current=[(*path == current).then_some("page")] { (name) }
            }
        }
    }
}

/// All drafts, and the forms that make new ones.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let content = list_content(&visitor, &core, None, &Form(Vec::new())).await?;
    show(&visitor, "Studio", "/studio", &content)
}

async fn list_content(
    visitor: &Visitor,
    core: &Core,
    wrong: Option<&Problem>,
    given: &Form,
) -> Result<Markup, Problem> {
    let (drafts, teams) = core.blocking(|host| Ok((drafts_of(host)?.list()?, list_teams(host)?))).await?;
    Ok(html! {
        h1 { "Studio" }
        p { "Teams that are being written. A draft runs nowhere until it is installed." }
        (warning(wrong))
        (cards(&drafts))
        @if visitor.may_edit() {
            div.columns {
                section aria-labelledby="new" { h2 #new { "New draft" } (new_form(&teams, given)) }
                section aria-labelledby="describe" { h2 #describe { "Describe a team" } (generate_form(given)) }
            }
        } @else {
            p.hint { "To write teams you need the scope `edit`." }
        }
    })
}

fn cards(drafts: &[DraftSummary]) -> Markup {
    html! {
        @if drafts.is_empty() { (empty("No drafts yet.")) }
        div.teams {
            @for draft in drafts {
                div.card {
                    h2 { a href=(format!("/studio/{}", draft.name)) { (draft.name) } }
                    @match &draft.team {
                        Some(team) => p { code { (team) } },
                        None => p { (badge("error")) " team.yml has errors" },
                    }
                    @if let Some(description) = &draft.description { p { (description) } }
                    p.quiet { (draft.files) @if draft.files == 1 { " file" } @else { " files" } }
                }
            }
        }
    }
}

fn new_form(teams: &[TeamSummary], given: &Form) -> Markup {
    html! {
        form.stack method="post" action="/studio" {
            label for="name" { "Name of the draft" }
            input #name name="name" required maxlength="64" pattern=r"[a-z][a-z0-9\-]*" autocomplete="off" aria-describedby="name-rule" value=(given.get("name").unwrap_or_default());
            p.hint #name-rule { "Lower-case letters, digits and `-`." }
            label for="team" { "Begin with" }
            select #team name="team" {
                option value="" { "A developer and a gate" }
                @for team in teams.iter().filter(|team| team.valid) { option value=(team.name) selected[given.get("team") == Some(&team.name)] { "A copy of " (team.name) } }
            }
            button.primary type="submit" { "Create" }
        }
    }
}

fn generate_form(given: &Form) -> Markup {
    html! {
        form.stack method="post" action="/studio/generate" data-slow="The model is writing the team" {
            label for="intent" { "Work of the team" }
            textarea #intent name="intent" rows="5" required placeholder="Write the weekly report from our tickets, and check that it has a summary" { (text_of(given, "intent").unwrap_or_default()) }
            p.hint { "A model writes it as a draft (settings " code { "builder.*" } " of the server). It takes a minute or so." }
            button type="submit" { "Write a draft" }
        }
    }
}

/// Creates a draft and opens it.
pub(super) async fn create(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let (name, team) = (form.get("name").unwrap_or_default().to_owned(), form.get("team").map(str::to_owned));
    let created = core.blocking(move |host| {
        let name =
            DraftName::parse(&name).map_err(|error| Problem::unprocessable(error.to_string(), Vec::new()))?;
        match team {
            Some(team) => drafts_of(host)?.create_from_team(&name, &team)?,
            None => drafts_of(host)?.create(&name)?,
        }
        Ok(name)
    });
    opened(&visitor, &core, created.await, &form).await
}

/// Has a model make a draft and opens it.
pub(super) async fn generate(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    form: Form,
) -> Result<Response, PageError> {
    visitor.demand(Scope::Edit)?;
    let Some(intent) = text_of(&form, "intent").filter(|text| !text.trim().is_empty()) else {
        return Err(Problem::unprocessable("say what the team is to do", Vec::new()).into());
    };
    let made = Box::pin(cliq_web::generate(core.host(), intent, None)).await;
    opened(&visitor, &core, made, &form).await
}

async fn opened(
    visitor: &Visitor,
    core: &Core,
    made: Result<DraftName, Problem>,
    given: &Form,
) -> Result<Response, PageError> {
    match made {
        Ok(name) => Ok(Redirect::to(&format!("/studio/{name}")).into_response()),
        Err(problem) => {
            let content = list_content(visitor, core, Some(&problem), given).await?;
            Ok((problem.status(), layout::page(visitor, "Studio", Some("/studio"), &content)).into_response())
        }
    }
}

/// Removes a draft.
pub(super) async fn remove(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(draft): Path<String>,
) -> Result<Redirect, PageError> {
    visitor.demand(Scope::Edit)?;
    let name = draft_name(&draft)?;
    core.blocking(move |host| Ok(drafts_of(host)?.remove(&name)?)).await?;
    Ok(Redirect::to("/studio"))
}
