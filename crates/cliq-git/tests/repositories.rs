//! Submodules, sparse checkouts, included files, hooks and the environment.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;
use std::time::Duration;

use crate::common::{Place, git_in, sh};
use cliq_git::{CloneRequest, Git, GitError, PinnedHost, branches_apart, mark_unmerged, unresolved};

const LIB: &str =
    "git init -q -b main ../lib; (cd ../lib; printf 'lib\\n' > lib.txt; git add -A; git commit -qm lib)
    git submodule --quiet add ../lib lib; git -C lib checkout -q --detach; echo top > top.txt";

fn with_submodule() -> Place {
    let mut place = Place::new(LIB);
    place.begin();
    place
}

#[test]
fn item_gets_submodules_from_the_local_clone() {
    let mut place = Place::new(LIB);
    sh(&place.top, "mv lib moved");
    sh(&place.workspace, "echo dirty >> lib/lib.txt; echo new > lib/new.txt");
    place.begin();
    assert_eq!(sh(&place.item, "cat lib/lib.txt lib/new.txt"), "lib\ndirty\nnew");
    assert_eq!(sh(&place.item, "git status --porcelain"), "");
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "git -C lib status --porcelain"), " M lib.txt\n?? new.txt");
}

#[test]
fn uncommitted_files_of_a_submodule_are_carried_back() {
    let place = with_submodule();
    sh(&place.item, "echo edited >> lib/lib.txt; echo new > lib/new.txt; echo changed > top.txt");
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "cat top.txt lib/lib.txt lib/new.txt"), "changed\nlib\nedited\nnew");
    assert_eq!(sh(&place.workspace, "git -C lib status --porcelain"), " M lib.txt\n?? new.txt");
    assert_eq!(sh(&place.workspace, "git diff --cached --name-only"), "");
}

#[test]
fn commits_in_a_submodule_are_carried_back() {
    let place = with_submodule();
    sh(&place.item, "cd lib; echo edited >> lib.txt; git commit -qam edit; echo rest > rest.txt");
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "git -C lib log --format=%s"), "edit\nlib");
    assert_eq!(sh(&place.workspace, "git -C lib status --porcelain"), "?? rest.txt");
    assert_eq!(
        sh(&place.workspace, "git submodule status | cut -c1"),
        "+",
        "the commit of the submodule changed"
    );
}

#[test]
fn commits_of_two_items_in_a_submodule_are_merged() {
    let place = with_submodule();
    sh(&place.workspace, "cd lib; echo first > first.txt; git add -A; git commit -qm first");
    sh(&place.item, "cd lib; echo second > second.txt; git add -A; git commit -qm second");
    assert_eq!(place.merge().unwrap(), vec![]);
    let log = sh(&place.workspace, "git -C lib log --format=%s | sort");
    assert_eq!(log, "Merge the commits of items\nfirst\nlib\nsecond");
    assert_eq!(
        sh(&place.workspace, "git -C lib status --porcelain; ls lib"),
        "first.txt\nlib.txt\nsecond.txt"
    );
}

#[test]
fn commits_stay_on_a_branch_where_the_user_has_one_checked_out() {
    let mut place = Place::new(LIB);
    sh(&place.workspace, "git -C lib checkout -q main");
    place.begin();
    sh(&place.item, "cd lib; echo edited >> lib.txt; git commit -qam edit");
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "git -C lib log --format=%s; cat lib/lib.txt"), "lib\nlib\nedited");
    assert_eq!(sh(&place.workspace, "git -C lib log -1 --format=%s cliq/run/fix.1"), "edit");
    let apart = || branches_apart(&place.git(), "cliq/run/fix.*").unwrap();
    assert_eq!(apart(), [("lib".to_owned(), "cliq/run/fix.1".to_owned())]);
    sh(&place.workspace, "git -C lib reset -q --hard cliq/run/fix.1");
    assert_eq!(apart(), []);
}

