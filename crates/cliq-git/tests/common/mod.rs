//! Repositories of the tests.
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_git::{Conflict, Git, GitError, MergeRequest, commit_worktree, merge, snapshot};

/// A workspace and the worktree of an item.
pub(crate) struct Place {
    _dir: tempfile::TempDir,
    pub(crate) top: PathBuf,
    pub(crate) workspace: PathBuf,
    pub(crate) item: PathBuf,
    pub(crate) base: String,
}

/// Runs a script of the shell in a directory.
pub(crate) fn sh(dir: &Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(dir);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@t"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@t"),
        ("GIT_ALLOW_PROTOCOL", "file"),
    ] {
        command.env(name, value);
    }
    let output = command.output().expect("sh");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{script}: {error}");
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

pub(crate) fn git_in(dir: &Path) -> Git {
    Git::new(dir).as_cliq()
}

impl Place {
    /// A repository with the files that a script makes, and no worktree yet.
    pub(crate) fn new(setup: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let top = dir.path().canonicalize().expect("a path");
        let (workspace, item) = (top.join("workspace"), top.join("item"));
        std::fs::create_dir(&workspace).expect("a directory");
        sh(&workspace, "git init -q -b main");
        sh(&workspace, setup);
        sh(&workspace, "git add -A; git commit -qm base --allow-empty");
        Self { _dir: dir, top, workspace, item, base: String::new() }
    }

    /// Makes the worktree of the item from the workspace as it is.
    pub(crate) fn begin(&mut self) {
        let git = self.git();
        self.base = snapshot(&git, None).expect("a snapshot");
        git.run(["worktree", "add", "--quiet", "--detach", self.item.to_str().expect("UTF-8"), &self.base])
            .expect("a worktree");
        cliq_git::copy_submodules(&git, &git_in(&self.item)).expect("submodules");
        cliq_git::copy_included(&git, &self.item).expect("files");
    }

    pub(crate) fn git(&self) -> Git {
        git_in(&self.workspace)
    }

    /// Merges the item into the workspace.
    pub(crate) fn merge(&self) -> Result<Vec<Conflict>, GitError> {
        let git = self.git();
        let theirs = commit_worktree(&git_in(&self.item), "fix.1")?;
        let ours = snapshot(&git, Some(&self.base))?;
        merge(&MergeRequest {
            workspace: &git,
            worktree: &self.item,
            base: &self.base,
            ours: &ours,
            theirs: &theirs,
            branch: "cliq/run/fix.1",
        })
    }
}
