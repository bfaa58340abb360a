//! Human gates of a project: the agent that makes a review and waits for it, what reviewers are shown, the records (SPEC section 16).

mod agent;
mod artifacts;
mod content;
mod diff;
mod links;
mod notices;
mod records;
mod server;
mod socket;

pub use agent::{PageAddress, ReviewBackend, review_agent};
pub use links::{KeptReview, kept_review, kept_reviews};
pub use notices::{settle, settled_notices};
pub use records::{RecordCheck, check_record};
pub use server::ServerReviews;
pub use socket::{REVIEW_SOCKET, ReviewSocket, SocketReviews};
