//! Calls of the program `git`, and what cliq does with repositories.
//!
//! [`Git`] runs git with typed failures ([`GitError`]), a deadline, and an environment without the variables of another repository
//! ([`LOCAL_VARIABLES`]). Above it: snapshots of a working tree ([`snapshot`]), merges ([`merge`]) whose conflicts are unmerged
//! entries ([`Conflict`]), copies of submodules and of ignored files for a worktree, worktrees and their branches ([`add_worktree`],
//! [`merge_branch`]), copies of remote repositories ([`clone()`]), and [`checkpoints`]. Names of files are bytes.
//!
//! All functions block. Callers on a runtime use its threads for blocking work.

mod apply;
mod bytes;
mod changes;
pub mod checkpoints;
mod clone;
mod conflict;
mod environment;
mod error;
mod git;
mod hooks;
mod include;
mod lock;
mod merge;
mod remote;
mod resolution;
mod snapshot;
mod submodules;
mod worktree;

pub use bytes::lossy;
pub use changes::{UncommittedChanges, first_unmerged, is_ignored, uncommitted_changes};
pub use clone::{CloneRequest, PinnedHost, checkout_detached, clone};
pub use conflict::{Conflict, ConflictKind};
pub use environment::{LOCAL_VARIABLES, remove_local_variables};
pub use error::GitError;
pub use git::{Git, PROGRAM};
pub use include::copy_included;
pub use lock::RepositoryLock;
pub use merge::{MergeRequest, merge};
pub use remote::{
    current_branch, default_branch, has_remote_branch, is_repository, last_message, rewritten_address,
    written_address,
};
pub use resolution::{StagedEntry, mark_unmerged, restore_entries, staged_entries, unresolved};
pub use snapshot::{commit_worktree, snapshot};
pub use submodules::{
    branches_apart, copy_submodules, forward_submodules, join_submodules, keep_commits, merge_heads,
    populated, publish_submodules,
};
pub use worktree::{
    BranchMergeError, WorktreeBranch, add_worktree, branches_below, commit_all, common_dir, delete_branch,
    fast_forward, has_branch, init_with_commit, is_merging, merge_branch, prune_worktrees, remove_index_lock,
    remove_worktree, reset_worktree,
};

/// Runs the example of the README as a documentation test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExample;
