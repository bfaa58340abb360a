//! Lookup of the review that a command refers to.

use std::sync::Arc;

use cliq_project::Project;
use cliq_project::internals::ServerReviews;
use cliq_review::{Review, ReviewFilter, ReviewId, Reviews};
use cliq_settings::{ReviewSettings, Settings};

use super::ReviewSource;
use crate::args::ReviewIdArg;
use crate::failure::Failure;
use crate::gateway::home;
use crate::{project, reviews, ui};

/// Returns the possible sources of reviews: the store of this machine, and the server of the settings.
pub(super) async fn sources(here: Option<&Project>) -> Result<Vec<Arc<dyn Reviews>>, Failure> {
    let settings = match here {
        Some(project) => project.settings()?,
        None => Settings::load(Some(&home()?), None)?,
    };
    let mut sources = vec![reviews::open().await?];
    let ReviewSettings { server_url, token, .. } = ReviewSettings::read(&settings);
    if let Some(url) = server_url {
        sources.push(Arc::new(ServerReviews::new(&url, token)));
    }
    Ok(sources)
}

/// Returns the review with an id, for a run of a project.
///
/// # Errors
/// Returns an error if no source of the project has it.
pub(in crate::commands) async fn find_in(project: &Project, id: &str) -> Result<ReviewSource, Failure> {
    let unknown = || Failure::usage(format!("there is no review {id}"));
    let id: ReviewId = id.parse().map_err(|_| unknown())?;
    let mut failed = None;
    for reviews in sources(Some(project)).await? {
        match reviews.get(&id).await {
            Ok(Some(review)) => return Ok(ReviewSource { review, reviews }),
            Ok(None) => {}
            Err(error) => failed = Some(error),
        }
    }
    Err(failed.map_or_else(unknown, Into::into))
}

/// The review with an id, or the beginning of one; without it, the one that waits in this project. `over` takes the newest one that is over
/// where none waits.
pub(super) async fn find(id: &ReviewIdArg, over: bool) -> Result<ReviewSource, Failure> {
    let here = project::open();
    let sources = sources(here.as_ref().ok()).await?;
    let mut failed = None;
    if let Some(id) = id.id.as_deref().and_then(|id| id.parse::<ReviewId>().ok()) {
        for reviews in sources {
            match reviews.get(&id).await {
                Ok(Some(review)) => return Ok(ReviewSource { review, reviews }),
                Ok(None) => {}
                Err(error) => failed = Some(error),
            }
        }
        return Err(match failed {
            Some(error) => error.into(),
            None => Failure::usage(format!("there is no review {id}"))
                .hint("`cliq review list --all` lists those there are"),
        });
    }
    // An id is looked for on the whole machine, everything else in the project.
    let workspace = match (&id.id, here) {
        (Some(_), _) => None,
        (None, Ok(project)) => Some(project.dir().workspace().to_string()),
        (None, Err(failure)) => return Err(failure),
    };
    let filter = ReviewFilter { project: workspace, limit: 1000, ..ReviewFilter::default() };
    let mut found = Vec::new();
    for reviews in sources {
        match reviews.list(&filter).await {
            Ok(listed) => found.extend(
                listed.into_iter().map(|review| ReviewSource { review, reviews: Arc::clone(&reviews) }),
            ),
            Err(error) => failed = Some(error),
        }
    }
    if let Some(error) = &failed {
        ui::warning(&error.to_string());
    }
    match &id.id {
        Some(begin) => by_beginning(found, begin),
        None => the_one_that_waits(found, over),
    }
}

fn by_beginning(found: Vec<ReviewSource>, begin: &str) -> Result<ReviewSource, Failure> {
    let mut found: Vec<ReviewSource> =
        found.into_iter().filter(|found| found.review.id.as_str().starts_with(begin)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(Failure::usage(format!("there is no review whose id begins with `{begin}`"))
            .hint("`cliq review list --all` lists those there are")),
        n => Err(Failure::usage(format!("{n} reviews have ids that begin with `{begin}`: write more of it"))),
    }
}

fn the_one_that_waits(mut found: Vec<ReviewSource>, over: bool) -> Result<ReviewSource, Failure> {
    let waiting: Vec<&Review> =
        found.iter().map(|found| &found.review).filter(|review| review.is_pending()).collect();
    let chosen = match waiting.as_slice() {
        [only] => Some(only.id.clone()),
        [] if over => found
            .iter()
            .map(|found| &found.review)
            .max_by_key(|review| review.created)
            .map(|review| review.id.clone()),
        [] => None,
        several => {
            let ids: Vec<String> = several
                .iter()
                .map(|review| format!("{} ({})", &review.id.as_str()[..8], review.phase))
                .collect();
            return Err(Failure::usage(format!(
                "{} reviews wait in this project: name one of {}",
                ids.len(),
                ids.join(", ")
            )));
        }
    };
    let position = chosen.and_then(|id| found.iter().position(|found| found.review.id == id));
    position.map(|n| found.remove(n)).ok_or_else(|| {
        Failure::refused("no review waits in this project")
            .hint("`cliq review list --all` lists those that are over")
    })
}
