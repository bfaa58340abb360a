//! Records of checkpoints: one line of JSON each, in the order in which they were taken.

use serde::{Deserialize, Serialize};

/// Moment of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Moment {
    /// Before an activation.
    Before,
    /// At the end of an activation.
    After,
    /// Before files were restored.
    Restore,
}

/// Label of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// Id of the run.
    pub run: String,
    /// Name of the phase or item.
    pub phase: String,
    /// Number of the activation, 1-based.
    pub activation: u32,
    /// Moment.
    pub moment: Moment,
}

/// Files of one repository of the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unit {
    /// Path of the repository within the workspace; empty for the workspace itself.
    pub path: String,
    /// Id of the git tree.
    pub tree: String,
}

/// File that exceeds the limit: its name is recorded, its content is not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargeFile {
    /// Path within the workspace. Bytes that are not UTF-8 are replaced.
    pub path: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// A checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Number of the checkpoint in its store, 1-based.
    pub id: u64,
    /// Time, in ISO-8601.
    pub ts: String,
    /// Label.
    #[serde(flatten)]
    pub label: Label,
    /// Repositories of the workspace.
    pub units: Vec<Unit>,
    /// Files that are not stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub large: Vec<LargeFile>,
}

impl Checkpoint {
    /// Whether both contain the same files.
    #[must_use]
    pub fn has_same_files(&self, other: &Self) -> bool {
        self.units == other.units && self.large == other.large
    }

    /// Tree of a repository.
    #[must_use]
    pub fn tree_of(&self, path: &str) -> Option<&str> {
        self.units.iter().find(|unit| unit.path == path).map(|unit| unit.tree.as_str())
    }
}
