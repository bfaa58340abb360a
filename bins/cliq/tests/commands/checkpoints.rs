//! `cliq diff`, `cliq checkpoint` and `cliq run --restore`.

use std::process::Command;

use cliq_testkit::env::Env;
use serde_json::Value;

const WORKFLOW: &str = "workflow:
  phases:
    - {name: one, type: exec, commands: [{name: c, run: 'echo first > a.txt; echo kept > b.txt'}]}
    - {name: two, type: exec, depends_on: [one], commands: [{name: c, run: 'echo second >> a.txt; rm b.txt'}]}
    - {name: items, type: exec, depends_on: [two], for_each: '[1, 2]', max_parallel: 1, commands: [{name: c, run: 'echo $(item) > item-$(index).txt'}]}
";

fn project() -> Env {
    let env = Env::new(WORKFLOW, &[]);
    for args in [&["init", "-q"][..], &["config", "user.email", "a@b.c"], &["config", "user.name", "a"]] {
        assert!(Command::new("git").args(args).current_dir(env.work()).status().expect("git").success());
    }
    env
}

#[test]
fn diffs_of_a_run_a_phase_an_item_and_an_activation() {
    let env = project();
    env.cliq(["run", "--headless"]).expect(0);
    let whole = env.cliq(["diff"]).expect(0).stdout;
    assert!(
        whole.contains("+++ b/a.txt") && whole.contains("+second") && !whole.contains("\u{1b}"),
        "{whole}"
    );
    let two = env.cliq(["diff", "two"]).expect(0).stdout;
    assert!(two.contains("two, activation 1") && two.contains("+second") && !two.contains("+first"), "{two}");
    let item = env.cliq(["diff", "items.1", "--json"]).expect(0).json();
    let changes = item["activations"][0]["changes"].as_array().expect("changes").clone();
    assert_eq!(
        changes.iter().map(|change| change["path"].as_str()).collect::<Vec<_>>(),
        [Some("item-1.txt")]
    );
    env.cliq(["diff", "items", "--stat"]).expect(0).says("items.0, activation 1").says("item-1.txt | 1 +");
    env.cliq(["diff", "one.1"]).expect(0).says("+kept");
    env.cliq(["diff", "three"]).expect(1).says("the last run has no checkpoint of `three`").says("items.0");
    let list = env.cliq(["checkpoint", "list", "--json"]).expect(0).json();
    assert_eq!(list["checkpoints"].as_array().map(Vec::len), Some(8));
    env.cliq(["checkpoint", "list"]).expect(0).says("before one 1").says("after items.1 1");
}

#[test]
fn the_size_of_the_changes_is_recorded() {
    let env = project();
    env.write("image.bin", "\0\0");
    env.cliq(["run", "--headless"]).expect(0);
    // a.txt has two lines, each item a file of one line; b.txt came and went.
    let changed = serde_json::json!({"files": 3, "lines_added": 4, "lines_removed": 0});
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["changed"], changed);
    env.cliq(["status"]).expect(0).says("changed: 3 files, +4 -0");
    let titles: Vec<_> =
        status["phases"].as_array().expect("phases").iter().map(|p| p["title"].as_str()).collect();
    assert_eq!(titles, [None, None, None, Some("1"), Some("2")]);
    let recorded = |event: &Value| (event["event"] == "workspace_changed").then(|| event["changed"].clone());
    let journal = env.read(".cliq/journal.jsonl");
    let events = journal.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    let sizes: Vec<Value> = events.filter_map(|event| recorded(&event)).collect();
    assert_eq!(sizes.last(), Some(&changed));
    assert_eq!(sizes.len(), 4, "each activation changed something: {sizes:?}");

    // A run that changes nothing has none.
    let nothing = Env::new(
        "workflow:\n  phases:\n    - {name: one, type: exec, commands: [{name: c, run: 'true'}]}\n",
        &[],
    );
    assert!(
        Command::new("git").args(["init", "-q"]).current_dir(nothing.work()).status().expect("git").success()
    );
    nothing.cliq(["run", "--headless"]).expect(0);
    assert!(!nothing.read(".cliq/journal.jsonl").contains("workspace_changed"));
}

