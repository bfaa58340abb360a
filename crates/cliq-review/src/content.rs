//! Content for reviewers. Collected when the review is created, and never changed.

use cliq_protocol::{CommandResult, HistoryEntry, PhaseName};
use serde::{Deserialize, Serialize};

use crate::comment::EarlierComment;
use crate::id::hash;
use cliq_protocol::Timestamp;

/// Content for reviewers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Content {
    /// Subject of the review: the role file of the phase, in markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// Requirement of the run, in markdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<String>,
    /// Results of the phase's commands.
    #[serde(default)]
    pub checks: Vec<CommandResult>,
    /// Handoffs of earlier phases.
    #[serde(default)]
    pub handed_over: Vec<PriorHandoff>,
    /// Files.
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    /// Remarks about content that cannot be shown, such as a pattern without files.
    #[serde(default)]
    pub remarks: Vec<String>,
    /// Changes in the git repositories of the workspace that are not committed.
    #[serde(default)]
    pub diffs: Vec<Diff>,
    /// Comments of the round before, with what became of their lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier_comments: Vec<EarlierComment>,
    /// Timeline of the run so far.
    #[serde(default)]
    pub timeline: Vec<TimelineEntry>,
    /// Earlier verdicts of the gate.
    #[serde(default)]
    pub history: Vec<HistoryEntry>,
}

/// Handoff of a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriorHandoff {
    /// The phase.
    pub from: PhaseName,
    /// Text in markdown.
    pub text: String,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// Path relative to the workspace.
    pub path: String,
    /// Size in bytes.
    pub size: u64,
    /// The SHA-256 of all of it. Absent where it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Displayed part.
    pub shown: ArtifactView,
}

/// Displayed part of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "as", rename_all = "snake_case")]
pub enum ArtifactView {
    /// Markdown.
    Markdown {
        /// Text, or its beginning.
        text: String,
        /// Whether there is more.
        #[serde(default)]
        cut: bool,
    },
    /// Text.
    Text {
        /// Text, or its beginning.
        text: String,
        /// Whether there is more.
        #[serde(default)]
        cut: bool,
    },
    /// An image.
    Image {
        /// Media type: PNG, JPEG, GIF or WebP.
        media_type: String,
        /// Content in base64.
        base64: String,
    },
    /// Nothing: it is neither text nor an image.
    Binary,
    /// Nothing: it is too large, or there is too much beside it.
    TooLarge,
    /// Nothing: it cannot be read.
    Unreadable {
        /// Reason.
        why: String,
    },
}

/// Changes in a git repository.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diff {
    /// Path of the repository relative to the workspace; `.` for the workspace itself.
    pub repo: String,
    /// Changes by file.
    pub files: Vec<FileDiff>,
    /// Files that changed and are not among `files`.
    #[serde(default)]
    pub more_files: u64,
}

impl Diff {
    /// Path of a changed file, relative to the workspace.
    #[must_use]
    pub fn path_of(&self, file: &FileDiff) -> String {
        if self.repo == "." { file.path.clone() } else { format!("{}/{}", self.repo, file.path) }
    }
}

/// Changes of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FileDiff {
    /// Path of the file.
    pub path: String,
    /// Previous path, if the file was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_path: Option<String>,
    /// `added`, `deleted`, `renamed` or `modified`.
    pub change: String,
    /// Lines that were added.
    pub added: u64,
    /// Lines that were removed.
    pub removed: u64,
    /// Whether it is not text.
    #[serde(default)]
    pub binary: bool,
    /// The hunks, as `git diff` prints them.
    pub hunks: String,
    /// Lines of the diff that are not in `hunks`.
    #[serde(default)]
    pub lines_left_out: u64,
}

/// Something that happened in the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    /// Time.
    pub at: Timestamp,
    /// Description in a sentence.
    pub text: String,
}

impl Content {
    /// The SHA-256 of its JSON: what was shown, in one number.
    #[must_use]
    pub fn sha256(&self) -> String {
        hash(&serde_json::to_vec(self).unwrap_or_default())
    }
}
