//! Store of reviews that gives woken runs their slots at once.

use std::sync::Arc;

use async_trait::async_trait;
use cliq_model::StoreError;
use cliq_protocol::Timestamp;
use cliq_review::{Content, Review, ReviewFilter, ReviewId, ReviewStore};

use crate::shared::Shared;

/// Store of reviews beside a supervisor. The store queues the run that waits for a review; the supervisor looks at its queue.
#[derive(Debug)]
pub(crate) struct SupervisedReviews {
    pub(crate) store: Arc<dyn ReviewStore>,
    pub(crate) shared: Arc<Shared>,
}

#[async_trait]
impl ReviewStore for SupervisedReviews {
    async fn add_review(&self, review: &Review, content: &Content) -> Result<bool, StoreError> {
        self.store.add_review(review, content).await
    }

    async fn review(&self, id: &ReviewId) -> Result<Option<(Review, i64)>, StoreError> {
        self.store.review(id).await
    }

    async fn review_content(&self, id: &ReviewId) -> Result<Option<Content>, StoreError> {
        self.store.review_content(id).await
    }

    async fn reviews(&self, filter: &ReviewFilter) -> Result<Vec<Review>, StoreError> {
        self.store.reviews(filter).await
    }

    async fn save_review(&self, review: &Review, version: i64) -> Result<bool, StoreError> {
        let is_saved = self.store.save_review(review, version).await?;
        if is_saved && !review.is_pending() {
            self.shared.has_queued();
        }
        Ok(is_saved)
    }

    async fn remove_reviews(&self, before: Timestamp) -> Result<u64, StoreError> {
        self.store.remove_reviews(before).await
    }
}
