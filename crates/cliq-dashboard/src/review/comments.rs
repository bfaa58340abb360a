//! Comments on the lines of a review's changes.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Redirect;
use cliq_review::{Comment, Content, Event, Place, Review, ReviewId, Reviews, Via};
use maud::{Markup, html};

use super::decision::Answering;
use super::{Parts, ReviewSite, answering, by_link, content_of};
use crate::diff::{CommentForm, DiffQuery, Note, Viewer, line_of};
use crate::page::PageError;
use crate::visitor::Visitor;
use cliq_web::{Core, Form, Path, Problem, find_review};

/// Name of the field with the page to which a comment leads back.
const VIEW: &str = "view";

impl Parts<'_> {
    /// Renders the changes with the comments on their lines.
    pub(super) fn changes(&self, answering: &Answering<'_>) -> Markup {
        html! {
            @if !self.content.diffs.is_empty() {
                section #changes aria-labelledby="changes-title" {
                    h2 #changes-title { "Changes" }
                    (self.with_viewer(answering, |viewer| viewer.render(&self.content.diffs, 0)))
                }
            }
        }
    }

    /// Returns the part of the page that was asked for alone: the lines of a file, or the form for a comment.
    pub(super) fn part(&self, answering: &Answering<'_>) -> Option<Markup> {
        if self.query.is_form_part() {
            return Some(self.with_viewer(answering, |viewer| html! { (viewer.form_alone()) }));
        }
        let path = self.query.file_part()?;
        let mut files =
            self.content.diffs.iter().flat_map(|diff| diff.files.iter().map(move |file| (diff, file)));
        let (_, file) = files.find(|(diff, file)| diff.path_of(file) == path)?;
        Some(self.with_viewer(answering, |viewer| viewer.lines(path, file)))
    }

    fn with_viewer(
        &self,
        answering: &Answering<'_>,
        render: impl for<'v> Fn(&Viewer<'v>) -> Markup,
    ) -> Markup {
        let action = format!("{}/comments", self.path);
        let actor = match answering {
            Answering::As(name) => Some((*name).to_owned()),
            Answering::Own(_) | Answering::For(_) => self.actor.map(str::to_owned),
            Answering::ReadOnly => None,
        };
        let own = actor.as_deref().map(|actor| (actor, action.as_str()));
        let notes = Note::of_review(self.review, &self.content.earlier_comments, own);
        let form = (own.is_some() && takes_comments(self.review)).then(|| review_form(action.clone()));
        render(&Viewer::new(self.path.to_owned(), self.query, &notes, form.as_ref()))
    }
}

/// Whether comments on lines can lead to anything: the review waits, and a phase can be asked for changes.
pub(crate) fn takes_comments(review: &Review) -> bool {
    review.is_pending() && review.subject.is_none() && !review.route_targets.is_empty()
}

/// The form for comments of a review.
pub(crate) fn review_form(action: String) -> CommentForm {
    CommentForm {
        action,
        button: "Comment",
        about: "The phase gets it with your request for changes. It decides nothing by itself.".to_owned(),
        phases: Vec::new(),
    }
}

/// Reads the event of a form: a comment on a line, or the withdrawal of one. `place` finds the line.
pub(crate) fn event_of(
    form: &Form,
    actor: &str,
    via: Via,
    place: impl FnOnce(&str, cliq_review::Side, u64) -> Result<Place, Problem>,
) -> Result<Event, Problem> {
    let actor = actor.to_owned();
    if let Some(id) = form.get("withdraw") {
        return Ok(Event::WithdrawComment { id: id.to_owned(), actor });
    }
    let wrong = || Problem::unprocessable("the form names no line of the changes", Vec::new());
    let (side, line) = form.get("at").and_then(line_of).ok_or_else(wrong)?;
    let place = place(form.get("path").ok_or_else(wrong)?, side, line)?;
    // Browsers send line breaks as two characters.
    let text = form.get("text").unwrap_or_default().replace("\r\n", "\n");
    let id = form.get("id").map_or_else(|| uuid::Uuid::now_v7().to_string(), str::to_owned);
    Ok(Event::Comment(Comment { id, actor, via, text, place: Some(place) }))
}

/// Address that shows the comment of a form.
pub(crate) fn said(form: &Form, address: String) -> String {
    let view = form.get(VIEW).map(str::to_owned);
    let query = DiffQuery { view, ..DiffQuery::default() };
    let viewer = Viewer::new(address, &query, &[], None);
    match (form.get("path"), form.get("at")) {
        (Some(path), Some(at)) => viewer.said_address(path, at),
        _ => format!("{}#changes", viewer.address),
    }
}

async fn apply(
    reviews: &dyn Reviews,
    id: &ReviewId,
    content: &Content,
    form: &Form,
    actor: &str,
    via: Via,
) -> Result<(), Problem> {
    let event = event_of(form, actor, via, |path, side, line| {
        let place = content.place(path, side, line);
        place.map_err(|error| Problem::unprocessable(error.to_string(), Vec::new()))
    })?;
    reviews.apply(id, event).await?;
    Ok(())
}

/// Comments by a person with a link.
pub(super) async fn of_link(
    State(site): State<Arc<ReviewSite>>,
    Path((id, token)): Path<(String, String)>,
    form: Form,
) -> Result<Redirect, PageError> {
    let (review, reviewer) = by_link(&site, &id, &token).await?;
    let content = content_of(site.reviews.as_ref(), &review).await?;
    apply(site.reviews.as_ref(), &review.id, &content, &form, &reviewer, Via::Link).await?;
    Ok(Redirect::to(&said(&form, format!("/review/{id}/{token}"))))
}

/// Comments by a person who is signed in.
pub(crate) async fn of_visitor(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Redirect, PageError> {
    let caller = visitor.demand_reviewer()?.clone();
    let review = find_review(core.reviews.as_ref(), &id).await?;
    if matches!(answering(&core, &visitor, &review), Answering::ReadOnly) {
        return Err(Problem::forbidden("only reviewers comment on the changes of a review").into());
    }
    let content = content_of(core.reviews.as_ref(), &review).await?;
    apply(core.reviews.as_ref(), &review.id, &content, &form, caller.actor(), Via::Dashboard).await?;
    Ok(Redirect::to(&said(&form, format!("/reviews/{id}"))))
}
