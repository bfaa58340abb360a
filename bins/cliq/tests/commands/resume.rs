//! Resuming a run: what completed is not run again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use cliq_testkit::env::{Env, done};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::commands::watchdog::kill_unwatched;

const CHAIN: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: exec, depends_on: [a], commands: [{name: t, run: 'echo b | tee -a ran; test -f ready'}]}
    - {name: c, type: standard, agent: x, depends_on: [b]}
    - {name: d, type: standard, agent: x, depends_on: [a]}
";
const AGENT: &str = "ok\necho $CLIQ_PHASE >> ran\ncomplete\n";

fn ran(env: &Env, phase: &str) -> usize {
    env.read("ran").lines().filter(|line| *line == phase).count()
}

#[test]
fn after_an_escalation() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3).says("cliq run --resume");
    env.cliq(["run"]).expect(4).says("cliq run --resume");
    env.write("ready", "");
    env.cliq(["run", "--resume"]).expect(0).says("COMPLETED");
    assert_eq!(["a", "b", "c", "d"].map(|phase| ran(&env, phase)), [1, 2, 1, 1]);
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), "COMPLETED");
    env.cliq(["run", "--resume"]).expect(4).says("nothing left to resume").says("--from PHASE");
}

#[test]
fn from_a_phase_on() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.write("ready", "");
    env.cliq(["run"]).expect(0);
    env.cliq(["run", "--from", "b"]).expect(0);
    assert_eq!(["a", "b", "c", "d"].map(|phase| ran(&env, phase)), [1, 2, 2, 1]);
    assert_eq!(env.phases()["b"], ("completed".to_owned(), 2));
    assert!(env.exists(".cliq/logs/b.1.1-t.log") && env.exists(".cliq/logs/b.2.1-t.log"), "no log is lost");
    env.cliq(["run", "--from", "bb"]).expect(2).says("no phase `bb`").says("did you mean `b`?");
    env.cliq(["run", "--from", "b", "-f"]).expect(2);
}

#[test]
fn after_a_cancellation_with_the_inputs_of_the_beginning() {
    let workflow = "inputs: [{name: who}]
workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: b, type: exec, depends_on: [a], commands: [{name: t, run: 'touch b; test -f ready || sleep 1000; echo \"$(inputs.who)\" > who'}]}
";
    let env = Env::new(workflow, &[("x", AGENT)]);
    let run = env.spawn(["run", "--headless", "--input", "who=it's me"]);
    env.wait_for("b", || env.exists("b"));
    env.cliq(["cancel"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(130).says("cliq run --resume");
    env.write("ready", "");
    env.cliq(["run", "--resume", "--input", "who=you"]).expect(2);
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!((env.read("who").trim(), ran(&env, "a")), ("it's me", 1));
}

#[test]
fn completed_but_unprocessed_phase_is_not_rerun() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: x, depends_on: [a]}\n",
        &[(
            "x",
            "ok\necho $CLIQ_PHASE >> ran\nwhile [ ! -f go ]; do sleep 0.02; done\ncomplete\ntouch said\n",
        )],
    );
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("a", || env.has_text("ran"));
    // It sees nothing more.
    let orchestrator = Pid::from_raw(run.id() as i32).unwrap();
    kill_process(orchestrator, Signal::STOP).unwrap();
    env.write("go", "");
    env.wait_for("the agent's last word", || env.exists("said"));
    run.kill().unwrap();
    run.wait().unwrap();
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(["a", "b"].map(|phase| ran(&env, phase)), [1, 1]);
}

#[test]
fn nothing_of_the_dead_run_lives_on() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n",
        &[("x", "ok\necho a >> ran\n[ -f go ] || { setsid sleep 1000 & sleep 1000; }\ncomplete\n")],
    );
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("a", || env.has_text("ran"));
    kill_unwatched(&env, &mut run);
    assert!(!env.left_over().is_empty(), "the agent outlives its orchestrator");
    env.write("go", "");
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(env.left_over(), Vec::<String>::new());
    assert_eq!(ran(&env, "a"), 2);
}

#[test]
fn a_gate_that_spent_its_budget_begins_with_a_new_one() {
    let workflow = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - {name: g, type: gate, agent: rules, depends_on: [a], max_iterations: 2, commands: [{name: t, run: test -f ready}]}
";
    let env = Env::new(workflow, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    assert_eq!(ran(&env, "a"), 2);
    env.write("ready", "");
    env.cliq(["run", "--resume"]).expect(0);
    let journal = env.read(".cliq/journal.jsonl");
    let verdict = journal.lines().rfind(|line| line.contains("\"event\":\"verdict\"")).unwrap();
    assert!(verdict.contains("\"iteration\":1,\"max_iterations\":2"), "{verdict}");
    assert_eq!(ran(&env, "a"), 2);
}

#[test]
fn a_team_that_changed_cannot_be_gone_on_with() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    env.team(&CHAIN.replace("depends_on: [b]", "depends_on: [a]"), &[("x", AGENT)]);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--resume"]).expect(4).says("have changed since the run began").says("cliq run -f");
    env.team(CHAIN, &[("x", AGENT)]);
    env.write("../team/roles/a.md", "Another role.");
    env.cliq(["assemble", "../team"]).expect(0);
    env.write("ready", "");
    env.cliq(["run", "--resume"]).expect(0);
}

