//! A review: what is shown to a reviewer, and the decision. The same page for a reviewer with a link and for a person who is signed in; it
//! works without script.

pub(crate) mod comments;
mod content;
mod decision;

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Redirect, Response};
use cliq_protocol::ReviewSubject;
use cliq_review::{Content, LinkToken, Review, ReviewFilter, ReviewId, ReviewState, Reviews, Via};
use maud::{Markup, html};

use crate::assets;
use crate::diff::{self, DiffQuery};
use crate::elements::{ago, badge, empty, folded, moment};
use crate::layout;
use crate::page::{Page, PageError, show};
use crate::text::shown as harmless;
use crate::visitor::Visitor;
use cliq_web::{Core, Form, Path, Problem, Query, find_review, get, post};
use decision::{Answering, answer_of};

/// Serves the pages of reviews to people with a link. Needs no token: the link is the right.
#[derive(Debug, Clone)]
pub struct ReviewSite {
    /// Reviews.
    pub reviews: Arc<dyn Reviews>,
    /// The only review that is served; `None` for all.
    pub only: Option<ReviewId>,
}

/// The pages for people with a link.
pub fn link_router<S: Clone + Send + Sync + 'static>(site: ReviewSite) -> Router<S> {
    Router::new()
        .route("/review/{id}/{token}", get(link_page).merge(post(link_answer)))
        .route("/review/{id}/{token}/comments", post(comments::of_link))
        .with_state(Arc::new(site))
}

/// The files that these pages need, where no server has them.
pub fn assets_router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{name}", get(assets::asset))
}

/// Whether the state alone is asked for, for an open page.
fn is_state_only(query: &DiffQuery) -> bool {
    query.view.as_deref() == Some("state")
}

/// The review of a link, and whose link it is. A wrong link and one of no review look the same.
async fn by_link(site: &ReviewSite, id: &str, token: &str) -> Result<(Review, String), Problem> {
    let wrong = || Problem::not_found("this link leads to no review: it is wrong, or the review was removed");
    let token = LinkToken::parse(token).ok_or_else(wrong)?;
    if site.only.as_ref().is_some_and(|only| only.as_str() != id) {
        return Err(wrong());
    }
    let review = find_review(site.reviews.as_ref(), id)
        .await
        .map_err(|problem| if problem.status == 404 { wrong() } else { problem })?;
    let reviewer = review.reviewer_of(&token).ok_or_else(wrong)?.to_owned();
    Ok((review, reviewer))
}

async fn link_page(
    State(site): State<Arc<ReviewSite>>,
    Path((id, token)): Path<(String, String)>,
    Query(query): Query<DiffQuery>,
) -> Result<Response, PageError> {
    let (review, reviewer) = by_link(&site, &id, &token).await?;
    let content = content_of(site.reviews.as_ref(), &review).await?;
    let path = format!("/review/{id}/{token}");
    let parts = Parts { review: &review, content: &content, path: &path, query: &query, actor: None };
    let answering = Answering::As(&reviewer);
    if let Some(part) = parts.part(&answering) {
        return Ok(Html(part.into_string()).into_response());
    }
    let page = parts.page(&answering, None, &BTreeMap::new());
    Ok(link_document(&review, &page).into_response())
}

async fn link_answer(
    State(site): State<Arc<ReviewSite>>,
    Path((id, token)): Path<(String, String)>,
    form: Form,
) -> Result<Response, PageError> {
    let (review, reviewer) = by_link(&site, &id, &token).await?;
    let path = format!("/review/{id}/{token}");
    let answer = answer_of(&form, reviewer.clone(), reviewer.clone(), Via::Link);
    let problem = match apply(site.reviews.as_ref(), &review, answer).await {
        Ok(()) => return Ok(Redirect::to(&path).into_response()),
        Err(problem) => problem,
    };
    let review = find_review(site.reviews.as_ref(), &id).await?;
    let content = content_of(site.reviews.as_ref(), &review).await?;
    let query = DiffQuery::default();
    let parts = Parts { review: &review, content: &content, path: &path, query: &query, actor: None };
    let page = parts.page(&Answering::As(&reviewer), Some(&problem), &form.0.into_iter().collect());
    Ok((problem.status(), link_document(&review, &page)).into_response())
}

async fn apply(
    reviews: &dyn Reviews,
    review: &Review,
    answer: Result<cliq_review::Answer, Problem>,
) -> Result<(), Problem> {
    reviews.apply(&review.id, cliq_review::Event::Answer(answer?)).await?;
    Ok(())
}

