//! Notices of a review: who is notified of what, through which channel, and the outcome of the delivery.

use serde::{Deserialize, Serialize};

use crate::people::Channel;
use crate::time::Time;

/// What a notice says.
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

/// What became of a notice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum NoticeState {
    /// It is to be sent.
    Planned,
    /// It was sent.
    Sent,
    /// It could not be sent.
    Failed {
        /// Why.
        error: String,
    },
    /// The run ended while it was being sent. It is not sent again, so that no reviewer is notified twice.
    Unknown,
}

/// A notice to one reviewer by one way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// Its id, unique in all reviews: it is sent at most once.
    pub id: String,
    /// What it says.
    pub kind: NoticeKind,
    /// To whom.
    pub reviewer: String,
    /// Which way.
    pub channel: Channel,
    /// When it was due.
    pub at: Time,
    /// What became of it.
    #[serde(flatten)]
    pub state: NoticeState,
}
