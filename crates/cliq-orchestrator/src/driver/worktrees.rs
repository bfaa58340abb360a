//! Git worktrees of items (docs/expressions.md).
//!
//! The items of a phase begin from one commit: the workspace as it was, with all uncommitted files and the submodules that are checked out.
//! `merging.rs` merges their changes into the files of the workspace.

use std::fs;

use camino::{Utf8Path, Utf8PathBuf};
use cliq_fs::write_atomic;
use cliq_git::{Git, GitError, RepositoryLock, WorktreeBranch};
use cliq_protocol::{PhaseName, RunId};
use cliq_workflow::PhaseId;

use super::Driver;
use super::shared::Shared;
use crate::blocking::spawn_blocking;

impl Shared {
    /// Worktree of an item, if its phase uses worktrees.
    pub(super) fn worktree_of(&self, phase: &str) -> Option<Utf8PathBuf> {
        let id = self.workflow().find(phase).filter(|id| id.item().is_some())?;
        let list = self.workflow().phase(id).for_each.as_ref()?;
        list.worktrees.then(|| self.worktrees().join(phase))
    }

    /// Working directory of a phase or an item.
    pub(super) fn workspace_of(&self, phase: &str) -> Utf8PathBuf {
        self.worktree_of(phase).unwrap_or_else(|| self.dir().workspace().to_owned())
    }

    fn worktrees(&self) -> Utf8PathBuf {
        self.dir().root().join("worktrees")
    }

    /// Makes the worktree of an item, as it was before the item began. One with the work of a model that continues is kept.
    pub(super) async fn prepare_worktree(
        &self,
        phase: &PhaseName,
        continues: Option<u32>,
    ) -> Result<(), String> {
        let Some(worktree) = self.worktree_of(phase.as_str()) else { return Ok(()) };
        let continues = continues.is_some_and(|activation| self.dir().transcript(phase, activation).exists());
        let repository = self.repository();
        let branch = self.branch(phase);
        let whole = phase.whole().to_owned();
        let made = spawn_blocking(move || repository.prepare(&whole, &worktree, &branch, continues)).await;
        made.unwrap_or_else(|error| Err(error.to_string()))
            .map_err(|why| format!("no worktree can be made: {why}"))
    }

    pub(super) fn branch(&self, phase: &PhaseName) -> String {
        format!("cliq/{}/{phase}", self.run_id)
    }

    pub(super) fn repository(&self) -> Repository {
        let git = Git::new(self.dir().workspace()).as_cliq();
        let path = self.plan.env.get("PATH");
        let git = path.into_iter().fold(git, |git, path| git.with_env("PATH", path));
        Repository { git, place: self.worktrees(), run_id: self.run_id.clone() }
    }
}

impl Driver {
    /// Marks the worktrees of a phase that is to be done again as stale, and removes them beside the dispatcher. The mark is made before
    /// the journal has the reset, so the next worktree is never made from what a killed orchestrator left.
    pub(super) fn forget_worktrees(&self, id: PhaseId) {
        let workflow = self.shared.workflow();
        let phase = &workflow.phase(id).name;
        let has_worktrees = workflow.phase(id).for_each.as_ref().is_some_and(|list| list.worktrees);
        let repository = self.shared.repository();
        if has_worktrees && repository.mark_stale(phase.as_str()) {
            let phase = phase.clone();
            self.tasks.spawn_blocking(move || {
                // What cannot be removed is in the way of the next one, which then says so.
                let _ = repository.remove_stale(phase.as_str());
            });
        }
    }
}

/// The repository of the workspace. Hooks, signatures and editors are off: an agent may have set them.
pub(super) struct Repository {
    pub(super) git: Git,
    /// Directory of the worktrees.
    pub(super) place: Utf8PathBuf,
    run_id: RunId,
}

impl Repository {
    pub(super) fn workspace(&self) -> &std::path::Path {
        self.git.dir()
    }

