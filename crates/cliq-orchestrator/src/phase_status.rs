//! State of a phase for people.
// A new outcome has to be handled by name.
#![deny(clippy::wildcard_enum_match_arm)]

use serde::Serialize;

/// State of a phase for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseStatus {
    /// Not started.
    Pending,
    /// At work.
    Running,
    /// A gate that waits for the phase it sent the work back to.
    Waiting,
    /// Done.
    Completed,
    /// Not needed: its condition is false, its list is empty, or all that it depends on was skipped.
    Skipped,
    /// An item that failed, and without which its phase went on.
    Failed,
    /// A person is needed.
    Escalated,
    /// Ended before it was done.
    Stopped,
}

impl PhaseStatus {
    /// The word for it, as in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Completed => "completed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::Escalated => "escalated",
            Self::Stopped => "stopped",
        }
    }

    /// A sign for it, one column wide.
    #[must_use]
    pub fn mark(self) -> &'static str {
        match self {
            Self::Pending => "·",
            Self::Running => "▸",
            Self::Waiting => "↺",
            Self::Completed => "✓",
            Self::Skipped => "○",
            Self::Escalated | Self::Failed => "✗",
            Self::Stopped => "■",
        }
    }
}
