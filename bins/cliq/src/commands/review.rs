//! `cliq review`: answering reviews in a terminal, without any server.

mod answer;
mod browser;
mod comment;
mod find;
mod show;

use std::process::ExitCode;

use cliq_protocol::PhaseName;
use cliq_review::{Choice, Review, ReviewFilter, Reviews, ReviewsError};
use serde_json::{Value, json};

use crate::args::ReviewCommand;
use crate::failure::Failure;
use crate::gateway::{block_on, home};
use crate::project;
use crate::ui::{self, BOLD, DIM, paint};

pub(super) use answer::answer_in_editor;
pub(super) use browser::show_link;
pub(super) use find::find_in;

pub(super) fn run(command: &ReviewCommand) -> Result<ExitCode, Failure> {
    block_on(async {
        match command {
            ReviewCommand::List { all, json } => list(*all, *json).await,
            ReviewCommand::Show { id, full, json } => show::run(id, *full, *json).await,
            ReviewCommand::Comment { comment } => comment::run(comment).await,
            ReviewCommand::Approve { answer } => answer::run(answer, Choice::Approve).await,
            ReviewCommand::Reject { answer } => answer::run(answer, Choice::Reject).await,
            ReviewCommand::RequestChanges { to, answer } => {
                let to = to.as_deref().map(PhaseName::parse).transpose();
                let to = to.map_err(|error| Failure::usage(format!("--to: {error}")))?;
                answer::run(answer, Choice::RequestChanges { to }).await
            }
            ReviewCommand::Open { id, reviewer } => browser::run(id, reviewer.as_deref()).await,
        }
    })
}

impl From<ReviewsError> for Failure {
    fn from(error: ReviewsError) -> Self {
        match &error {
            ReviewsError::NotFound(_) => {
                Self::usage(error.to_string()).hint("`cliq review list --all` lists those there are")
            }
            ReviewsError::Refused { refusal, .. } => refused(refusal),
            _ => Self::failed(error.to_string()),
        }
    }
}

/// Maps a refusal to an exit code: refused if the rules forbid the answer, usage error if the answer is invalid.
fn refused(refusal: &cliq_review::Refusal) -> Failure {
    use cliq_review::Refusal as R;
    let text = refusal.to_string();
    match refusal {
        R::NotAReviewer { .. } => Failure::usage(text),
        R::WhichReviewer { .. } => Failure::usage(text).hint("`--as NAME` says it"),
        R::Target { .. } => Failure::usage(text).hint("`--to PHASE` names it"),
        R::NoWords => Failure::usage(text)
            .hint("`-m TEXT` says it, `cliq review comment --at PATH:LINE` comments on a line"),
        R::TooLong | R::CommentLength | R::CommentsTooLong => Failure::usage(text),
        R::Inputs(_) => {
            Failure::usage(text).hint("`--input FIELD=VALUE` answers a field, `cliq review show` lists them")
        }
        _ => Failure::refused(text),
    }
}

/// A review as programs read it: with the links of those who have not answered.
fn document(review: &Review) -> Value {
    let mut value = json!(review);
    let kept = home().ok().and_then(|home| cliq_project::internals::kept_review(&home, review.id.as_str()));
    let link = |name: &str| Some((name.to_owned(), json!(kept.as_ref()?.link(name)?)));
    let links: serde_json::Map<String, Value> = review.waits_for().into_iter().filter_map(link).collect();
    value["links"] = Value::Object(links);
    value["waits_for"] = json!(review.waits_for());
    value["ending"] = json!(review.ending());
    value
}

async fn list(all: bool, as_json: bool) -> Result<ExitCode, Failure> {
    let here = project::open().ok();
    let workspace = here.as_ref().map(|project| project.dir().workspace().to_string());
    let filter = ReviewFilter { project: workspace, pending: !all, ..ReviewFilter::default() };
    let mut found: Vec<Review> = Vec::new();
    for reviews in find::sources(here.as_ref()).await? {
        match reviews.list(&filter).await {
            Ok(listed) => found.extend(listed),
            Err(error) => ui::warning(&error.to_string()),
        }
    }
    found.sort_by_key(|review| std::cmp::Reverse(review.created));
    if as_json {
        ui::json(&json!({"reviews": found.iter().map(document).collect::<Vec<_>>()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    if found.is_empty() {
        ui::line(if all { "there are no reviews" } else { "no review waits" })?;
        return Ok(ExitCode::SUCCESS);
    }
    for review in &found {
        let id = review.id.as_str().get(..8).unwrap_or_default();
        let how = match review.ending() {
            Some(ending) => ui::plain(&ending),
            None => format!("waits for {}, until {}", review.waits_for().join(", "), review.deadline),
        };
        let team = if here.is_some() {
            review.team.to_string()
        } else {
            format!("{} in {}", review.team, review.project)
        };
        ui::line(format!("{}  {}  {}  {how}", paint(BOLD, id), review.phase, paint(DIM, team)))?;
    }
    if found.iter().any(Review::is_pending) {
        ui::hint("`cliq review show ID` shows one, `cliq review approve ID` answers it");
    }
    Ok(ExitCode::SUCCESS)
}

/// Review with the source that can reach it.
pub(super) struct ReviewSource {
    pub(super) review: Review,
    pub(super) reviews: std::sync::Arc<dyn Reviews>,
}
