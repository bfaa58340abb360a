//! Lookup of reviews by the id in an address.

use cliq_review::{Review, ReviewId, Reviews};

use crate::problem::Problem;

/// Finds a review by its id.
///
/// # Errors
/// Returns a problem if there is no such review, or the store fails.
pub async fn find_review(reviews: &dyn Reviews, id: &str) -> Result<Review, Problem> {
    let unknown = || Problem::not_found("there is no review of this id");
    let id: ReviewId = id.parse().map_err(|_| unknown())?;
    reviews.get(&id).await?.ok_or_else(unknown)
}
