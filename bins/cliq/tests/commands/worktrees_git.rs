//! Items in worktrees of repositories as people have them: conflicts without markers, submodules, sparse checkouts, hooks.

use std::process::Command;

use cliq_testkit::env::{Env, done};

/// Runs a script in the workspace and returns its output.
fn sh(env: &Env, script: &str) -> String {
    let mut command = Command::new("sh");
    command.args(["-euc", script]).current_dir(env.work()).env("GIT_ALLOW_PROTOCOL", "file");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "t").env(format!("GIT_{role}_EMAIL"), "t@t");
    }
    let output = command.output().expect("sh");
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// A repository made by a script, and a team of one phase whose items run a script.
fn project(setup: &str, items: &str, run: &str, resolver: Option<&str>) -> Env {
    let (field, support) = match resolver {
        None => ("", String::new()),
        Some(script) => (
            "      on_conflict: resolver\n",
            format!(
                "  support:\n    - {{name: resolver, type: exec, commands: [{{name: c, run: '{script}'}}]}}\n"
            ),
        ),
    };
    let workflow = format!(
        "workflow:\n  phases:\n    - name: work\n      type: exec\n      for_each: '{items}'\n      workspace: worktree\n{field}      commands: [{{name: c, run: '{run}'}}]\n{support}"
    );
    let env = Env::new(&workflow, &[]);
    env.write(".gitignore", ".cliq/\n.env\n");
    sh(&env, &format!("git init -q -b main\n{setup}\ngit add -A; git commit -qm base"));
    env
}

#[test]
fn binary_conflict_waits_until_a_side_is_taken() {
    let env = project("printf '\\000base' > logo.bin", "[0, 1]", r"printf \\000item$(item) > logo.bin", None);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("item 1 conflicts with those merged before it: logo.bin (binary file, changed on both sides)");
    assert_eq!(sh(&env, "git diff --name-only --diff-filter=U"), "logo.bin");
    env.cliq(["run", "--headless", "--resume"])
        .expect(3)
        .says("logo.bin (binary file, changed on both sides) is still in conflict with item 1");
    sh(&env, "git checkout -q --theirs logo.bin; git add logo.bin");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert!(env.read("logo.bin").ends_with("item1"));
    assert_eq!(sh(&env, "git status --porcelain"), " M logo.bin", "the index is as before");
}

#[test]
fn resolver_that_changes_nothing_resolves_nothing() {
    let run = "if test $(item) = 0; then rm note.txt; else echo changed > note.txt; fi";
    let env = project("echo base > note.txt", "[0, 1]", run, Some("true"));
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("note.txt (changed by the item, deleted before it) is still in conflict");
    let handoff = env.read(".cliq/channels/work--resolver/handoff.md");
    assert!(handoff.contains("- note.txt (changed by the item"), "{handoff}");
    // The file is right as it is.
    sh(&env, "git add note.txt");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(env.read("note.txt"), "changed\n");
}

#[test]
fn resolver_confirms_a_deleted_file() {
    let run = "if test $(item) = 1; then rm note.txt; else echo changed > note.txt; fi";
    let env =
        project("echo base > note.txt", "[0, 1]", run, Some("git rm -q --cached note.txt && rm note.txt"));
    env.cliq(["run", "--headless"]).expect(0).says("note.txt (deleted by the item, changed before it)");
    assert!(!env.exists("note.txt"));
}