    /// The commit from which the items of a phase begin. Made once.
    pub(super) fn base(&self, phase: &str) -> Result<String, String> {
        let file = self.place.join(format!("{phase}.base"));
        if let Ok(commit) = fs::read_to_string(&file) {
            return Ok(commit.trim().to_owned());
        }
        if let Some(path) = cliq_git::first_unmerged(&self.git).map_err(|error| error.to_string())? {
            return Err(format!(
                "the workspace has unresolved conflicts, one in {}; resolve them and `git add` the files, then `cliq run --resume`",
                cliq_git::lossy(&path)
            ));
        }
        fs::create_dir_all(&self.place).map_err(|error| format!("cannot create {}: {error}", self.place))?;
        let commit = cliq_git::snapshot(&self.git, None).map_err(|error| error.to_string())?;
        write_atomic(&file, commit.as_bytes()).map_err(|error| error.to_string())?;
        Ok(commit)
    }

    /// File that exists while the worktrees of a phase are to be removed.
    fn stale(&self, phase: &str) -> Utf8PathBuf {
        self.place.join(format!("{phase}.stale"))
    }

    /// Marks the worktrees of a phase as stale. Returns whether there are any.
    fn mark_stale(&self, phase: &str) -> bool {
        fs::rename(self.place.join(format!("{phase}.base")), self.stale(phase)).is_ok()
    }

    /// Removes the worktrees of a phase if they are stale.
    fn remove_stale(&self, phase: &str) -> Result<(), GitError> {
        let _lock = RepositoryLock::acquire(&self.git)?;
        if self.stale(phase).exists() { self.clean(phase) } else { Ok(()) }
    }

    fn prepare(&self, phase: &str, worktree: &Utf8Path, branch: &str, continues: bool) -> Result<(), String> {
        if !self.workspace().join(".git").exists() {
            return Err(format!(
                "`workspace: worktree` needs a git repository, and {} is none",
                self.workspace().display()
            ));
        }
        let _lock = RepositoryLock::acquire(&self.git).map_err(|error| error.to_string())?;
        if self.stale(phase).exists() {
            self.clean(phase).map_err(|error| error.to_string())?;
        }
        let base = self.base(phase)?;
        self.fill(worktree, branch, continues, &base).map_err(|error| error.to_string())
    }

    fn fill(&self, worktree: &Utf8Path, branch: &str, continues: bool, base: &str) -> Result<(), GitError> {
        let git = self.git.in_dir(worktree);
        if worktree.join(".git").exists() {
            // Nobody else works in it: a lock is what a killed git left.
            cliq_git::remove_index_lock(&git)?;
            if continues {
                return Ok(());
            }
            cliq_git::reset_worktree(&git, base)?;
        } else {
            let _ = fs::remove_dir_all(worktree);
            let on = WorktreeBranch::Reset { branch, to: base };
            cliq_git::add_worktree(&self.git, worktree.as_std_path(), on)?;
        }
        cliq_git::copy_submodules(&self.git, &git)?;
        cliq_git::copy_included(&self.git, worktree.as_std_path())
    }

    /// Removes the worktrees, branches and records of a phase.
    pub(super) fn clean(&self, phase: &str) -> Result<(), GitError> {
        let of_phase = |name: &str| name.split('.').next() == Some(phase);
        let entries = self.place.read_dir_utf8().into_iter().flatten().flatten();
        for entry in entries.filter(|entry| of_phase(entry.file_name())) {
            let path = entry.path();
            let is_dir = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_dir && cliq_git::remove_worktree(&self.git, path.as_std_path()).is_err() {
                let _ = fs::remove_dir_all(path);
            }
        }
        cliq_git::prune_worktrees(&self.git)?;
        let branches = cliq_git::branches_below(&self.git, &format!("cliq/{}", self.run_id))?;
        let is_item = |branch: &&String| branch.rsplit('/').next().is_some_and(of_phase);
        for branch in branches.iter().filter(is_item) {
            cliq_git::delete_branch(&self.git, branch)?;
        }
        // The mark last: while it is there, an interrupted removal is taken up again.
        for name in ["join.json", "base", "stale"] {
            let _ = fs::remove_file(self.place.join(format!("{phase}.{name}")));
        }
        Ok(())
    }
}
