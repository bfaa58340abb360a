//! Page of the changes that a run made in its workspace.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use cliq_model::{Run, Scope};
use cliq_project::Project;
use cliq_review::{Comment, Event, Review, ReviewFilter, Reviews as _, Via, guidance, place_in};
use maud::{Markup, html};
use serde::Deserialize;

use crate::diff::{CommentForm, DiffQuery, Note, Viewer};
use crate::elements::empty;
use crate::page::{PageError, show};
use crate::review::comments::{event_of, review_form, said, takes_comments};
use crate::review::{decision, may_answer};
use crate::run::files::agent_phases;
use crate::run::head::{Tab, head};
use crate::visitor::Visitor;
use cliq_web::{
    ChangedFiles, Core, Form, Path, Problem, Query, RunCheckpoint, changed_file, changed_files,
    checkpoints_of, new_steering,
};

/// The most activations that can be chosen.
const LISTED: usize = 200;

/// Selection of changes.
#[derive(Debug, Deserialize)]
pub(super) struct ChangesQuery {
    /// Phase, item or activation; the whole run without it.
    of: Option<String>,
    /// Display of the changes.
    #[serde(flatten)]
    diff: DiffQuery,
}

/// Address of the page.
fn address(id: &str, of: Option<&str>) -> String {
    let of = of.map(|of| [("of", of)]);
    let query = serde_urlencoded::to_string(of.as_ref().map_or(&[][..], |of| of)).unwrap_or_default();
    if query.is_empty() { format!("/runs/{id}/changes") } else { format!("/runs/{id}/changes?{query}") }
}