#[test]
fn conflict_within_a_submodule_is_named_and_resolved() {
    let place = with_submodule();
    sh(&place.workspace, "echo ours > lib/lib.txt");
    sh(&place.item, "echo theirs > lib/lib.txt");
    let conflicts = place.merge().unwrap();
    assert_eq!(conflicts.iter().map(cliq_git::Conflict::name).collect::<Vec<_>>(), ["lib/lib.txt"]);
    mark_unmerged(&place.git(), &conflicts).unwrap();
    assert_eq!(unresolved(&place.git(), &conflicts).unwrap().len(), 1);
    sh(&place.workspace, "cd lib; git checkout -q --theirs lib.txt; git add lib.txt");
    assert!(unresolved(&place.git(), &conflicts).unwrap().is_empty());
}

#[test]
fn submodules_within_submodules_are_carried_back() {
    let mut place = Place::new(
        "git init -q -b main ../inner; (cd ../inner; echo i > i.txt; git add -A; git commit -qm inner)
         git init -q -b main ../lib; (cd ../lib; echo l > l.txt; git add -A; git submodule --quiet add ../inner inner; git commit -qm lib)
         git submodule --quiet add ../lib lib; git submodule --quiet update --init --recursive",
    );
    place.begin();
    sh(&place.item, "echo deep >> lib/inner/i.txt");
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "cat lib/inner/i.txt"), "i\ndeep");
}

#[test]
fn changes_without_a_place_fail_by_name() {
    let cases = [
        ("git init -q made; cd made; echo x > x; git add -A; git commit -qm x", "made"),
        ("git rm -q lib", "lib"),
        ("git -C lib config a.b c; rm -rf lib/.git", "lib"),
    ];
    for (change, name) in cases {
        let place = with_submodule();
        sh(&place.item, change);
        sh(&place.item, "echo changed > top.txt");
        match place.merge() {
            Err(GitError::NotCarried { path, .. }) => assert_eq!(path, name, "{change}"),
            other => panic!("{change}: {other:?}"),
        }
        assert_eq!(sh(&place.workspace, "cat top.txt"), "top", "nothing is merged");
    }
}

#[test]
fn sparse_checkout_gets_changes_outside_of_its_cone() {
    let mut place = Place::new("mkdir in out; echo i > in/i; echo o > out/o; echo p > out/p");
    sh(&place.workspace, "git sparse-checkout set in");
    place.begin();
    sh(
        &place.item,
        "echo new > in/new; mkdir -p out; echo made > out/new; echo changed > out/o; git rm -q --sparse --cached out/p",
    );
    assert_eq!(place.merge().unwrap(), vec![]);
    assert_eq!(sh(&place.workspace, "cat in/new out/new out/o"), "new\nmade\nchanged");
    let status = sh(&place.workspace, "git status --porcelain -uall");
    assert_eq!(status, " M out/o\n D out/p\n?? in/new\n?? out/new");
}

#[test]
fn included_files_are_copied_with_modes_and_links() {
    let mut place = Place::new(
        "printf '.env*\\ncache/\\nsecret\\n' > .gitignore; printf '.env*\\n!.env.not\\ncache/\\nopen.txt\\n' > .worktreeinclude",
    );
    sh(
        &place.workspace,
        "echo k > .env; chmod 600 .env; echo n > .env.not; echo s > secret; mkdir -p cache/deep; echo c > cache/deep/c; chmod +x cache/deep/c
         ln -s ../../outside cache/link; git init -q cache/repo; echo r > cache/repo/r",
    );
    sh(&place.top, "echo untouched > outside");
    place.begin();
    assert_eq!(
        sh(&place.item, "stat -c '%a %F' .env cache/deep/c cache/link"),
        "600 regular file\n755 regular file\n777 symbolic link"
    );
    assert_eq!(sh(&place.item, "ls -A cache"), "deep\nlink");
    assert!(!place.item.join(".env.not").exists() && !place.item.join("secret").exists());
    // A link in the worktree leads nowhere else.
    sh(&place.item, "rm -rf cache; ln -s .. cache; ln -sf ../outside .env");
    cliq_git::copy_included(&place.git(), &place.item).unwrap();
    assert_eq!(sh(&place.top, "cat outside; ls"), "untouched\nitem\noutside\nworkspace");
    assert_eq!(sh(&place.item, "cat .env"), "k");
}

