//! Calls of the program `git`, and what cliq does with repositories.
//!
//! [`Git`] runs git with typed failures ([`GitError`]), a deadline, and an environment without the variables of another repository
//! ([`LOCAL_VARIABLES`]). Above it: snapshots of a working tree ([`snapshot`]), merges ([`merge`]) whose conflicts are unmerged
//! entries ([`Conflict`]), copies of submodules and of ignored files for a worktree. Names of files are bytes.

mod apply;
mod bytes;
pub mod checkpoints;
mod conflict;
mod environment;
mod error;
mod git;
mod hooks;
mod include;
mod lock;
mod merge;
mod resolution;
mod snapshot;
mod submodules;

pub use bytes::lossy;
pub use conflict::{Conflict, ConflictKind};
pub use environment::{LOCAL_VARIABLES, remove_local_variables};
pub use error::GitError;
pub use git::Git;
pub use include::copy_included;
pub use lock::RepositoryLock;
pub use merge::{MergeRequest, merge};
pub use resolution::{StagedEntry, mark_unmerged, restore_entries, staged_entries, unresolved};
pub use snapshot::{commit_worktree, snapshot};
pub use submodules::{
    branches_apart, copy_submodules, forward_submodules, join_submodules, keep_commits, merge_heads,
    populated, publish_submodules,
};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
