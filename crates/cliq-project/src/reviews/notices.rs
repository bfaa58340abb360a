//! Outcome of the notices of a review. The orchestrator has a file for each notice that it delivers or delivered.

use cliq_fs::{CliqDir, read_if_exists};
use cliq_review::{Delivery, Event, NoticeState, Review, Reviews, ReviewsError};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
enum DeliveryFile {
    Sent,
    Failed { error: String },
}

/// Reads the record of a delivery that the orchestrator keeps.
pub(super) fn delivery(dir: &CliqDir, id: &str) -> Delivery {
    let Ok(Some(bytes)) = read_if_exists(&dir.notice_file(id), 64 << 10) else { return Delivery::None };
    match serde_json::from_slice(&bytes) {
        Ok(DeliveryFile::Sent) => Delivery::Settled(NoticeState::Sent),
        Ok(DeliveryFile::Failed { error }) => Delivery::Settled(NoticeState::Failed { error }),
        Err(_) => Delivery::Begun,
    }
}

/// Returns the outcome of planned notices as events for the review. With `is_over`, a delivery that has started but not ended
/// counts as unknown, because no delivery is active any more.
#[must_use]
pub fn settled_notices(dir: &CliqDir, review: &Review, is_over: bool) -> Vec<Event> {
    let state = |id: &str| match delivery(dir, id) {
        Delivery::Settled(state) => Some(state),
        Delivery::Begun if is_over => Some(NoticeState::Unknown),
        Delivery::Begun | Delivery::None => None,
    };
    let event = |id: &str| Some(Event::NoticeSettled { id: id.to_owned(), state: state(id)? });
    review.planned_notices().filter_map(|notice| event(&notice.id)).collect()
}

/// Records what became of planned notices. Gives the review after it.
///
/// # Errors
/// The reviews cannot be reached.
pub async fn settle(
    reviews: &dyn Reviews,
    dir: &CliqDir,
    mut review: Review,
    is_over: bool,
) -> Result<Review, ReviewsError> {
    for event in settled_notices(dir, &review, is_over) {
        review = reviews.apply(&review.id, event).await?;
    }
    Ok(review)
}
