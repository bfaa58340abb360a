//! Reviews of a program that keeps none.

use std::sync::Arc;

use async_trait::async_trait;
use cliq_review::{ReviewId, Reviews};

use super::agent::{PageAddress, ReviewBackend};

/// Reviews of a program that keeps none. Its human gates need a cliq server.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoReviews;

#[async_trait]
impl ReviewBackend for NoReviews {
    async fn reviews(&self) -> Result<Arc<dyn Reviews>, String> {
        Err("this program keeps no reviews: name a cliq server in `hug.server_url`".to_owned())
    }

    async fn pages(&self, _: &Arc<dyn Reviews>, _: &ReviewId) -> Result<PageAddress, String> {
        Err("this program serves no pages of reviews: name a cliq server in `hug.server_url`".to_owned())
    }
}
