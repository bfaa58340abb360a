//! The queue from outside: emitting, listing, retrying; files; a daemon that processes them.

use std::fs;

use cliq_testkit::daemon::{daemon, project};
use cliq_testkit::env::{Env, done};
use serde_json::{Value, json};

fn list(env: &Env, args: &[&str]) -> Vec<Value> {
    let args = [&["signal", "list", "--json"], args].concat();
    env.cliq(args).expect(0).json()["signals"].as_array().expect("a list").clone()
}

#[test]
fn list_shows_files_that_wait_for_the_daemon() {
    let env = project();
    let inbox = env.work().join(".cliq/signals/inbox");
    fs::create_dir_all(&inbox).unwrap();
    fs::write(inbox.join("review-changes-requested-my-plan"), "fix it").unwrap();
    fs::write(inbox.join("notes.txt"), "").unwrap();
    let worktree = env.work().join(".worktrees/w/.cliq/signals/inbox");
    fs::create_dir_all(&worktree).unwrap();
    fs::write(worktree.join("readiness-approved-other"), "").unwrap();
    env.cliq(["signal", "list"])
        .expect(0)
        .says("review_changes_requested for my-plan")
        .says("verify_approved for other")
        .says("notes.txt")
        .says("is not the name of a signal file")
        .says("cliq daemon start");
    let document = env.cliq(["signal", "list", "--plan", "my-plan", "--json"]).expect(0).json();
    let files = document["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(
        (&files[0]["type"], &files[0]["plan"]),
        (&json!("review_changes_requested"), &json!("my-plan"))
    );
    assert!(inbox.join("notes.txt").exists(), "nothing is moved");
    env.cliq(["signal", "list", "--status", "done"]).expect(0).says("no signals");
}