async fn content_of(reviews: &dyn Reviews, review: &Review) -> Result<Content, Problem> {
    Ok(reviews.content(&review.id).await?.unwrap_or_default())
}

fn link_document(review: &Review, page: &Markup) -> Html<String> {
    layout::plain(&heading(review), page)
}

/// Lists reviews: those that wait, and those that are over.
pub(super) async fn list(visitor: Visitor, State(core): State<Arc<Core>>) -> Page {
    let live = crate::live::address(&core);
    let reviews = core
        .reviews
        .list(&ReviewFilter { limit: 200, ..ReviewFilter::default() })
        .await
        .map_err(Problem::from)?;
    let (waiting, over): (Vec<&Review>, Vec<&Review>) =
        reviews.iter().partition(|review| review.is_pending());
    let content = html! {
        h1 { "Reviews" }
        div #reviews data-live {
            h2 { "Waiting" }
            @if waiting.is_empty() { (empty("No run waits for a person.")) } @else { (table(&waiting)) }
            @if !over.is_empty() { h2 { "Over" } (table(&over)) }
        }
    };
    show(&visitor, "Reviews", "/reviews", &html! { div data-changes=(live) { (content) } })
}

fn table(reviews: &[&Review]) -> Markup {
    html! {
        table {
            thead { tr { th { "Review" } th { "State" } th { "Reviewers" } th { "Asked" } th { "Until" } } }
            tbody {
                @for review in reviews {
                    tr {
                        td {
                            a href=(format!("/reviews/{}", review.id)) { (review.phase) " of " (review.team) }
                            @if let Some(subject) = &review.subject { div.quiet { (harmless(subject.sentence().as_bytes())) } }
                        }
                        td { (state(review)) }
                        td.why {
                            @if review.is_pending() { "waits for " (review.waits_for().join(", ")) } @else { (review.ending().unwrap_or_default()) }
                        }
                        td data-label="asked" { (ago(review.created)) }
                        td data-label="until" { (moment(&review.deadline.to_string(), None)) }
                    }
                }
            }
        }
    }
}

fn state(review: &Review) -> Markup {
    use cliq_review::Outcome;
    match &review.state {
        ReviewState::Pending => badge("waiting"),
        ReviewState::Decided { outcome: Outcome::Approved, .. } => {
            html! { span.badge.completed { "✓ approved" } }
        }
        ReviewState::Decided { outcome: Outcome::ChangesRequested { .. }, .. } => {
            html! { span.badge.waiting { "↺ changes requested" } }
        }
        ReviewState::Decided { outcome: Outcome::Rejected, .. } => {
            html! { span.badge.failed { "✗ rejected" } }
        }
        ReviewState::Expired { .. } => html! { span.badge.failed { "✗ expired" } },
        ReviewState::Cancelled { .. } => html! { span.badge { "■ cancelled" } },
    }
}

/// The page of a review for a person who is signed in.
pub(super) async fn page(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    Query(query): Query<DiffQuery>,
) -> Result<Response, PageError> {
    let review = find_review(core.reviews.as_ref(), &id).await?;
    let content = content_of(core.reviews.as_ref(), &review).await?;
    let path = format!("/reviews/{}", review.id);
    let actor = Some(visitor.caller.actor());
    let parts = Parts { review: &review, content: &content, path: &path, query: &query, actor };
    let answering = answering(&core, &visitor, &review);
    if let Some(part) = parts.part(&answering) {
        return Ok(Html(part.into_string()).into_response());
    }
    let page = parts.page(&answering, None, &BTreeMap::new());
    Ok(show(&visitor, &heading(&review), "", &page)?.into_response())
}

/// The form of a review for the page of its run; `None` if it is over.
pub(super) async fn form_in_place(core: &Core, visitor: &Visitor, id: &str) -> Option<Markup> {
    let review = find_review(core.reviews.as_ref(), id).await.ok()?;
    let answering = answering(core, visitor, &review);
    let path = format!("/reviews/{}", review.id);
    review.is_pending().then(|| {
        html! {
            (standing(&review))
            (request(&review))
            p { a href=(path) { "The whole review: differences, checks, artifacts" } }
            (decision::form(&review, &path, &answering, &BTreeMap::new()))
        }
    })
}

/// The form of a review as a part of another page, to which it leads back.
pub(super) async fn short_form(core: &Core, visitor: &Visitor, id: &str) -> Result<Markup, Problem> {
    let review = find_review(core.reviews.as_ref(), id).await?;
    if !review.is_pending() {
        return Ok(html! { p { "The review is over." } });
    }
    let answering = answering(core, visitor, &review);
    let path = format!("/reviews/{}", review.id);
    Ok(html! {
        (request(&review))
        (decision::form(&review, &path, &answering, &BTreeMap::from([(decision::BACK.to_owned(), "/".to_owned())])))
    })
}