/// The page.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(query): Query<ChangesQuery>,
) -> Result<Response, PageError> {
    let run = core.run(&id).await?;
    let of = query.of.clone();
    let review = review_of(&core, &visitor, &run).await?;
    let caller = &visitor.caller;
    let action = address(&id, query.of.as_deref());
    let own = Some((caller.actor(), action.as_str()));
    let notes = review.as_ref().map(|review| Note::of_review(review, &[], own)).unwrap_or_default();
    let form = form_of(&core, &visitor, &run, review.as_ref(), &action).await;
    let viewer = Viewer::new(action.clone(), &query.diff, &notes, form.as_ref());
    if query.diff.is_form_part() {
        return Ok(Html(viewer.form_alone().into_string()).into_response());
    }
    if let Some(path) = query.diff.file_part().map(str::to_owned) {
        let asked = path.clone();
        let read = move |run: &Run, project: &Project| changed_file(project, &run.id, of.as_deref(), &asked);
        let file = core.in_project(&run, read).await?;
        return Ok(Html(viewer.lines(&path, &file).into_string()).into_response());
    }
    let chosen = query.diff.file.clone();
    let read = core.in_project(&run, move |run, project| {
        let checkpoints = checkpoints_of(project, &run.id)?;
        let mut changes = changed_files(project, &run.id, of.as_deref())?;
        if let Some(path) = chosen {
            fill_in_chosen(project, run, of.as_deref(), &path, &mut changes);
        }
        Ok((changes, activations(&checkpoints)))
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
        div #changes {
            @for (nth, activation) in changes.iter().enumerate() {
                // Of several activations each has a page of its own for comments.
                @let own = Viewer { address: address(&id, Some(&address_of(&activation.phase, activation.activation))), ..viewer.clone() };
                (section(if changes.len() > 1 { &own } else { &viewer }, activation, nth))
            }
        }
        @if let Some(review) = &review { (decision(&core, &visitor, review)) }
    };
    Ok(show(&visitor, &title, "", &content)?.into_response())
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

/// Name of an activation in addresses. An item works under its own name: PHASE.INDEX.
fn address_of(phase: &str, activation: Option<u32>) -> String {
    match activation {
        Some(number) if !phase.contains('.') => format!("{phase}.{number}"),
        _ => phase.to_owned(),
    }
}

/// Links to the changes of the whole run and of each activation.
fn choice(id: &str, activations: &[(String, u32)], of: Option<&str>) -> Markup {
    let base = format!("/runs/{id}/changes");
    html! {
        nav.filters aria-label="Changes of" {
            a href=(base) aria-current=[of.is_none().then_some("true")] { "whole run" }
            @for (phase, number) in activations {
                @let address = address_of(phase, Some(*number));
                @let is_current = of.is_some_and(|of| of == address || of == phase);
                a href=(format!("{base}?of={address}")) aria-current=[is_current.then_some("true")] {
                    (phase) @if *number > 1 { ", activation " (number) }
                }
            }
        }
    }
}

fn section(viewer: &Viewer<'_>, activation: &ChangedFiles, nth: usize) -> Markup {
    html! {
        @if let Some(number) = activation.activation {
            h2 { (activation.phase) ", activation " (number) }
        }
        @if activation.diffs.is_empty() { p.quiet { "No file changed." } } @else { (viewer.render(&activation.diffs, nth)) }
    }
}

/// Adds the lines of the file that was chosen, if the changes came without lines.
fn fill_in_chosen(project: &Project, run: &Run, of: Option<&str>, path: &str, changes: &mut [ChangedFiles]) {
    for diff in changes.iter_mut().flat_map(|activation| &mut activation.diffs) {
        let found = diff.files.iter().position(|file| diff.path_of(file) == path && file.hunks.is_empty());
        let Some(file) = found.and_then(|n| diff.files.get_mut(n)) else { continue };
        // A file that cannot be read is shown without lines.
        if let Ok(read) = changed_file(project, &run.id, of, path) {
            *file = read;
        }
    }
}

/// Returns the review that a run waits for and that takes comments, if this person may answer it.
async fn review_of(core: &Core, visitor: &Visitor, run: &Run) -> Result<Option<Review>, Problem> {
    if run.life.state.is_final() {
        return Ok(None);
    }
    let filter = ReviewFilter { run_id: Some(run.id.clone()), pending: true, ..ReviewFilter::default() };
    let waiting = core.reviews.list(&filter).await?;
    Ok(waiting.into_iter().find(|review| takes_comments(review) && may_answer(core, visitor, review)))
}

/// Returns the form for comments: to the review that the run waits for, else to the agents at work. `None` if they lead nowhere.
async fn form_of(
    core: &Core,
    visitor: &Visitor,
    run: &Run,
    review: Option<&Review>,
    action: &str,
) -> Option<CommentForm> {
    if review.is_some() {
        return Some(review_form(action.to_owned()));
    }
    if run.life.state.is_final() || !visitor.may_run() {
        return None;
    }
    let phases =
        core.in_project(run, |_, project| Ok(agent_phases(project))).await.ok().flatten().unwrap_or_default();
    Some(CommentForm {
        action: action.to_owned(),
        button: "Send to the agents",
        about:
            "They get path, line and your words as guidance: while they work if they can, or when they start."
                .to_owned(),
        phases,
    })
}

/// Makes a comment on a line: on the review that the run waits for, else a steering message.
pub(super) async fn comment(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(query): Query<ChangesQuery>,
    form: Form,
) -> Result<Redirect, PageError> {
    let run = core.run(&id).await?;
    let of = query.of.clone();
    let address = address(&id, query.of.as_deref());
    let review = review_of(&core, &visitor, &run).await?;
    let caller = match &review {
        Some(_) => visitor.demand_reviewer()?.clone(),
        None => visitor.demand(Scope::Run)?.clone(),
    };
    let path = form.get("path").unwrap_or_default().to_owned();
    let hunks = if form.get("withdraw").is_some() {
        String::new()
    } else {
        let read = move |run: &Run, project: &Project| changed_file(project, &run.id, of.as_deref(), &path);
        core.in_project(&run, read).await?.hunks
    };
    let event = event_of(&form, caller.actor(), Via::Dashboard, |path, side, line| {
        let place = place_in(path, &hunks, side, line);
        place.map_err(|error| Problem::unprocessable(error.to_string(), Vec::new()))
    })?;
    match (review, event) {
        (Some(review), event) => {
            core.reviews.apply(&review.id, event).await.map_err(Problem::from)?;
        }
        (None, Event::Comment(Comment { id, text, place: Some(place), .. })) => {
            let text = guidance(&place, &text);
            let new = new_steering(&caller, Some(&id), &text, form.get("phase"))?;
            core.supervisor.steer(&run.id, new).await.map_err(Problem::of_steering)?;
            return Ok(Redirect::to(&format!("/runs/{id}#steering-title", id = run.id)));
        }
        (None, _) => return Err(Problem::conflict("the run waits for no review").into()),
    }
    Ok(Redirect::to(&said(&form, address)))
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
