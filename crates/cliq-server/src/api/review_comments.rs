//! Comments on reviews: on a line of the changes, or on the whole (docs/reviews.md).

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use cliq_review::{Comment, Event, Review, Reviews as _, Side, Via};
use cliq_web::{Caller, Json, Path, Problem, Reviewer, find_review};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::errors::{Changing, Reading};
use super::reviews::document;
use crate::app::App;

/// Side of a change.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SideWord {
    /// Lines after the change.
    #[default]
    New,
    /// Lines before it: removed ones.
    Old,
}

/// Line of the changes that the review shows.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Line {
    /// Path relative to the workspace.
    #[schema(min_length = 1, max_length = 4096)]
    path: String,
    /// Side; `new` without it.
    #[serde(default)]
    side: SideWord,
    /// Number of the line on its side.
    #[schema(minimum = 1, maximum = 1000000000)]
    #[serde(deserialize_with = "number")]
    line: u64,
}

/// A whole number, also as a fraction without a fractional part.
fn number<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let number: Option<u64> = cliq_web::whole_number(deserializer)?;
    number.ok_or_else(|| serde::de::Error::custom("a number is missing"))
}

/// New comment.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewComment {
    /// The words, at most 16 KiB.
    #[schema(min_length = 1, max_length = 16384, pattern = r"\S")]
    text: String,
    /// Line that the comment is about. Comments on lines go along with a request for changes.
    at: Option<Line>,
    /// Id of the comment. A comment that is sent again with its id has no effect.
    #[schema(pattern = "^[!-~]{1,128}$")]
    id: Option<String>,
}

/// Checks that a caller may answer the review, in whoever's name.
fn check(app: &App, review: &Review, caller: &Caller) -> Result<(), Problem> {
    match app.core.people.reviewer_for(review, caller, None) {
        Err(problem) if problem.status() == StatusCode::FORBIDDEN => Err(problem),
        _ => Ok(()),
    }
}

/// Comments on a review that waits. Decides nothing.
#[utoipa::path(post, path = "/api/v1/reviews/{id}/comments", operation_id = "comment_on_review", tag = "reviews", request_body = NewComment,
    params(("id" = String, Path, description = "The review.")), responses((status = 201, body = Object, description = "The review with the comment."), Reading, Changing))]
pub(crate) async fn comment(
    Reviewer(caller): Reviewer,
    State(app): State<Arc<App>>,
    Path(id): Path<String>,
    Json(new): Json<NewComment>,
) -> Result<impl IntoResponse, Problem> {
    let review = find_review(app.core.reviews.as_ref(), &id).await?;
    check(&app, &review, &caller)?;
    let wrong = |why: String| Problem::unprocessable("the comment cannot be made", vec![why]);
    let place = match new.at {
        None => None,
        Some(line) => {
            let content = app.core.reviews.content(&review.id).await?.unwrap_or_default();
            let side = match line.side {
                SideWord::New => Side::New,
                SideWord::Old => Side::Old,
            };
            let place = content.place(&line.path, side, line.line);
            Some(place.map_err(|error| wrong(error.to_string()))?)
        }
    };
    let id = new.id.unwrap_or_else(|| uuid::Uuid::now_v7().to_string());
    if id.is_empty() || id.len() > 128 || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(wrong("`id` has 1 to 128 visible ASCII characters".to_owned()));
    }
    let comment = Comment { id, actor: caller.actor().to_owned(), via: Via::Api, text: new.text, place };
    let review = app.core.reviews.apply(&review.id, Event::Comment(comment)).await?;
    Ok((StatusCode::CREATED, axum::Json(document(&review))))
}

/// Withdraws a comment of the caller while the review waits. One that is not there is withdrawn.
#[utoipa::path(delete, path = "/api/v1/reviews/{id}/comments/{comment}", operation_id = "withdraw_comment", tag = "reviews",
    params(("id" = String, Path, description = "The review."), ("comment" = String, Path, description = "Id of the comment.")),
    responses((status = 200, body = Object, description = "The review without the comment."), Reading, Changing))]
pub(crate) async fn withdraw(
    Reviewer(caller): Reviewer,
    State(app): State<Arc<App>>,
    Path((id, comment)): Path<(String, String)>,
) -> Result<axum::Json<Value>, Problem> {
    let review = find_review(app.core.reviews.as_ref(), &id).await?;
    check(&app, &review, &caller)?;
    let event = Event::WithdrawComment { id: comment, actor: caller.actor().to_owned() };
    Ok(axum::Json(document(&app.core.reviews.apply(&review.id, event).await?)))
}