/// Returns the role of a person who is signed in.
fn answering<'a>(core: &Core, visitor: &'a Visitor, review: &Review) -> Answering<'a> {
    if visitor.caller.person.is_some() {
        // The name is that of the mail address. A person who may not answer may look.
        return match core.people.reviewer_for(review, &visitor.caller, None) {
            Ok(name) => Answering::Own(name),
            Err(problem) if problem.status().as_u16() == 403 => Answering::ReadOnly,
            Err(_) => Answering::For(&visitor.caller.label),
        };
    }
    if visitor.may_run() { Answering::For(&visitor.caller.label) } else { Answering::ReadOnly }
}

/// Whether a person who is signed in may answer a review.
pub(crate) fn may_answer(core: &Core, visitor: &Visitor, review: &Review) -> bool {
    !matches!(answering(core, visitor, review), Answering::ReadOnly)
}

/// The decision on a review, for the page of the changes of its run.
pub(crate) fn decision(core: &Core, visitor: &Visitor, review: &Review) -> Markup {
    let path = format!("/reviews/{}", review.id);
    let back = BTreeMap::from([(decision::BACK.to_owned(), format!("/runs/{}", review.run_id))]);
    html! {
        h2 { "Review of " (review.phase) }
        p { a href=(path) { "The whole review: checks, files, earlier verdicts" } }
        (decision::form(review, &path, &answering(core, visitor, review), &back))
    }
}

/// Decides in a reviewer's name.
pub(super) async fn answer(
    visitor: Visitor,
    State(core): State<Arc<Core>>,
    Path(id): Path<String>,
    form: Form,
) -> Result<Response, PageError> {
    let caller = visitor.demand_reviewer()?.clone();
    let review = find_review(core.reviews.as_ref(), &id).await?;
    let reviewer = core.people.reviewer_for(&review, &caller, form.get("reviewer"));
    let answer =
        reviewer.and_then(|reviewer| answer_of(&form, reviewer, caller.actor().to_owned(), Via::Dashboard));
    let problem = match apply(core.reviews.as_ref(), &review, answer).await {
        Ok(()) => {
            let back = form.get(decision::BACK).filter(|path| crate::mission::is_way_back(path));
            let there = back.map_or_else(|| format!("/reviews/{id}"), str::to_owned);
            return Ok(Redirect::to(&there).into_response());
        }
        Err(problem) => problem,
    };
    let review = find_review(core.reviews.as_ref(), &id).await?;
    let content = content_of(core.reviews.as_ref(), &review).await?;
    let given = form.0.into_iter().collect();
    let (path, query) = (format!("/reviews/{}", review.id), DiffQuery::default());
    let actor = Some(visitor.caller.actor());
    let parts = Parts { review: &review, content: &content, path: &path, query: &query, actor };
    let page = parts.page(&answering(&core, &visitor, &review), Some(&problem), &given);
    let page = layout::page(&visitor, &heading(&review), None, &page);
    Ok((problem.status(), page).into_response())
}

/// Inputs of a review page.
struct Parts<'a> {
    review: &'a Review,
    content: &'a Content,
    /// The address of the page.
    path: &'a str,
    /// Query of the page.
    query: &'a DiffQuery,
    /// Author of comments of a person who is signed in.
    actor: Option<&'a str>,
}

impl Parts<'_> {
    fn page(
        &self,
        answering: &Answering<'_>,
        problem: Option<&Problem>,
        given: &BTreeMap<String, String>,
    ) -> Markup {
        let (review, content) = (self.review, self.content);
        html! {
            div data-review=[review.is_pending().then(|| format!("{}?view=state", self.path))] {}
            h1 { (heading(review)) }
            @if let Some(problem) = problem {
                div.warning role="alert" {
                    p { (problem.detail) }
                    @if !problem.errors.is_empty() { ul { @for error in &problem.errors { li { (error) } } } }
                }
            }
            div #state data-live role="status" { (standing(review)) }
            (request(review))
            @if !is_state_only(self.query) {
                nav.actions aria-label="On this page" {
                    a.button.primary href="#decision" { "Decide" }
                    @for (anchor, name, there) in [
                        ("checks", "Checks", !content.checks.is_empty()),
                        ("files", "Files", !content.artifacts.is_empty()),
                        ("earlier", "Comments before", !content.earlier_comments.is_empty()),
                        ("changes", "Changes", !content.diffs.is_empty()),
                        ("timeline", "Timeline", !content.timeline.is_empty()),
                    ] {
                        @if there { a.button href=(format!("#{anchor}")) { (name) } }
                    }
                }
                (content::before_changes(content))
                (diff::earlier(&content.earlier_comments))
                (self.changes(answering))
                (content::after_changes(content))
            }
            (decision::form(review, self.path, answering, given))
        }
    }
}

