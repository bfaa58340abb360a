//! Reviews: what waits for a person, what it is about, the decision; and how a run on another machine keeps its reviews here.

use std::sync::Arc;

use axum::extract::State;
use cliq_protocol::{Object, PhaseName, RunId};
use cliq_review::{Answer, Choice, Content, Event, Review, ReviewFilter, Reviews, Via};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::{IntoParams, ToSchema};

use super::errors::{Changing, Reading};
use crate::app::App;
use cliq_web::Problem;
use cliq_web::find_review;
use cliq_web::{Json, LargeJson, Path, Query};
use cliq_web::{Reader, Reviewer, Runner};

/// Filter for reviews.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReviewQuery {
    /// Only those that wait.
    #[serde(default)]
    pending: bool,
    /// Only those of this workspace.
    project: Option<String>,
    /// Only those of this run.
    run_id: Option<String>,
    /// At most so many, 200 where nothing is said.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Reviews.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReviewList {
    /// Reviews (`docs/reviews.md`), newest first.
    #[schema(value_type = Vec<Object>)]
    reviews: Vec<Value>,
}

/// Verdict of a reviewer.
#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum VerdictWord {
    /// The run goes on.
    Approve,
    /// A phase works again.
    RequestChanges,
    /// The run ends.
    Reject,
}

/// A decision.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Decision {
    /// Verdict.
    verdict: VerdictWord,
    /// For a request for changes: the phase that makes them. May be left out where there is only one.
    to: Option<String>,
    /// The words. A request for changes needs some.
    reason: Option<String>,
    /// Values of the form by field.
    #[serde(default)]
    #[schema(value_type = Object)]
    inputs: Object,
    /// In whose name. May be left out where that is clear.
    reviewer: Option<String>,
}

/// A review, and what its reviewers are shown.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewReviewBody {
    /// The review, as the `hug` agent makes it.
    #[schema(value_type = super::review_schemas::ReviewInput)]
    review: Value,
    /// Content for the reviewers.
    #[serde(default)]
    #[schema(value_type = Object)]
    content: Value,
}

/// A review as callers see it: without what is stored of its links.
pub(crate) fn document(review: &Review) -> Value {
    let mut value = json!(review);
    if let Value::Object(map) = &mut value {
        map.remove("links");
        map.insert("waits_for".to_owned(), json!(review.waits_for()));
        map.insert("ending".to_owned(), json!(review.ending()));
    }
    value
}

/// Lists reviews.
#[utoipa::path(get, path = "/api/v1/reviews", operation_id = "list_reviews", tag = "reviews", params(ReviewQuery),
    responses((status = 200, body = ReviewList), Reading))]
pub(crate) async fn list(
    _: Reader,
    State(app): State<Arc<App>>,
    Query(query): Query<ReviewQuery>,
) -> Result<axum::Json<ReviewList>, Problem> {
    let limit = query.limit.unwrap_or(200);
    if !(1..=1000).contains(&limit) {
        return Err(Problem::bad_request("`limit` is between 1 and 1000"));
    }
    // No id and no path has such characters, and a database may not take them.
    let strange = |text: &Option<String>| text.as_deref().is_some_and(|text| text.contains('\0'));
    if strange(&query.project) || strange(&query.run_id) {
        return Err(Problem::bad_request("a parameter has a character that no name has"));
    }
    let run_id = match query.run_id.as_deref().filter(|text| !text.is_empty()).map(RunId::parse) {
        None => None,
        Some(Ok(id)) => Some(id),
        // No run has such an id.
        Some(Err(_)) => return Ok(axum::Json(ReviewList { reviews: Vec::new() })),
    };
    let filter = ReviewFilter { project: query.project, run_id, pending: query.pending, limit };
    let reviews = app.core.reviews.list(&filter).await?;
    Ok(axum::Json(ReviewList { reviews: reviews.iter().map(document).collect() }))
}

/// A review.
#[utoipa::path(get, path = "/api/v1/reviews/{id}", operation_id = "get_review", tag = "reviews", params(("id" = String, Path, description = "The review.")),
    responses((status = 200, body = Object), Reading))]
pub(crate) async fn get(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    Ok(axum::Json(document(&find_review(app.core.reviews.as_ref(), &id).await?)))
}

/// Returns the content for the reviewers of a review.
#[utoipa::path(get, path = "/api/v1/reviews/{id}/content", operation_id = "get_review_content", tag = "reviews",
    params(("id" = String, Path, description = "The review.")), responses((status = 200, body = Object), Reading))]
pub(crate) async fn content(
    _: Reader,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
) -> Result<axum::Json<Value>, Problem> {
    let review = find_review(app.core.reviews.as_ref(), &id).await?;
    let content = app.core.reviews.content(&review.id).await?.unwrap_or_default();
    Ok(axum::Json(json!(content)))
}

