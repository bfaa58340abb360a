//! Checkpoints (docs/checkpoints.md): snapshots of the files of a workspace, tracked and untracked but not ignored.
//!
//! [`Store::take`] writes the files of each repository of a workspace as a git tree into a store of its own, with an index of its own. The
//! program `git` does the work with a private directory and without any configuration, so nothing of the project's repositories is used but
//! their working files, their ignore rules and, for tracked files that are ignored, the list of files in their index.
//!
//! Absent on purpose: runs and phases. A [`Label`] is text to this crate.

mod git;
mod record;
mod restore;
mod snapshot;
mod store;

pub use record::{Checkpoint, Label, LargeFile, Moment, Unit};
pub use restore::Restored;
pub use store::{Change, ChangeKind, CheckpointError, Limits, Store};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