/// Returns the heading of the page of a review.
fn heading(review: &Review) -> String {
    match &review.subject {
        None => format!("Review of {}", review.phase),
        Some(ReviewSubject::Permission { .. }) => format!("Permission for {}", review.phase),
        Some(ReviewSubject::Question { .. }) => format!("Question of {}", review.phase),
    }
}

/// Renders the request of an agent at work.
fn request(review: &Review) -> Markup {
    let text = |text: &str| harmless(text.as_bytes());
    html! {
        @match &review.subject {
            None => {}
            Some(ReviewSubject::Permission { agent, title, tool, paths, details }) => {
                section.card aria-labelledby="request-title" {
                    h2 #request-title { (text(title)) }
                    p { strong { (text(agent)) } " asks for permission: " (text(tool)) }
                    @if !paths.is_empty() { ul { @for path in paths { li { code { (text(path)) } } } } }
                    @if let Some(details) = details {
                        pre tabindex="0" role="region" aria-label="Details" { (text(details)) }
                    }
                }
            }
            Some(ReviewSubject::Question { agent, text: question }) => {
                section.card aria-labelledby="request-title" {
                    h2 #request-title { (text(agent)) " asks" }
                    pre tabindex="0" role="region" aria-label="Question" { (text(question)) }
                }
            }
        }
    }
}

/// Renders the state of a review.
fn standing(review: &Review) -> Markup {
    html! {
        p.facts {
            (state(review))
            @if let Some(title) = &review.title { span { (harmless(title.as_bytes())) } }
            span { (review.team) }
            @if review.subject.is_none() { span { "evaluation " (review.iteration) " of " (review.max_iterations) } }
            span { "asked " (ago(review.created)) }
            @if review.is_pending() {
                span { "waits for " (review.waits_for().join(", ")) }
                span { "until " (moment(&review.deadline.to_string(), None)) }
            }
        }
        @if let Some(ending) = ending(review) { p.warning { strong { (ending) } } }
        (said(review))
        (answers(review))
    }
}

/// Returns the end of a review for people.
fn ending(review: &Review) -> Option<String> {
    Some(match &review.state {
        ReviewState::Pending => return None,
        ReviewState::Expired { .. } => "This review has expired".to_owned(),
        _ => format!("This review is over: {}", review.ending().unwrap_or_default()),
    })
}

fn said(review: &Review) -> Markup {
    let (on_lines, on_all): (Vec<_>, Vec<_>) =
        review.comments.iter().partition(|said| said.comment.place.is_some());
    html! {
        @if !review.comments.is_empty() {
            section.card aria-labelledby="comments-title" {
                h2 #comments-title { "Comments" }
                @for (n, said) in on_all.iter().enumerate() {
                    p {
                        strong { (said.comment.actor) } " " (ago(said.at))
                        span.quiet { " (" (said.comment.via.as_str()) ")" }
                    }
                    pre tabindex="0" role="region" aria-label=(format!("Comment {}", n + 1)) { (harmless(said.comment.text.as_bytes())) }
                }
                // Their words stand at their lines.
                @if !on_lines.is_empty() {
                    ul.plain {
                        @for said in on_lines {
                            li {
                                @if let Some(place) = &said.comment.place { code { (harmless(place.to_string().as_bytes())) } ": " }
                                (folded(&said.comment.text))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn answers(review: &Review) -> Markup {
    html! {
        @if !review.answers.is_empty() {
            section.card aria-labelledby="answers-title" {
                h2 #answers-title { "Answers" }
                @for accepted in &review.answers {
                    p {
                        strong { (accepted.by()) } " " (accepted.answer.choice.done()) " " (ago(accepted.at))
                        span.quiet { " (" (accepted.answer.via.as_str()) ")" }
                    }
                    @if let Some(words) = &accepted.answer.reason { pre tabindex="0" role="region" aria-label="Words" { (harmless(words.as_bytes())) } }
                    @if !accepted.answer.inputs.is_empty() {
                        dl.inputs {
                            @for (name, value) in &accepted.answer.inputs {
                                dt { (name) }
                                dd { (harmless(value.as_str().map_or_else(|| value.to_string(), str::to_owned).as_bytes())) }
                            }
                        }
                    }
                }
            }
        }
    }
}