#[test]
fn restoring_goes_back_to_before_a_phase_and_can_be_undone() {
    let env = project();
    env.cliq(["run", "--headless"]).expect(0);
    env.write("by-hand.txt", "precious");
    let refused = env.cliq(["run", "--headless", "--from", "two", "--restore"]).expect(4);
    assert!(refused.stdout.contains("by-hand.txt is removed") && refused.stdout.contains("b.txt comes back"));
    assert!(env.exists("by-hand.txt"), "nothing was restored yet");
    let again = env.cliq(["run", "--headless", "--from", "two", "--restore", "--yes"]).expect(0);
    let undo = again.stdout.split("`cliq checkpoint restore ").nth(1).and_then(|rest| rest.split('`').next());
    assert!(!env.exists("by-hand.txt") && !env.exists("b.txt"));
    assert_eq!(env.read("a.txt"), "first\nsecond\n", "`two` ran once on the state before it");
    env.cliq(["checkpoint", "restore", undo.expect("a number"), "--yes"]).expect(0);
    assert_eq!(env.read("by-hand.txt"), "precious");
    env.cliq(["checkpoint", "restore", "999", "--yes"]).expect(1).says("there is no checkpoint 999");
}

#[test]
fn workspaces_without_a_repository_say_so() {
    let env = Env::new(WORKFLOW, &[]);
    env.cliq(["run", "--headless"]).expect(0);
    assert!(!env.exists(".cliq/checkpoints.git"));
    env.cliq(["diff"]).expect(1).says("is not a git repository").says("checkpoints.always");
    env.cliq(["settings", "set", "checkpoints.always", "true"]).expect(0);
    env.cliq(["run", "--headless", "-f"]).expect(0);
    env.cliq(["diff", "two"]).expect(0).says("+second");
    env.cliq(["settings", "set", "checkpoints.enabled", "false"]).expect(0);
    env.cliq(["diff"]).expect(1).says("the setting `checkpoints.enabled` is false");
}

#[test]
fn repository_of_the_project_is_not_touched_by_a_run() {
    let env = project();
    let read = |path: &str| std::fs::read(env.path(path)).ok();
    env.write("tracked.txt", "t");
    assert!(
        Command::new("git")
            .args(["add", "tracked.txt"])
            .current_dir(env.work())
            .status()
            .expect("git")
            .success()
    );
    let before = [read(".git/index"), read(".git/config"), read(".git/HEAD")];
    env.cliq(["run", "--headless"]).expect(0);
    env.cliq(["run", "--headless", "--from", "one", "--restore", "--yes"]).expect(0);
    assert_eq!([read(".git/index"), read(".git/config"), read(".git/HEAD")], before);
    assert!(!env.exists(".git/refs/kept"));
}

#[test]
fn checkpoints_of_parallel_phases_do_not_disturb_each_other() {
    let phases: String = (0..12)
        .map(|n| {
            format!("    - {{name: p{n}, type: exec, commands: [{{name: c, run: 'echo {n} > f{n}.txt'}}]}}\n")
        })
        .collect();
    let env = Env::new(&format!("workflow:\n  phases:\n{phases}"), &[]);
    assert!(
        Command::new("git").args(["init", "-q"]).current_dir(env.work()).status().expect("git").success()
    );
    let run = env.cliq(["run", "--headless"]).expect(0);
    assert!(!run.stdout.contains("no checkpoint was taken"), "{}", run.stdout);
    let list: Value = env.cliq(["checkpoint", "list", "--json"]).expect(0).json();
    assert_eq!(list["checkpoints"].as_array().map(Vec::len), Some(24));
    for n in 0..12 {
        env.cliq(["diff"]).expect(0).says(&format!("b/f{n}.txt"));
    }
}
