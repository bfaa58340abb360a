//! Stand-in for reviews on a server, in programs that are built without them: each call fails with the reason.

use async_trait::async_trait;
use cliq_model::StoreError;
use cliq_review::{Content, Event, Review, ReviewFilter, ReviewId, Reviews, ReviewsError};
use cliq_settings::Secret;

#[derive(Debug)]
pub(super) struct ServerReviews;

impl ServerReviews {
    pub(super) fn new(_: impl Into<String>, _: Option<Secret>) -> Self {
        Self
    }

    pub(super) async fn has_run(&self, _: &str) -> Result<bool, ReviewsError> {
        missing()
    }
}

fn missing<T>() -> Result<T, ReviewsError> {
    let reason =
        "this program was built without reviews on a server (feature `remote-reviews` of cliq-project)";
    Err(StoreError::new(reason).into())
}

#[async_trait]
impl Reviews for ServerReviews {
    async fn create(&self, _: &Review, _: &Content) -> Result<Review, ReviewsError> {
        missing()
    }
    async fn get(&self, _: &ReviewId) -> Result<Option<Review>, ReviewsError> {
        missing()
    }
    async fn content(&self, _: &ReviewId) -> Result<Option<Content>, ReviewsError> {
        missing()
    }
    async fn list(&self, _: &ReviewFilter) -> Result<Vec<Review>, ReviewsError> {
        missing()
    }
    async fn apply(&self, _: &ReviewId, _: Event) -> Result<Review, ReviewsError> {
        missing()
    }
}
