//! Branches of tasks in real repositories: hooks, signatures, identities, submodules.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use super::*;

/// A project with a plan `ship` of two tasks.
struct Place {
    _dir: tempfile::TempDir,
    project: Utf8PathBuf,
    worktrees: Worktrees,
}

fn sh(dir: &Utf8Path, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(dir).env("GIT_ALLOW_PROTOCOL", "file");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

const TASKS: [WorkId; 2] = [WorkId::Task { wave: 1, task: 1 }, WorkId::Task { wave: 1, task: 2 }];

impl Place {
    fn new(setup: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = Utf8PathBuf::from_path_buf(dir.path().canonicalize().unwrap()).unwrap();
        let project = top.join("project");
        fs::create_dir(&project).unwrap();
        sh(
            &project,
            "git init -q -b main; git config user.name t; git config user.email t@t; echo base > base.txt",
        );
        sh(&project, setup);
        sh(&project, "git add -A; git commit -qm base");
        let worktrees = Worktrees::new(&project, "ship");
        Self { _dir: dir, project, worktrees }
    }

    /// Does the tasks and merges their branches. Each task runs a script with its number in `$N`.
    fn merge(&self, script: &str) -> Result<String, MergeError> {
        for (n, task) in TASKS.iter().enumerate() {
            let path = self.worktrees.ensure(*task).unwrap();
            sh(&path, &format!("N={n}; {script}"));
        }
        self.merge_again()
    }

    fn merge_again(&self) -> Result<String, MergeError> {
        self.worktrees.merge(&TASKS.map(|task| (task, format!("{task} is done"))))
    }

    fn hook(&self, name: &str) {
        let script = format!(
            "mkdir -p .git/hooks; printf '#!/bin/sh\\necho lint of {name} failed >&2; exit 1\\n' > .git/hooks/{name}; chmod +x .git/hooks/{name}"
        );
        sh(&self.project, &script);
    }
}

#[test]
fn merges_and_commits_run_no_checks_of_the_repository() {
    let place = Place::new("true");
    for hook in ["pre-merge-commit", "commit-msg", "pre-commit"] {
        place.hook(hook);
    }
    place.merge("echo $N > $N.txt").unwrap();
    assert_eq!(sh(&place.project, "git ls-tree --name-only cliq/ship"), "0.txt\n1.txt\nbase.txt");
}

#[test]
fn failed_hook_is_named_and_no_conflict() {
    let place = Place::new("true");
    place.hook("prepare-commit-msg");
    let Err(MergeError::Failed(why)) = place.merge("echo $N > $N.txt") else { panic!("it is no conflict") };
    assert!(why.contains("the hook prepare-commit-msg failed"), "{why}");
    assert!(why.contains("lint of prepare-commit-msg failed") && !why.contains("conflicts"), "{why}");
    sh(&place.project, "rm .git/hooks/prepare-commit-msg");
    place.merge_again().unwrap();
}

#[test]
fn missing_signature_or_identity_is_no_conflict() {
    let cases = [
        (
            "git config commit.gpgSign true; git config gpg.program /bin/false",
            "git config commit.gpgSign false",
            "gpg failed",
        ),
        (
            "git config user.name ''; git config user.email ''; git config user.useConfigOnly true",
            "git config user.name t; git config user.email t@t",
            "empty ident",
        ),
    ];
    for (setting, mended, named) in cases {
        let place = Place::new("true");
        sh(&place.project, setting);
        let Err(MergeError::Failed(why)) = place.merge("echo $N > $N.txt") else {
            panic!("it is no conflict")
        };
        assert!(why.contains(named) && !why.contains("conflicts"), "{why}");
        sh(&place.project, mended);
        place.merge_again().unwrap();
    }
}

#[test]
fn conflict_names_branch_and_files() {
    let place = Place::new("printf '\\000base' > logo.bin");
    let Err(MergeError::Conflict(why)) = place.merge("printf '\\000'$N > logo.bin") else {
        panic!("a conflict")
    };
    assert!(
        why.contains("merged cliq/ship-w1-t1\nBranch cliq/ship-w1-t2 conflicts with cliq/ship: logo.bin"),
        "{why}"
    );
    let plan = place.worktrees.path(WorkId::Plan);
    assert_eq!(sh(&plan, "git status --porcelain"), "", "it is taken back");
}

#[test]
fn commits_of_tasks_in_a_submodule_are_merged() {
    let place = Place::new(
        "git init -q -b main ../lib; (cd ../lib; git config user.name t; git config user.email t@t; echo lib > lib.txt; git add -A; git commit -qm lib)
         git submodule --quiet add ../lib lib; git -C lib config user.name t; git -C lib config user.email t@t; mv ../lib ../moved",
    );
    place.merge("cat lib/lib.txt; echo $N > lib/$N.txt; cd lib; test $N = 1 || { git add -A; git commit -qm own; }").unwrap();
    let plan = place.worktrees.path(WorkId::Plan);
    assert_eq!(sh(&plan, "ls lib; git status --porcelain"), "0.txt\n1.txt\nlib.txt");
    // They outlive the worktrees.
    sh(
        &place.project,
        "git worktree remove --force .worktrees/ship; git checkout -q cliq/ship; git submodule --quiet update",
    );
    assert_eq!(sh(&place.project, "ls lib"), "0.txt\n1.txt\nlib.txt");
}

#[test]
fn worktrees_get_included_files() {
    let place = Place::new("echo .env > .gitignore; echo .env > .worktreeinclude; echo key > .env");
    let path = place.worktrees.ensure(TASKS[0]).unwrap();
    assert_eq!(sh(&path, "cat .env"), "key");
}
