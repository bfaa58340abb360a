//! Comments on a review: they are kept, and decide nothing.

use serde::{Deserialize, Serialize};

use crate::via::Via;
use cliq_protocol::Timestamp;

/// Words of the person or program that the run works for, beside the answers. They decide nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comment {
    /// Id by the sender. One that comes twice counts once.
    pub id: String,
    /// Author: the user of the machine, or the label of a token.
    pub actor: String,
    /// The way by which it came.
    pub via: Via,
    /// The words.
    pub text: String,
}

/// A comment that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedComment {
    /// Time of arrival.
    pub at: Timestamp,
    /// The comment.
    #[serde(flatten)]
    pub comment: Comment,
}
