//! Stopping a run: by command, by signal, by file. Nothing is left running.

use cliq_testkit::env::{Env, done};
use rustix::process::{Pid, Signal, kill_process};

use crate::commands::watchdog::kill_unwatched;

const WORKFLOW: &str = "workflow:
  phases:
    - name: agent
      type: standard
      agent: sleeper
    - name: command
      type: exec
      commands: [{name: t, run: 'touch command; sleep 1000 & sleep 1000'}]
    - name: after
      type: exec
      depends_on: [agent, command]
      commands: [{name: t, run: touch after}]
";

fn started() -> (Env, std::process::Child) {
    let env = Env::new(WORKFLOW, &[("sleeper", "ok\nsetsid sleep 1000 &\ntouch agent\nsleep 1000\n")]);
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("both phases", || env.exists("agent") && env.exists("command"));
    (env, run)
}

#[track_caller]
fn is_cancelled(env: &Env, run: std::process::Child) {
    done(&run.wait_with_output().expect("it ends")).expect(130).says("CANCELLED");
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), "CANCELLED");
    assert_eq!(env.left_over(), Vec::<String>::new());
    assert!(!env.exists("after"));
    let phases = env.phases();
    assert_eq!((phases["agent"].0.as_str(), phases["after"].0.as_str()), ("stopped", "pending"));
}

#[test]
fn by_command() {
    let (env, run) = started();
    env.cliq(["run"]).expect(4).says("another cliq (process ").says("cliq cancel");
    env.cliq(["req", "-m", "x"]).expect(4);
    env.cliq(["assemble", "../team"]).expect(4);
    env.cliq(["clean"]).expect(4);
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["state"], "running");
    env.cliq(["cancel"]).expect(0).says("it has stopped");
    is_cancelled(&env, run);
    env.cliq(["cancel"]).expect(1).says("nothing is running");
}

#[test]
fn by_file() {
    let (env, run) = started();
    env.write(".cliq/signals/_pipeline_status", "CANCELLED\n");
    is_cancelled(&env, run);
}

#[test]
fn by_signal() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (env, run) = started();
        kill_process(Pid::from_raw(run.id() as i32).unwrap(), signal).unwrap();
        is_cancelled(&env, run);
    }
}

#[test]
fn next_run_kills_orphans_of_a_killed_orchestrator() {
    let (env, mut run) = started();
    kill_unwatched(&env, &mut run);
    let old = env.left_over();
    assert!(!old.is_empty(), "processes of the dead run are left");
    assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["state"], "interrupted");
    let old_id = env.run_id();
    let again = env.spawn(["run", "--headless", "-f"]);
    // While the files of the old run are moved, some of them are still in place.
    let has_begun = |journal: String| journal.contains("run_started") && !journal.contains(&old_id);
    env.wait_for("the new run", || {
        std::fs::read_to_string(env.path(".cliq/journal.jsonl")).is_ok_and(has_begun)
    });
    env.wait_for("its agent", || env.files(".cliq/signals").contains(&"agent.jsonl".to_owned()));
    env.cliq(["cancel"]).expect(0);
    is_cancelled(&env, again);
    let history = env.path(".cliq/history");
    let old_run = std::fs::read_dir(history).unwrap().next().unwrap().unwrap().file_name();
    let mark = format!("CLIQ_RUN_ID={}", old_run.to_string_lossy());
    let alive = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|e| {
        std::fs::read(e.path().join("environ"))
            .is_ok_and(|env| env.split(|&b| b == 0).any(|v| v == mark.as_bytes()))
    });
    assert!(!alive, "a process of the killed run lives on");
}

#[test]
fn cancel_ends_what_a_dead_run_left() {
    let (env, mut run) = started();
    kill_unwatched(&env, &mut run);
    assert!(!env.left_over().is_empty(), "processes of the dead run are left");
    env.cliq(["cancel"]).expect(0).says("processes that it left were ended").says("cliq run --resume");
    assert_eq!(env.left_over(), Vec::<String>::new());
    env.cliq(["cancel"]).expect(0).says("no process of it is left");
    // Its outcome is still open.
    assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["state"], "interrupted");
    assert!(!env.exists("after"));
}

#[test]
fn ignored_hangup_stays_ignored() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'touch begun; until [ -f go ]; do sleep 0.02; done; sleep 0.5'}]}\n",
        &[],
    );
    let cliq = env.command(["run", "--headless"]);
    let mut nohup = std::process::Command::new("nohup");
    nohup.arg(cliq.get_program()).args(cliq.get_args()).current_dir(env.work());
    for (key, value) in cliq.get_envs() {
        match value {
            Some(value) => nohup.env(key, value),
            None => nohup.env_remove(key),
        };
    }
    nohup
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let run = nohup.spawn().expect("nohup");
    env.wait_for("the command", || env.exists("begun"));
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::HUP).unwrap();
    // A run that is asked to stop ends its command, which could not see this.
    env.write("go", "");
    done(&run.wait_with_output().expect("it ends")).expect(0).says("COMPLETED");
}
