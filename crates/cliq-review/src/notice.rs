//! Notices of a review: who is notified of what, through which channel, and the outcome of the delivery.

use serde::{Deserialize, Serialize};

use crate::people::Channel;
use cliq_protocol::Timestamp;

/// Kind of a notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeKind {
    /// A review is asked for: event `hug_review`.
    Request,
    /// The review still waits: event `hug_reminder`.
    Reminder,
    /// The review is over: event `hug_outcome`.
    Outcome,
}

impl NoticeKind {
    /// The event of the notification.
    #[must_use]
    pub fn event(self) -> &'static str {
        match self {
            Self::Request => "hug_review",
            Self::Reminder => "hug_reminder",
            Self::Outcome => "hug_outcome",
        }
    }
}

/// State of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NoticeState {
    /// The notice will be sent.
    Planned,
    /// The notice was sent.
    Sent,
    /// The notice could not be sent.
    Failed {
        /// Reason.
        error: String,
    },
    /// The run ended while it was being sent. It is not sent again, so that no reviewer is notified twice.
    Unknown,
}

/// A notice to one reviewer by one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Id, unique in all reviews: the notice is sent at most once.
    pub id: String,
    /// Kind of the notice.
    pub kind: NoticeKind,
    /// To whom.
    pub reviewer: String,
    /// Channel of the notice.
    pub channel: Channel,
    /// Time at which it was due.
    pub at: Timestamp,
    /// State of the notice.
    #[serde(flatten)]
    pub state: NoticeState,
}
