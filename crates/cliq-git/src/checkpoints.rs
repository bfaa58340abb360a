//! Checkpoints (docs/checkpoints.md): snapshots of the files of a workspace, tracked and untracked but not ignored, in a private store.
//!
//! [`Store::take`] writes the files of each repository of a workspace as a git tree into a store of its own, with an index of its own. The
//! program `git` does the work with a private directory and without any configuration, so nothing of the project's repositories is used but
//! their working files, their ignore rules and, for tracked files that are ignored, the list of files in their index
//! (`docs/decisions/0040-checkpoints-are-trees-of-git-without-its-repository.md`).
//!
//! Absent on purpose: runs and phases. A [`Label`] is text here.
//!
//! ```no_run
//! use camino::Utf8Path;
//! use cliq_git::checkpoints::{Label, Limits, Moment, Store};
//!
//! let roots = ["src", "lib"].map(Into::into);
//! let store = Store::new(Utf8Path::new(".cliq/checkpoints.git"), Utf8Path::new("."), &roots, Limits::default());
//! let label = |moment| Label { run: "r1".into(), phase: "build".into(), activation: 1, moment };
//! let before = store.take(&label(Moment::Before), "2026-11-24T10:00:00Z")?;
//! let after = store.take(&label(Moment::After), "2026-11-24T10:05:00Z")?;
//! for change in store.changes(&before, &after)? {
//!     println!("{} {}", change.kind.letter(), change.path);
//! }
//! # Ok::<(), cliq_git::checkpoints::CheckpointError>(())
//! ```

mod private;
mod record;
mod restore;
mod snapshot;
mod store;

pub use record::{Checkpoint, Label, LargeFile, Moment, Unit};
pub use restore::Restored;
pub use store::{Change, ChangeKind, CheckpointError, DifferenceForm, Limits, Store};