#[test]
fn failed_hook_is_named_with_its_output() {
    for hook in ["pre-commit", "commit-msg", "prepare-commit-msg"] {
        let place = Place::new("echo a > a");
        sh(
            &place.workspace,
            &format!(
                "printf '#!/bin/sh\\necho lint of {hook} failed >&2; exit 1\\n' > .git/hooks/{hook}; chmod +x .git/hooks/{hook}; echo b > a; git add -A"
            ),
        );
        match place.git().with_hooks().run(["commit", "--quiet", "-m", "x"]) {
            Err(GitError::Hook { hook: named, output, .. }) => {
                assert_eq!(named, hook);
                assert!(output.contains(&format!("lint of {hook} failed")), "{output}");
            }
            other => panic!("{other:?}"),
        }
        // Without hooks it is committed.
        place.git().run(["commit", "--quiet", "-m", "x"]).unwrap();
    }
}

#[test]
fn failure_without_a_hook_is_not_called_one() {
    let place = Place::new("echo a > a");
    let error = place.git().with_hooks().run(["checkout", "missing"]).unwrap_err();
    assert!(matches!(&error, GitError::Failed { status: Some(1), .. }), "{error:?}");
    assert!(error.to_string().contains("error: pathspec 'missing'"), "{error}");
}

#[test]
fn process_that_holds_the_output_open_delays_nothing() {
    let place = Place::new("echo a > a");
    let git = place.git().with_setting("alias.x=!(sleep 1000 & echo $! > pid); echo done");
    assert_eq!(git.text(["x"]).unwrap(), "done");
    sh(&place.workspace, "kill $(cat pid)");
}

#[test]
fn git_that_does_not_end_is_killed() {
    let place = Place::new("echo a > a");
    let git = place.git().with_setting("alias.x=!exec sleep 1000").with_timeout(Duration::from_millis(50));
    assert!(matches!(git.run(["x"]), Err(GitError::TimedOut { .. })));
    let git = place.git().with_limit(10);
    assert!(matches!(git.run(["log"]), Err(GitError::TooLarge { limit: 10, .. })));
}

#[test]
fn variables_of_another_repository_have_no_effect() {
    // The test runs itself with the variables that git gives to a hook.
    if std::env::var_os("CLIQ_TEST_INNER").is_none() {
        let other = Place::new("echo other > other");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "repositories::variables_of_another_repository_have_no_effect"])
            .env("CLIQ_TEST_INNER", "1");
        command.env("GIT_DIR", other.workspace.join(".git")).env("GIT_WORK_TREE", &other.workspace);
        command.env("GIT_INDEX_FILE", other.workspace.join(".git/index"));
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    git_in(dir.path()).run(["init", "--quiet"]).unwrap();
    let top = git_in(dir.path()).text(["rev-parse", "--show-toplevel"]).unwrap();
    assert_eq!(std::path::Path::new(&top), dir.path().canonicalize().unwrap());
}

#[test]
fn missing_directory_is_named() {
    let error = Git::new("/nowhere/at/all").run(["status"]).unwrap_err();
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

#[test]
fn uncommitted_changes_are_cut_at_the_limit_and_leave_the_index_alone() {
    let place = Place::new("seq 100 > a.txt");
    sh(&place.workspace, "seq 50 > a.txt; echo new > b.txt");
    let status = || sh(&place.workspace, "git status --porcelain");
    let before = status();
    let whole = cliq_git::uncommitted_changes(&place.git()).unwrap();
    assert_eq!(whole.numstat, b"0\t50\ta.txt\x001\t0\tb.txt\0");
    let cut = cliq_git::uncommitted_changes(&place.git().with_limit(200)).unwrap();
    assert_eq!((cut.numstat, &cut.patch[..]), (whole.numstat, &whole.patch[..200]));
    assert_eq!(status(), before);
}

#[test]
fn pinned_host_allows_no_other_transport() {
    let place = Place::new("echo x > a.txt");
    let into = place.top.join("copy");
    let url = place.workspace.to_str().unwrap();
    let address = std::net::IpAddr::from([127, 0, 0, 1]);
    let request = |host| CloneRequest { url, into: &into, branch: None, is_shallow: false, host };
    let git = Git::new(&place.top);
    let host = PinnedHost { name: "host.example", port: 443, address };
    let error = cliq_git::clone(&git, &request(Some(host))).unwrap_err();
    assert!(error.output().contains("not allowed"), "{error}");
    cliq_git::clone(&git, &request(None)).unwrap();
    assert!(into.join("a.txt").exists());
}
