//! Comments: on a line of the changes, or on the whole.

use std::process::ExitCode;

use cliq_review::{Comment, Event, Side, Via};

use super::{ReviewSource, document, find};
use crate::args::CommentArgs;
use crate::commands::audit::record;
use crate::failure::Failure;
use crate::ui::{self, GREEN, paint};
use crate::{gateway, reviews};

pub(super) async fn run(args: &CommentArgs) -> Result<ExitCode, Failure> {
    let ReviewSource { review, reviews } = find::find(&args.id, false).await?;
    let actor = reviews::user();
    let (event, done) = match (&args.withdraw, &args.message) {
        (Some(id), _) => {
            let known = review.comments.iter().map(|said| &said.comment.id);
            let found: Vec<&String> = known.filter(|known| known.starts_with(id.as_str())).collect();
            let [id] = found.as_slice() else {
                return Err(Failure::usage(format!(
                    "{} comments have an id that begins with `{id}`",
                    found.len()
                ))
                .hint("`cliq review show` shows the ids of comments"));
            };
            (Event::WithdrawComment { id: (*id).clone(), actor }, "withdrew the comment".to_owned())
        }
        (None, Some(text)) => {
            let place = match args.at.as_deref() {
                None => None,
                Some(at) => {
                    let (path, line) = place_of(at)?;
                    let side = if args.removed { Side::Old } else { Side::New };
                    let content = reviews.content(&review.id).await?.unwrap_or_default();
                    let place = content.place(path, side, line);
                    Some(place.map_err(|error| {
                        Failure::usage(error.to_string()).hint("`cliq review show --full` shows the lines")
                    })?)
                }
            };
            let on = place.as_ref().map(|place| format!(" on {place}")).unwrap_or_default();
            let id = uuid::Uuid::now_v7().to_string();
            let line = place.as_ref().map(|place| format!(": {}", place.text().trim())).unwrap_or_default();
            let comment = Comment { id, actor, via: Via::CommandLine, text: text.clone(), place };
            (Event::Comment(comment), format!("commented{}", ui::plain(&(on + &line))))
        }
        (None, None) => return Err(Failure::usage("a comment has a text").hint("`-m TEXT` says it")),
    };
    let review = reviews.apply(&review.id, event).await?;
    if let Ok(store) = gateway::open().await {
        record(store.as_ref(), "review comment", review.id.as_str()).await;
    }
    if args.json {
        ui::json(&document(&review))?;
        return Ok(ExitCode::SUCCESS);
    }
    ui::line(format!("{} {}: {done}", paint(GREEN, "✓"), review.phase))?;
    let on_lines = review.on_lines().count();
    if on_lines > 0 && !review.route_targets.is_empty() {
        let comments = if on_lines == 1 {
            "comment on a line".to_owned()
        } else {
            format!("{on_lines} comments on lines")
        };
        ui::hint(&format!(
            "`cliq review request-changes` sends the {comments} to a phase; comments on the whole stay with the review"
        ));
    }
    Ok(ExitCode::SUCCESS)
}

/// Path and line of `PATH:LINE`.
fn place_of(at: &str) -> Result<(&str, u64), Failure> {
    let at_in_workspace = at.strip_prefix("./").unwrap_or(at);
    let parts = at_in_workspace.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
    parts.ok_or_else(|| Failure::usage(format!("--at: `{at}` is not PATH:LINE")))
}
