//! Storage of reviews, and access to them.

use std::sync::Arc;

use async_trait::async_trait;
use cliq_model::StoreError;
use serde::{Deserialize, Serialize};

use crate::content::Content;
use crate::id::ReviewId;
use crate::machine::Event;
use crate::refusal::Refusal;
use crate::review::Review;
use cliq_protocol::{RunId, Timestamp};

/// Maximum number of attempts of a change after an optimistic-lock conflict.
const TRIES: usize = 100;

/// Filter for reviews.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReviewFilter {
    /// Only those of this workspace.
    pub project: Option<String>,
    /// Only those of this run.
    pub run_id: Option<RunId>,
    /// Only those that wait.
    pub pending: bool,
    /// At most so many; 0 for 200.
    pub limit: u32,
}

/// Keeps reviews. Each function is one transaction.
#[async_trait]
pub trait ReviewStore: Send + Sync + std::fmt::Debug {
    /// Stores a new review with its content. `false` if there is one of its id or key.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn add_review(&self, review: &Review, content: &Content) -> Result<bool, StoreError>;

    /// A review and its version.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn review(&self, id: &ReviewId) -> Result<Option<(Review, i64)>, StoreError>;

    /// Returns the content for the reviewers of a review.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn review_content(&self, id: &ReviewId) -> Result<Option<Content>, StoreError>;

    /// Reviews, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    async fn reviews(&self, filter: &ReviewFilter) -> Result<Vec<Review>, StoreError>;

    /// Stores a review in place of `version`. `false` where the stored version is another one.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn save_review(&self, review: &Review, version: i64) -> Result<bool, StoreError>;

    /// Removes reviews that are over and were made before `before`. Gives how many.
    ///
    /// # Errors
    /// The store cannot be written.
    async fn remove_reviews(&self, before: Timestamp) -> Result<u64, StoreError>;
}

/// Error of an operation on reviews.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReviewsError {
    /// The review does not exist.
    #[error("there is no review {0}")]
    NotFound(ReviewId),
    /// The answer does not count.
    #[error("{refusal}")]
    Refused {
        /// Reason.
        refusal: Refusal,
        /// The review as it stands.
        review: Box<Review>,
    },
    /// The store, or the server that has it, cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Access to reviews: those of a store here, or those of a remote server.
#[async_trait]
pub trait Reviews: Send + Sync + std::fmt::Debug {
    /// Makes a review. Gives the one that there is then: another one, where it was made before.
    ///
    /// # Errors
    /// The store cannot be used.
    async fn create(&self, review: &Review, content: &Content) -> Result<Review, ReviewsError>;

    /// A review as it stands now: a deadline that has passed counts.
    ///
    /// # Errors
    /// The store cannot be used.
    async fn get(&self, id: &ReviewId) -> Result<Option<Review>, ReviewsError>;

    /// Returns the content for the reviewers of a review.
    ///
    /// # Errors
    /// The store cannot be used.
    async fn content(&self, id: &ReviewId) -> Result<Option<Content>, ReviewsError>;

    /// Reviews, newest first.
    ///
    /// # Errors
    /// The store cannot be used.
    async fn list(&self, filter: &ReviewFilter) -> Result<Vec<Review>, ReviewsError>;

    /// Applies an event. Gives the review after it.
    ///
    /// # Errors
    /// Returns an error if the event is refused or the store fails.
    async fn apply(&self, id: &ReviewId, event: Event) -> Result<Review, ReviewsError>;
}

/// The reviews of a store.
#[derive(Debug, Clone)]
pub struct StoredReviews {
    store: Arc<dyn ReviewStore>,
    now: fn() -> Timestamp,
}

impl StoredReviews {
    /// The reviews of a store, by a clock.
    #[must_use]
    pub fn new(store: Arc<dyn ReviewStore>, now: fn() -> Timestamp) -> Self {
        Self { store, now }
    }

    /// Removes reviews that are over and were made before `before`. Gives how many.
    ///
    /// # Errors
    /// The store cannot be written.
    pub async fn remove_before(&self, before: Timestamp) -> Result<u64, ReviewsError> {
        Ok(self.store.remove_reviews(before).await?)
    }

    async fn find(&self, id: &ReviewId) -> Result<(Review, i64), ReviewsError> {
        self.store.review(id).await?.ok_or_else(|| ReviewsError::NotFound(id.clone()))
    }
}

#[async_trait]
impl Reviews for StoredReviews {
    async fn create(&self, review: &Review, content: &Content) -> Result<Review, ReviewsError> {
        if self.store.add_review(review, content).await? {
            return Ok(review.clone());
        }
        let filter =
            ReviewFilter { run_id: Some(review.run_id.clone()), limit: 1000, ..ReviewFilter::default() };
        let same = |other: &Review| other.id == review.id || other.key() == review.key();
        let found = self.store.reviews(&filter).await?.into_iter().find(same);
        found.ok_or_else(|| StoreError::new("the review is not there after it was made").into())
    }

    async fn get(&self, id: &ReviewId) -> Result<Option<Review>, ReviewsError> {
        let Some((review, _)) = self.store.review(id).await? else { return Ok(None) };
        if review.is_pending() && (self.now)() >= review.deadline {
            return self.apply(id, Event::Clock).await.map(Some);
        }
        Ok(Some(review))
    }

    async fn content(&self, id: &ReviewId) -> Result<Option<Content>, ReviewsError> {
        Ok(self.store.review_content(id).await?)
    }

    async fn list(&self, filter: &ReviewFilter) -> Result<Vec<Review>, ReviewsError> {
        let mut reviews = Vec::new();
        for review in self.store.reviews(filter).await? {
            let due = review.is_pending() && (self.now)() >= review.deadline;
            let review = if due { self.apply(&review.id, Event::Clock).await? } else { review };
            if !filter.pending || review.is_pending() {
                reviews.push(review);
            }
        }
        Ok(reviews)
    }

    async fn apply(&self, id: &ReviewId, event: Event) -> Result<Review, ReviewsError> {
        for _ in 0..TRIES {
            let (mut review, version) = self.find(id).await?;
            let now = (self.now)();
            // What is due comes first: an answer after the deadline finds an expired review.
            let due =
                if event == Event::Clock { None } else { review.step(&Event::Clock, now).ok().flatten() };
            let was_due = due.is_some();
            if let Some(due) = due {
                review = due;
            }
            let (next, refusal) = match review.step(&event, now) {
                Ok(next) => (next, None),
                Err(refusal) => (None, Some(refusal)),
            };
            let next = match next {
                Some(next) => next,
                None if was_due => review,
                None => return refused(refusal, review),
            };
            if self.store.save_review(&next, version).await? {
                return refused(refusal, next);
            }
        }
        Err(StoreError::new("others change the review all the time; try again").into())
    }
}

fn refused(refusal: Option<Refusal>, review: Review) -> Result<Review, ReviewsError> {
    match refusal {
        None => Ok(review),
        Some(refusal) => Err(ReviewsError::Refused { refusal, review: Box::new(review) }),
    }
}
