//! Reviews in the memory store, for unit tests. It passes the suite of `cliq-store`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use async_trait::async_trait;
use cliq_model::{MemoryStore, StoreError};
use cliq_protocol::{RunId, Timestamp};

use crate::content::Content;
use crate::id::ReviewId;
use crate::machine::Event;
use crate::review::Review;
use crate::store::{ReviewFilter, ReviewStore};

/// Default maximum number of reviews in a list.
const LIMIT: usize = 200;

#[derive(Debug, Clone)]
struct StoredReview {
    review: Review,
    content: Content,
    version: i64,
}

/// Reviews by id.
#[derive(Debug, Default)]
struct Rows(BTreeMap<String, StoredReview>);

impl Rows {
    fn list(&self, filter: &ReviewFilter) -> Vec<Review> {
        let ReviewFilter { project, run_id, pending, limit } = filter;
        let is_listed = |review: &&Review| {
            project.as_ref().is_none_or(|project| review.project.as_str() == project)
                && run_id.as_ref().is_none_or(|run| review.run_id == *run)
                && (!pending || review.is_pending())
        };
        let mut listed: Vec<Review> =
            self.0.values().map(|stored| &stored.review).filter(is_listed).cloned().collect();
        listed.sort_by_key(|review| (Reverse(review.created), review.id.to_string()));
        listed.truncate(if *limit == 0 { LIMIT } else { *limit as usize });
        listed
    }

    /// Stores a review in place of a version. Returns `false` if the stored version is another one.
    fn save(&mut self, review: &Review, version: i64) -> bool {
        let stored = self.0.get_mut(review.id.as_str()).filter(|stored| stored.version == version);
        let Some(stored) = stored else { return false };
        stored.review = review.clone();
        stored.version += 1;
        true
    }
}

/// Cancels the reviews that a cancelled run has left pending.
fn cancel_pending(store: &MemoryStore, run: &RunId) {
    let now = store.now();
    let cancelled = store.part(|rows: &mut Rows| {
        let of_run = ReviewFilter { run_id: Some(run.clone()), pending: true, ..ReviewFilter::default() };
        let mut cancelled = Vec::new();
        for old in rows.list(&of_run) {
            let event = Event::Cancel { reason: "the run was cancelled".to_owned() };
            let version = rows.0.get(old.id.as_str()).map_or(0, |stored| stored.version);
            if let Ok(Some(new)) = old.step(&event, now)
                && rows.save(&new, version)
            {
                cancelled.push(new.id);
            }
        }
        cancelled
    });
    for id in cancelled.into_iter().flatten() {
        store.end_review(id.as_str());
    }
}

#[async_trait]
impl ReviewStore for MemoryStore {
    async fn add_review(&self, review: &Review, content: &Content) -> Result<bool, StoreError> {
        self.on_cancelled_run(cancel_pending);
        let added = self.part(|rows: &mut Rows| {
            let is_known =
                |stored: &StoredReview| stored.review.id == review.id || stored.review.key() == review.key();
            if rows.0.values().any(is_known) {
                return false;
            }
            let stored = StoredReview { review: review.clone(), content: content.clone(), version: 1 };
            rows.0.insert(review.id.to_string(), stored);
            true
        })?;
        if added && review.is_pending() {
            self.add_pending_review(review.id.as_str());
        }
        Ok(added)
    }

    async fn review(&self, id: &ReviewId) -> Result<Option<(Review, i64)>, StoreError> {
        self.part(|rows: &mut Rows| {
            rows.0.get(id.as_str()).map(|stored| (stored.review.clone(), stored.version))
        })
    }

    async fn review_content(&self, id: &ReviewId) -> Result<Option<Content>, StoreError> {
        self.part(|rows: &mut Rows| rows.0.get(id.as_str()).map(|stored| stored.content.clone()))
    }

    async fn reviews(&self, filter: &ReviewFilter) -> Result<Vec<Review>, StoreError> {
        self.part(|rows: &mut Rows| rows.list(filter))
    }

    async fn save_review(&self, review: &Review, version: i64) -> Result<bool, StoreError> {
        let is_saved = self.part(|rows: &mut Rows| rows.save(review, version))?;
        if is_saved && !review.is_pending() {
            self.end_review(review.id.as_str());
        }
        Ok(is_saved)
    }

    async fn remove_reviews(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.part(|rows: &mut Rows| {
            let known = rows.0.len();
            rows.0.retain(|_, stored| stored.review.is_pending() || stored.review.created >= before);
            (known - rows.0.len()) as u64
        })
    }
}