#[test]
fn changes_in_a_submodule_come_back() {
    let setup = "git init -q -b main ../lib; (cd ../lib; echo lib > lib.txt; git add -A; git commit -qm lib)
        git submodule --quiet add ../lib lib; git -C lib checkout -q --detach";
    let run = "cat lib/lib.txt && echo $(item) >> lib/new-$(item).txt && cd lib && echo c > own-$(item).txt && git add own-$(item).txt && git -c user.name=a -c user.email=a@a commit -qm own-$(item)";
    let env = project(setup, r#"["a", "b"]"#, run, None);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(sh(&env, "ls lib"), "lib.txt\nnew-a.txt\nnew-b.txt\nown-a.txt\nown-b.txt");
    assert_eq!(sh(&env, "git -C lib log --format=%s --no-merges | sort"), "lib\nown-a\nown-b");
    assert_eq!(sh(&env, "git -C lib status --porcelain"), "?? new-a.txt\n?? new-b.txt");
}

#[test]
fn commits_that_stay_on_a_branch_of_a_submodule_are_named_and_not_green() {
    let setup = "git init -q -b main ../lib; (cd ../lib; echo lib > lib.txt; git add -A; git commit -qm lib)
        git submodule --quiet add ../lib lib; git -C lib checkout -q main";
    let run = "cd lib && echo c > own.txt && git add own.txt && git -c user.name=a -c user.email=a@a commit -qm own";
    let env = project(setup, "[0]", run, None);
    let end = env.cliq(["run", "--headless"]).expect(0).says("lib: commits are on the branch cliq/");
    end.says("left apart by a merge:");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["caveats"], serde_json::json!(["merge_losses"]), "{status}");
    env.cliq(["explain"]).expect(0).says("left apart by a merge:").says("commits are on the branch cliq/");
    assert_eq!(sh(&env, "ls lib; git -C lib log --format=%s"), "lib.txt\nown.txt\nlib");
}

#[test]
fn repository_made_by_an_item_fails_by_name() {
    let run =
        "git init -q made && cd made && git -c user.name=a -c user.email=a@a commit -q --allow-empty -m x";
    let env = project("echo a > a", "[0]", run, None);
    env.cliq(["run", "--headless"]).expect(3).says("item 0: cannot carry made back");
}

#[test]
fn sparse_checkout_is_merged() {
    let setup = "mkdir in out; echo i > in/i; echo o > out/o; git add -A; git commit -qm base; git sparse-checkout set in; echo n > in/n";
    let run = "echo $(item) > in/new-$(item) && mkdir -p out && echo $(item) > out/new-$(item)";
    let env = project(setup, "[0, 1]", run, None);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(sh(&env, "ls in out"), "in:\ni\nn\nnew-0\nnew-1\n\nout:\nnew-0\nnew-1");
}

#[test]
fn items_get_ignored_files_that_worktreeinclude_names() {
    let env = project("echo .env > .worktreeinclude; echo key > .env", "[0]", "cat .env > got.txt", None);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read("got.txt"), "key\n");
}

#[test]
fn run_started_by_a_hook_works_on_its_own_repository() {
    let run = "git rev-parse --show-toplevel > top.txt; env | grep -cE \"^GIT_(DIR|INDEX_FILE|WORK_TREE|PREFIX)=\" > count.txt; echo x > item.txt; git add -A; git -c user.name=a -c user.email=a@a commit -qm item";
    let env = project("echo a > a.txt", "[0]", run, None);
    let head = sh(&env, "git rev-parse HEAD");
    let mut command = env.command(["run", "--headless"]);
    let git_dir = env.work().join(".git");
    command
        .env("GIT_DIR", &git_dir)
        .env("GIT_INDEX_FILE", git_dir.join("index"))
        .env("GIT_WORK_TREE", env.work());
    command.env("GIT_PREFIX", "");
    done(&command.output().expect("cliq")).expect(0);
    assert_eq!(sh(&env, "git rev-parse HEAD"), head, "the agent's commit is not on the person's branch");
    assert!(env.read("top.txt").trim_end().ends_with(".cliq/worktrees/work.0"), "{}", env.read("top.txt"));
    assert_eq!(env.read("count.txt"), "0\n");
}

#[test]
fn unfinished_merge_of_the_person_is_refused_by_name() {
    let setup = "echo base > a.txt; git add -A; git commit -qm one; git checkout -qb x; echo x > a.txt; git commit -qam x; git checkout -q main; echo y > a.txt";
    let env = project(setup, "[0]", "echo z > z.txt", None);
    sh(&env, "git merge -q x || true");
    env.cliq(["run", "--headless"]).expect(3).says("unresolved conflicts, one in a.txt");
}