#[test]
fn there_must_be_something_to_resume() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.cliq(["run", "--resume"]).expect(4).says("there is no run to resume").says("`cliq run` starts one");
    env.write(".cliq/journal.jsonl", "");
    env.cliq(["run", "--resume"]).expect(4).says("there is no run to resume");
}

#[test]
fn torn_broken_and_newer_journals() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    let journal = env.read(".cliq/journal.jsonl");
    env.write("ready", "");

    let newer = journal.replacen("\"version\":1", "\"version\":3", 1);
    env.write(".cliq/journal.jsonl", &newer);
    for command in [&["run", "--resume"][..], &["status"], &["run"]] {
        env.cliq(command).expect(1).says("journal.jsonl").says("version 3");
    }
    assert_eq!(env.read(".cliq/journal.jsonl"), newer, "it is left as it is");

    let broken = journal.replacen("\"event\":\"agent_completed\"", "\"event\":agent_completed", 1);
    let line = 1 + broken.lines().position(|line| line.contains("\"event\":agent_completed")).unwrap();
    env.write(".cliq/journal.jsonl", &broken);
    env.cliq(["run", "--resume"]).expect(1).says(&format!("journal.jsonl, line {line}")).says("cliq clean");

    // Torn within the line that says that `a` completed: that did not happen, but its signal channel says so.
    let at = journal.find("\"event\":\"agent_completed\"").unwrap();
    env.write(".cliq/journal.jsonl", &journal[..at]);
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(ran(&env, "a"), 1);
    for line in env.read(".cliq/journal.jsonl").lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    }
}

/// A command in a mount namespace of its own, where this is allowed. `None` if it is not.
pub(crate) fn in_own_mounts(env: &Env, script: &str) -> Option<Command> {
    let flags = ["-m", "-rm"].into_iter().find(|flags| {
        let mut probe = Command::new("unshare");
        probe.args([*flags, "sh", "-c", "mount -t tmpfs -o size=64k tmpfs /mnt"]).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    let Some(flags) = flags else {
        cliq_testkit::not_run("mounting is not allowed here");
        return None;
    };
    let cliq = env.command([""; 0]);
    let mut command = Command::new("unshare");
    command.args([flags, "sh", "-c", script, "sh"]).arg(cliq.get_program());
    for (key, value) in cliq.get_envs() {
        match value {
            Some(value) => command.env(key, value),
            None => command.env_remove(key),
        };
    }
    command.current_dir(env.work()).stdin(Stdio::null());
    Some(command)
}

#[test]
fn a_full_disk_fails_the_run_and_loses_nothing() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: y, depends_on: [a]}\n    - {name: c, type: standard, agent: x, depends_on: [b]}\n",
        &[
            ("x", "ok\necho $CLIQ_PHASE >> ran\ncomplete\n"),
            // Fills the disk, which is where the journal lives too, and then succeeds.
            (
                "y",
                "ok\necho $CLIQ_PHASE >> ran\n[ -f ../ready ] || dd if=/dev/zero of=$CLIQ_DIR/big bs=1k 2>/dev/null\ncomplete\n",
            ),
        ],
    );
    let script =
        "set -e; cp -a .cliq ../saved; mount -t tmpfs -o size=400k tmpfs .cliq; cp -a ../saved/. .cliq
        set +e; timeout 60 \"$1\" run --headless; echo \"first $?\"
        rm -f .cliq/big; touch ../ready
        timeout 60 \"$1\" status; timeout 60 \"$1\" run --resume --headless; echo \"second $?\"";
    let Some(mut command) = in_own_mounts(&env, script) else { return };
    let done = done(&command.output().unwrap()).expect(0);
    let done = done.says("first 1").says("No space left on device").says("second 0");
    assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
    assert_eq!((ran(&env, "a"), ran(&env, "c")), (1, 1), "{done:?}");
}

#[test]
fn a_read_only_project_is_reported_before_anything_starts() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    env.cliq(["run"]).expect(3);
    let script = "mount --bind .cliq .cliq && mount -o remount,ro,bind .cliq
        for how in --resume -f; do timeout 60 \"$1\" run $how --headless; echo \"code $?\"; done";
    if let Some(mut command) = in_own_mounts(&env, script) {
        let done = done(&command.output().unwrap()).says("Read-only file system");
        assert_eq!(done.stdout.matches("code 1").count(), 2, "{done:?}");
    }
    assert_eq!(ran(&env, "b"), 1);
    env.write("ready", "");
    env.cliq(["run", "--resume"]).expect(0);
}

#[test]
fn a_directory_without_permission_is_named() {
    let env = Env::new(CHAIN, &[("x", AGENT)]);
    let mode = |mode| fs::set_permissions(env.path(".cliq"), fs::Permissions::from_mode(mode)).unwrap();
    mode(0o500);
    let mut command = env.command(["run"]);
    if rustix::process::geteuid().is_root() {
        // Root may write everything.
        command = env.command_of((65534, 65534), ["run"]);
    }
    done(&command.output().unwrap()).expect(1).says(".cliq").says("Permission denied");
    mode(0o700);
}