/// Decides a review in a reviewer's name. 409 where it is decided already, 410 where it has expired.
#[utoipa::path(post, path = "/api/v1/reviews/{id}/decision", operation_id = "decide_review", tag = "reviews", request_body = Decision,
    params(("id" = String, Path, description = "The review.")), responses((status = 200, body = Object, description = "The review after it. It may wait for others."), Reading, Changing))]
pub(crate) async fn decide(
    Reviewer(caller): Reviewer,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(decision): Json<Decision>,
) -> Result<axum::Json<Value>, Problem> {
    let review = find_review(app.core.reviews.as_ref(), &id).await?;
    let wrong = |why: String| Problem::unprocessable(why, Vec::new());
    let reviewer = app.core.people.reviewer_for(&review, &caller, decision.reviewer.as_deref())?;
    let to =
        decision.to.as_deref().map(PhaseName::parse).transpose().map_err(|error| wrong(error.to_string()))?;
    let choice = match decision.verdict {
        VerdictWord::Approve => Choice::Approve,
        VerdictWord::RequestChanges => Choice::RequestChanges { to },
        VerdictWord::Reject => Choice::Reject,
    };
    let answer = Answer {
        reviewer,
        actor: caller.actor().to_owned(),
        via: Via::Api,
        choice,
        reason: decision.reason,
        inputs: decision.inputs,
    };
    let review = app.core.reviews.apply(&review.id, Event::Answer(answer)).await?;
    Ok(axum::Json(document(&review)))
}

/// Returns the value with whole numbers in place of fractions without a fractional part, at its top level.
fn with_whole_numbers(mut review: Value) -> Value {
    let fields = review.as_object_mut().into_iter().flat_map(|fields| fields.values_mut());
    for value in fields {
        let number = value.as_f64().filter(|n| n.fract() == 0.0 && (0.0..1e15).contains(n));
        if let Some(number) = number {
            *value = (number as u64).into();
        }
    }
    review
}

/// Makes a review, for a run on another machine. Gives the review that there is then: the same one, where it was made before.
#[utoipa::path(put, path = "/api/v1/reviews/{id}", operation_id = "create_review", tag = "reviews", request_body = NewReviewBody,
    params(("id" = String, Path, description = "The review: 32 hexadecimal digits, chosen by the caller.")), responses((status = 200, body = Object), Reading, Changing))]
pub(crate) async fn create(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    LargeJson(body): LargeJson<NewReviewBody>,
) -> Result<axum::Json<Value>, Problem> {
    let wrong = |why: String| Problem::unprocessable("it is not a review", vec![why]);
    let review: Review =
        serde_json::from_value(with_whole_numbers(body.review)).map_err(|error| wrong(error.to_string()))?;
    let content: Content = match body.content {
        Value::Null => Content::default(),
        content => serde_json::from_value(content).map_err(|error| wrong(error.to_string()))?,
    };
    if review.id.as_str() != id {
        return Err(Problem::conflict("the id of the review is not that of the address"));
    }
    let is_new = review.is_pending()
        && review.answers.is_empty()
        && review.comments.is_empty()
        && review.audit.is_none();
    if !is_new || review.project.as_str().contains('\0') {
        return Err(wrong("a new review is pending and has no answers".to_owned()));
    }
    Ok(axum::Json(document(&app.core.reviews.create(&review, &content).await?)))
}

/// Records what happened to a review, for the run that made it: its deadline, its notices, its end, its record.
#[utoipa::path(post, path = "/api/v1/reviews/{id}/events", operation_id = "update_review", tag = "reviews", request_body = super::review_schemas::ReviewEventInput,
    params(("id" = String, Path, description = "The review.")), responses((status = 200, body = Object), Reading, Changing))]
pub(crate) async fn update(
    _: Runner,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(event): Json<Value>,
) -> Result<axum::Json<Value>, Problem> {
    let review = find_review(app.core.reviews.as_ref(), &id).await?;
    let wrong = |why: String| Problem::unprocessable("a field is wrong", vec![why]);
    // serde accepts the number of a variant in place of its name.
    if ["event", "state"].iter().any(|field| event.get(field).is_some_and(|value| !value.is_string())) {
        return Err(wrong("`event` and `state` are texts".to_owned()));
    }
    let event: Event = serde_json::from_value(event).map_err(|error| wrong(error.to_string()))?;
    if matches!(event, Event::Answer(_) | Event::Comment(_) | Event::WithdrawComment { .. }) {
        return Err(Problem::unprocessable("an answer is sent to `decision`", Vec::new()));
    }
    Ok(axum::Json(document(&app.core.reviews.apply(&review.id, event).await?)))
}
