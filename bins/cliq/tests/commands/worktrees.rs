//! Items in worktrees: merges, conflicts, kills.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use cliq_testkit::env::{Env, done, print_note};

const PLANNER: &str = r#"ok
sleep 0.02
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"plan","phase":"plan","phase_type":"standard","agent":"x","timestamp":"2026-01-01T00:00:00.000Z","text":"t","data":{"findings":'$(cat findings.json)'}}'; done
complete
"#;

fn git(env: &Env, args: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.email=a@b.c", "-c", "user.name=a"]).args(args).current_dir(env.work());
    let output = command.output().expect("git");
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Every file of the workspace outside of `.git` and `.cliq`.
fn files(env: &Env) -> BTreeMap<String, String> {
    let mut pending = vec![env.work()];
    let mut files = BTreeMap::new();
    while let Some(dir) = pending.pop() {
        for entry in std::fs::read_dir(dir).expect("listed").flatten() {
            let path = entry.path();
            if path.ends_with(".git") || path.ends_with(".cliq") {
            } else if path.is_dir() {
                pending.push(path);
            } else {
                let name = path.strip_prefix(env.work()).expect("inside").to_string_lossy().into_owned();
                files.insert(name, std::fs::read_to_string(path).expect("text"));
            }
        }
    }
    files
}

/// A repository with a file of code, in which each finding is far from the next, and with uncommitted files.
fn project(workflow: &str, findings: usize) -> Env {
    let env = Env::new(workflow, &[("planner", PLANNER)]);
    let code: String = (0..findings).map(|n| format!("bug {n}\n{}", "same\n".repeat(8))).collect();
    env.write("src/code.txt", &code);
    let list: Vec<String> = (0..findings).map(|n| format!(r#"{{"line":"bug\u0020{n}","n":{n}}}"#)).collect();
    env.write("findings.json", &format!("[{}]", list.join(",")));
    env.write(".gitignore", ".cliq/\nran\n");
    git(&env, &["init", "-q", "-b", "main"]);
    git(&env, &["add", "."]);
    git(&env, &["commit", "-qm", "first"]);
    env.write("uncommitted.txt", "by hand\n");
    env
}

fn fixes(findings: usize) -> String {
    format!(
        "workflow:
  phases:
    - {{name: plan, type: standard, agent: planner}}
    - name: fix
      type: exec
      depends_on: [plan]
      for_each: handoff.plan.findings
      max_items: {findings}
      max_parallel: 4
      workspace: worktree
      commands:
        - {{name: edit, run: 'test -e uncommitted.txt && sed -i \"s/^bug $(item.n)$/fixed $(item.n)/\" src/code.txt'}}
        - {{name: note, run: 'sleep 0.01; echo \"$(item.n)\" >> notes-$(index).txt'}}
    - {{name: docs, type: exec, depends_on: [plan, fix], when: size(handoff.plan.findings) > 1000, commands: [{{name: c, run: echo docs > docs.txt}}]}}
    - {{name: end, type: exec, depends_on: [fix, docs], commands: [{{name: c, run: '! grep -q bug src/code.txt'}}]}}
"
    )
}

#[test]
fn fixes_in_worktrees_are_merged_and_the_repository_stays() {
    let env = project(&fixes(6), 6);
    let head = git(&env, &["rev-parse", "HEAD"]);
    env.cliq(["run", "--headless"]).expect(0).says("fix: started with 6 items");
    let files = files(&env);
    assert_eq!(files["src/code.txt"].matches("fixed").count(), 6);
    assert_eq!(
        (0..6).map(|n| files[&format!("notes-{n}.txt")].clone()).collect::<String>(),
        "0\n1\n2\n3\n4\n5\n"
    );
    assert_eq!(git(&env, &["rev-parse", "HEAD"]), head);
    assert_eq!(git(&env, &["branch", "--list", "cliq/*"]), "");
    assert_eq!(git(&env, &["diff", "--cached", "--name-only"]), "", "the index stays");
    assert_eq!(git(&env, &["worktree", "list"]).lines().count(), 1);
    let item = env.cliq(["diff", "fix.3"]).expect(0).stdout;
    assert!(
        item.contains("+fixed 3") && item.contains("b/notes-3.txt") && !item.contains("+fixed 2"),
        "{item}"
    );
}

#[test]
fn killed_runs_with_worktrees_end_like_undisturbed_ones() {
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let kills = number("CLIQ_TEST_KILLS").unwrap_or(15);
    let findings = number("CLIQ_TEST_FINDINGS").unwrap_or(12) as usize;
    let undisturbed = project(&fixes(findings), findings);
    undisturbed.cliq(["run", "--headless"]).expect(0);
    let expected = files(&undisturbed);
    let mut seed = std::time::UNIX_EPOCH.elapsed().map_or(1, |t| t.as_nanos() as u64) | 1;
    print_note(&format!("seed {seed}"));
    let mut below = |limit: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % limit
    };
    let mut killed = 0;
    while killed < kills {
        let env = project(&fixes(findings), findings);
        for _ in 0..=below(5) {
            let how = if env.has_text(".cliq/journal.jsonl") { "--resume" } else { "-f" };
            let mut run = env.spawn(["run", "--headless", how]);
            std::thread::sleep(Duration::from_millis(below(900)));
            run.kill().expect("killed");
            let end = done(&run.wait_with_output().expect("it ends"));
            if end.code != -1 {
                break;
            }
            killed += 1;
        }
        let how = if env.has_text(".cliq/journal.jsonl") { "--resume" } else { "-f" };
        let end = env.cliq(["run", "--headless", how]);
        assert!(end.code == 0 || end.stderr.contains("nothing left to resume"), "{end:?}");
        assert_eq!(files(&env), expected, "{}", env.read(".cliq/orchestrator.log"));
        assert_eq!(git(&env, &["worktree", "list"]).lines().count(), 1);
        assert_eq!(git(&env, &["branch", "--list", "cliq/*"]), "");
        assert_eq!(env.left_over(), Vec::<String>::new());
    }
}

const CONFLICT: &str = "workflow:
  phases:
    - name: work
      type: exec
      for_each: '[\"a\", \"b\", \"c\"]'
      workspace: worktree
      RESOLVER
      commands: [{name: c, run: 'echo $(item) > word.txt; echo $(item) > own-$(item).txt'}]
    - {name: end, type: exec, depends_on: [work], commands: [{name: c, run: '! grep -q \"<<<<\" word.txt'}]}
  support:
    - {name: resolver, type: exec, commands: [{name: c, run: 'echo x >> ran; grep -q \"has to be confirmed\" .cliq/channels/work--resolver/handoff.md && grep -hE \"^[a-c]+$\" word.txt | sort -u | tr -d \"\\n\" > w && echo >> w && mv w word.txt'}]}
";

#[test]
fn support_phase_resolves_conflicts_and_the_merge_continues() {
    let env = project(&CONFLICT.replace("RESOLVER", "on_conflict: resolver"), 1);
    env.cliq(["team", "validate", "../team"]).expect(0).says("activations");
    env.cliq(["run", "--headless"])
        .expect(0)
        .says("work: item 1 conflicts with those merged before it: word.txt");
    assert_eq!(env.read("word.txt"), "abc\n");
    assert_eq!(env.read("ran").lines().count(), 2);
    assert!(["a", "b", "c"].iter().all(|name| env.exists(&format!("own-{name}.txt"))));
}

#[test]
fn conflict_without_a_resolver_waits_for_a_person() {
    let workflow = CONFLICT.replace("      RESOLVER\n", "");
    let workflow = workflow.split("  support:").next().unwrap_or_default().to_owned();
    let env = project(&workflow, 1);
    env.cliq(["run", "--headless"]).expect(3).says(
        "item 1 conflicts with those merged before it: word.txt (added on both sides); resolve the conflict",
    );
    assert!(env.read("word.txt").contains("<<<<<<<"));
    env.cliq(["run", "--headless", "--resume"])
        .expect(3)
        .says("word.txt (added on both sides) is still in conflict with item 1");
    env.write("word.txt", "mine\n");
    env.cliq(["run", "--headless", "--resume"]).expect(3).says("item 2 conflicts");
    env.write("word.txt", "all\n");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(env.read("word.txt"), "all\n");
}

#[test]
fn worktrees_need_a_repository() {
    let env = Env::new(&fixes(1), &[("planner", PLANNER)]);
    env.write("findings.json", r#"[{"n":0}]"#);
    env.cliq(["run", "--headless"]).expect(3).says("`workspace: worktree` needs a git repository");
}

/// Only items have activations: the phase itself has none.
#[test]
fn failed_phase_that_starts_again_has_new_worktrees() {
    let workflow = "workflow:
  phases:
    - name: work
      type: exec
      for_each: '[\"a\", \"b\"]'
      workspace: worktree
      commands: [{name: c, run: 'cat ready.txt > own-$(item).txt'}]
";
    let env = project(workflow, 1);
    env.cliq(["run", "--headless"]).expect(3);
    // As a git does that is killed.
    env.write(".git/worktrees/work.0/index.lock", "");
    env.cliq(["run", "--headless", "--resume"]).expect(3).says("command `c` failed");
    env.write("ready.txt", "now\n");
    env.write(".git/worktrees/work.1/index.lock", "");
    env.cliq(["run", "--headless", "--resume", "--from", "work"]).expect(0).says("work: is to be done again");
    assert_eq!((env.read("own-a.txt"), env.read("own-b.txt")), ("now\n".to_owned(), "now\n".to_owned()));
}
