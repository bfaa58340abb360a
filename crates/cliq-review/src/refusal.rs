//! Refusals of events, as the person who answers reads them.

use cliq_protocol::Timestamp;

/// The most bytes of a reviewer's words.
pub(crate) const MAX_WORDS: usize = 64 * 1024;
/// The most bytes of a comment, and the most comments of a review.
pub(crate) const MAX_COMMENT: usize = 16 * 1024;
pub(crate) const MAX_COMMENTS: usize = 200;
/// The most bytes of all comments on lines of a review: they go along with a request for changes.
pub(crate) const MAX_ON_LINES: usize = 128 * 1024;

/// Reason why an event is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The review is decided.
    #[error("the review is decided already: {0}")]
    Decided(String),
    /// The deadline passed.
    #[error("this review has expired (its deadline was {0})")]
    Expired(Timestamp),
    /// The review is no longer needed.
    #[error("the review was cancelled: {0}")]
    Cancelled(String),
    /// The name is not that of a reviewer.
    #[error("{name} is not a reviewer of this review; its reviewers are {known}")]
    NotAReviewer {
        /// The name.
        name: String,
        /// The reviewers.
        known: String,
    },
    /// Several people have to answer, and it is not said who this is.
    #[error("several reviewers must answer; name yourself: {names}")]
    WhichReviewer {
        /// Reviewers who have not answered.
        names: String,
    },
    /// The reviewer has answered.
    #[error("{0} has answered already; the review waits for others")]
    Answered(String),
    /// A request for changes names no phase, or one that cannot be asked.
    #[error("changes cannot be requested of {to}; the phases are: {known}")]
    Target {
        /// Requested phase.
        to: String,
        /// The phases.
        known: String,
    },
    /// A request for changes says nothing.
    #[error("a request for changes requires a message or a comment on a line: describe the change")]
    NoWords,
    /// The words are too long.
    #[error("the words are longer than {} KiB", MAX_WORDS / 1024)]
    TooLong,
    /// A comment says nothing, or too much.
    #[error("a comment has 1 byte to {} KiB", MAX_COMMENT / 1024)]
    CommentLength,
    /// The review has many comments.
    #[error("the review has {MAX_COMMENTS} comments and takes no more")]
    TooManyComments,
    /// The comments on lines are too long together.
    #[error("the comments on lines of a review have at most {} KiB together", MAX_ON_LINES / 1024)]
    CommentsTooLong,
    /// Another comment has the id.
    #[error("a comment with this id is there and says something else")]
    CommentId,
    /// A comment of another author is withdrawn.
    #[error("the comment is by {0}, who alone can withdraw it")]
    NotYourComment(String),
    /// The form is not filled in right.
    #[error("{}", .0.join("; "))]
    Inputs(Vec<String>),
    /// The server that has the review refuses, for this reason.
    #[error("{0}")]
    Server(String),
}