#[test]
fn emitted_signals_are_validated_and_normalized() {
    let env = project();
    for (kind, payload, stored, expected) in [
        ("implement-finished", "", "implement_finished", Value::Null),
        ("review_changes", "fix it", "review_changes_requested", json!({"body": "fix it"})),
        ("master_approved", "", "verify_approved", Value::Null),
        ("readiness-changes-requested", "no", "verify_failed", json!({"body": "no"})),
        ("architect_finished", "", "elaborator_finished", Value::Null),
        (
            "implement_task_finished",
            r#"{"wave_number":2,"task_number":3,"x":[1]}"#,
            "implement_task_finished",
            json!({"wave_number": 2, "task_number": 3, "x": [1]}),
        ),
    ] {
        env.cliq(["signal", "emit", kind, "my-plan", "--payload", payload])
            .expect(0)
            .says(stored)
            .says("there is no plan `my-plan`");
        let last = list(&env, &[]).pop().unwrap();
        assert_eq!(
            (last["type"].as_str(), &last["payload"], last["status"].as_str()),
            (Some(stored), &expected, Some("pending"))
        );
        assert_eq!((last["plan"].as_str(), last["project"].as_str()), (Some("my-plan"), env.work().to_str()));
    }
    let before = list(&env, &[]).len();
    for (kind, plan, payload, says) in [
        ("implement_finish", "p", "", "did you mean `implement_finished`?"),
        ("cancel", "p", "", "`cliq plan cancel PLAN`"),
        ("implement_wave", "p", "", "`wave_number`, a whole number from 1 on"),
        ("implement_wave", "p", r#"{"wave_number":0}"#, "`wave_number`"),
        ("implement_wave", "p", r#"{"wave_number":1.5}"#, "`wave_number`"),
        ("implement_task_finished", "p", r#"{"wave_number":1}"#, "`task_number`"),
        ("elaborator_finished", "p", "text", "takes no payload"),
        ("planner_draft_finished", "p", "", "`planner_id`"),
        ("plan_start", "../p", "", "is not a valid plan name"),
        ("nothing", "a b", "", "a letter or digit"),
    ] {
        env.cliq(["signal", "emit", kind, plan, "--payload", payload]).expect(2).says(says);
    }
    assert_eq!(list(&env, &[]).len(), before, "what is refused is not there");
    env.cliq(["signal", "show", "99"]).expect(2).says("there is no signal 99");
    env.cliq(["signal", "show", "2"]).expect(0).says("fix it").says("review_changes_requested");
    env.cliq(["signal", "retry", "2"]).expect(4).says("only failed ones");
    env.cliq(["signal", "emit", "plan_start", "p", "--project", "elsewhere"]).expect(0);
    assert_eq!(list(&env, &["--project", "elsewhere"]).len(), 1);
    assert_eq!(list(&env, &["--all"]).len(), before + 1);
    assert_eq!(list(&env, &["--status", "done"]).len(), 0);
    env.cliq(["signal", "history", "--limit", "2"]).expect(0).says("elaborator_finished");
}

#[test]
fn files_of_the_project_and_of_its_worktrees_come_in() {
    let env = project();
    env.write("ship.md", "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo it.\n");
    env.cliq(["plan", "add", "ship.md"]).expect(0);
    let inbox = ".cliq/signals/inbox";
    env.write(&format!("{inbox}/review-changes-ship"), "too early");
    env.write(&format!("{inbox}/notes.txt"), "what is this");
    env.write(&format!(".worktrees/w/{inbox}/implement-wave-9-ship"), "");
    env.write(&format!("{inbox}/processing/verify-failed-ship"), "left by a crash");
    let _daemon = daemon(&env);
    env.wait_for("all of them", || list(&env, &["--status", "failed"]).len() == 3);
    let mut results: Vec<(String, String)> = list(&env, &["--status", "failed"])
        .iter()
        .map(|s| (s["type"].as_str().unwrap().to_owned(), s["result"].as_str().unwrap().to_owned()))
        .collect();
    results.sort();
    let row = |kind: &str, result: &str| (kind.to_owned(), result.to_owned());
    assert_eq!(
        results,
        [
            row("implement_wave", "wave 9 cannot start: no wave has started yet, so the next one is 1"),
            row("review_changes_requested", "review_changes_requested does not fit a plan that is ready"),
            row("verify_failed", "verify_failed does not fit a plan that is ready"),
        ]
    );
    assert!(
        env.read(&format!("{inbox}/failed/notes.txt.reason")).contains("is not the name of a signal file")
    );
    for dir in [inbox.to_owned(), format!("{inbox}/processing"), format!(".worktrees/w/{inbox}")] {
        let left = fs::read_dir(env.path(&dir))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().file_type().unwrap().is_file());
        assert_eq!(left.count(), 0, "{dir}");
    }
    assert_eq!(
        env.cliq(["plan", "status", "ship", "--json"]).expect(0).json()["state"],
        "ready",
        "nothing has changed"
    );
    // What has failed can be tried again, once it fits.
    let id = list(&env, &["--status", "failed"])[0]["id"].to_string();
    env.cliq(["signal", "retry", &id]).expect(0).says("pending again");
    env.wait_for("it", || list(&env, &["--status", "failed"]).len() == 3);
    env.cliq(["signal", "emit", "plan_start", "nobody"]).expect(0);
    env.wait_for("the refusal", || list(&env, &["--plan", "nobody", "--status", "failed"]).len() == 1);
    env.cliq(["signal", "list", "--plan", "nobody"]).expect(0).says("there is no plan `nobody`");
}

/// A database that is not as it should be: a clear error, and nothing lost.
#[test]
fn troubles_of_the_database() {
    let env = project();
    env.cliq(["signal", "emit", "plan_start", "p"]).expect(0);
    let database = env.home().join("cliq.db");
    let files = ["cliq.db", "cliq.db-wal", "cliq.db-shm"].map(|name| env.home().join(name));
    let kept = files.each_ref().map(|file| fs::read(file).ok());
    for file in &files[1..] {
        let _ = fs::remove_file(file);
    }
    fs::write(&database, "not a database, however long this text may be, it is none. ".repeat(20)).unwrap();
    env.cliq(["signal", "list"])
        .expect(1)
        .says("cliq.db is damaged, or is not a database")
        .says("nothing was changed");
    env.cliq(["daemon", "run"]).expect(1).says("cliq.db is damaged");
    env.cliq(["daemon", "start"]).expect(1).says("cliq.db is damaged");
    for (file, bytes) in files.iter().zip(kept) {
        let _ = bytes.map(|bytes| fs::write(file, bytes).unwrap());
    }
    assert_eq!(list(&env, &[]).len(), 1);
}

/// A home that cannot be written, and one that is full: what was there stays, and nothing is there by half.
#[test]
fn troubles_of_the_disk() {
    let env = project();
    let script = "mount -t tmpfs -o size=1200k tmpfs \"$CLIQ_HOME\"
        emit() { timeout 60 \"$1\" signal emit plan_start p --payload \"$2\" 2>&1; echo \"code $?\"; }
        emit \"$1\" first; mount -o remount,ro \"$CLIQ_HOME\"; emit \"$1\" second
        mount -o remount,rw \"$CLIQ_HOME\"; dd if=/dev/zero of=\"$CLIQ_HOME/big\" bs=1k 2>/dev/null
        emit \"$1\" \"$(head -c 50000 /dev/zero | tr '\\0' x)\"; rm \"$CLIQ_HOME/big\"; emit \"$1\" fourth
        timeout 60 \"$1\" signal list --json";
    std::fs::create_dir_all(env.home()).unwrap();
    let Some(mut command) = crate::commands::resume::in_own_mounts(&env, script) else { return };
    let done = done(&command.output().unwrap()).expect(0);
    let done = done.says("cannot be written; nothing was changed").says("disk full");
    let (codes, list) = done.stdout.split_once("{\n").expect("a list");
    let codes: Vec<&str> = codes.lines().filter_map(|line| line.strip_prefix("code ")).collect();
    assert_eq!(codes, ["0", "1", "1", "0"], "{done:?}");
    let list: Value = serde_json::from_str(&format!("{{\n{list}")).unwrap();
    let bodies: Vec<&str> =
        list["signals"].as_array().unwrap().iter().map(|s| s["payload"]["body"].as_str().unwrap()).collect();
    assert_eq!(bodies, ["first", "fourth"]);
}
