//! Human gates of a project: the agent that makes a review and waits for it, what reviewers are shown, the records (docs/reviews.md).

mod agent;
mod artifacts;
mod content;
mod diff;
mod earlier;
mod links;
#[cfg(not(feature = "remote-reviews"))]
mod no_server;
mod none;
mod notices;
mod records;
#[cfg(feature = "remote-reviews")]
mod server;
mod socket;
mod wakeups;

pub use agent::{PageAddress, ReviewBackend, review_agent};
pub use links::{KeptReview, kept_review, kept_reviews};
pub use none::NoReviews;
pub use notices::{settle, settled_notices};
pub use records::{RecordCheck, check_record};
#[cfg(feature = "remote-reviews")]
pub use server::ServerReviews;
pub use socket::{REVIEW_SOCKET, ReviewSocket, SocketReviews};
