//! Size of the changes that a run has made to its workspace (docs/checkpoints.md).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Numbers of changed files and lines. Displayed as `3 files, +120 -4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ChangedLines {
    /// Number of files. A renamed file counts once.
    pub files: u64,
    /// Number of lines that were added. Files that are not text have none.
    pub lines_added: u64,
    /// Number of lines that were removed.
    pub lines_removed: u64,
}

impl fmt::Display for ChangedLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, lines_added, lines_removed } = self;
        let noun = if *files == 1 { "file" } else { "files" };
        write!(f, "{files} {noun}, +{lines_added} -{lines_removed}")
    }
}
