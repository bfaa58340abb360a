//! Orchestrators that are killed: their watchdog ends what they started.

use std::fs;
use std::path::Path;
use std::process::Child;

use cliq_testkit::env::{Env, done};
use rustix::process::{Pid, Signal, kill_process};

fn pids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").expect("/proc").filter_map(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The command line of a process, with a zero byte after each argument. Empty if the process has ended.
fn command_line(pid: i32) -> Vec<u8> {
    fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default()
}

/// Processes whose command line ends with these arguments.
fn with_arguments(arguments: &str) -> Vec<i32> {
    let mut end = arguments.replace(' ', "\0").into_bytes();
    end.push(0);
    pids().filter(|pid| command_line(*pid).ends_with(&end)).collect()
}

fn is_alive(pid: Pid) -> bool {
    cliq_fs::session_of(pid.as_raw_nonzero().get()).is_some()
}

/// The watchdogs of the runs of a process.
fn watchdogs_of(orchestrator: u32) -> Vec<Pid> {
    let parent = i32::try_from(orchestrator).ok();
    // Before it has a session of its own it may be killed with a terminal.
    let is_own_watchdog =
        |pid: &i32| cliq_fs::parent_of(*pid) == parent && cliq_fs::session_of(*pid) == Some(*pid);
    with_arguments("watchdog").into_iter().filter(is_own_watchdog).filter_map(Pid::from_raw).collect()
}

/// Whether a child of a process has not become what it is to be: it has the command line of its parent still, or is a watchdog without
/// a session of its own.
fn is_starting_a_child(parent: i32) -> bool {
    let own = command_line(parent);
    pids().filter(|pid| cliq_fs::parent_of(*pid) == Some(parent)).any(|pid| {
        let line = command_line(pid);
        line == own || line.ends_with(b"\0watchdog\0") && cliq_fs::session_of(pid) != Some(pid)
    })
}

/// The watchdog of an orchestrator, once it watches.
fn watchdog_of(env: &Env, orchestrator: u32) -> Pid {
    env.wait_for("the watchdog", || !watchdogs_of(orchestrator).is_empty());
    watchdogs_of(orchestrator)[0]
}

/// Kills an orchestrator or a daemon together with the watchdogs of its runs, so that what it started goes on.
pub(crate) fn kill_unwatched(env: &Env, run: &mut Child) {
    watchdog_of(env, run.id());
    // It starts no further one.
    let orchestrator = i32::try_from(run.id()).ok().and_then(Pid::from_raw).expect("a process");
    kill_process(orchestrator, Signal::STOP).expect("stopped");
    env.wait_for("the start of its last child", || !is_starting_a_child(orchestrator.as_raw_nonzero().get()));
    for watchdog in watchdogs_of(run.id()) {
        kill_process(watchdog, Signal::KILL).expect("killed");
    }
    run.kill().expect("killed");
    run.wait().expect("it ends");
}

const TWO: &str = "workflow:
  phases:
    - {name: a, type: standard, agent: x}
    - name: c
      type: exec
      commands: [{name: t, run: 'sleep 1000 & setsid sleep 1000 & touch command; exec env -i /bin/sleep 1000.052'}]
";
/// An agent with a process in another session, and one that ignores requests to end.
const STUBBORN: &str = "ok
setsid sleep 1000 &
setsid sh -c 'trap \"\" TERM HUP; while :; do sleep 1; done' &
touch agent
trap '' TERM
while :; do sleep 1; done
";

#[test]
fn agents_and_commands_do_not_outlive_a_killed_orchestrator() {
    for launcher in ["process", "tmux"] {
        if launcher == "tmux" && crate::commands::tmux::no_tmux() {
            return;
        }
        let env = Env::new(TWO, &[("x", STUBBORN)]);
        let mut run = env.spawn(["run", "--launcher", launcher]);
        env.wait_for("both phases", || env.exists("agent") && env.exists("command"));
        let watchdog = watchdog_of(&env, run.id());
        run.kill().unwrap();
        run.wait().unwrap();
        env.wait_for("the end of all", || env.left_over().is_empty());
        if launcher == "process" {
            // Without any variable it is known by its group.
            env.wait_for("the end of the group", || with_arguments("/bin/sleep 1000.052").is_empty());
        }
        env.wait_for("the end of the watchdog", || !is_alive(watchdog));
        assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["state"], "interrupted");
        let journal = env.read(".cliq/journal.jsonl");
        assert!(!journal.contains("work_failed") && !journal.contains("commands_finished"), "{journal}");
    }
}

#[test]
fn teams_of_team_phases_do_not_outlive_a_killed_orchestrator() {
    let env = Env::bare();
    env.write(
        "../team/team.yml",
        "name: \"@local/outer\"\nworkflow:\n  phases:\n    - {name: build, type: team, team: ./inner}\n",
    );
    let inner = "name: \"@local/inner\"\nworkflow:\n  phases:\n    - {name: say, type: exec, commands: [{name: t, run: 'setsid sleep 1000 & touch blocked; sleep 1000'}]}\n";
    env.write("../team/inner/team.yml", inner);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the inner phase", || env.exists("blocked"));
    let mark = format!("CLIQ_DIR={}", env.path(".cliq/teams/build").display());
    assert!(!env.marked(&mark).is_empty());
    run.kill().unwrap();
    run.wait().unwrap();
    env.wait_for("the end of all", || env.left_over().is_empty() && env.marked(&mark).is_empty());
    let journal = env.read(".cliq/teams/build/journal.jsonl");
    assert!(!journal.contains("work_failed") && !journal.contains("commands_finished"), "{journal}");
}

#[test]
fn watchdog_ends_with_its_run() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'until [ -f go ]; do sleep 0.02; done'}]}\n",
        &[],
    );
    let run = env.spawn(["run", "--headless"]);
    let watchdog = watchdog_of(&env, run.id());
    // Readers of the output of a killed run do not wait for it.
    let output = |fd: u8| fs::read_link(format!("/proc/{}/fd/{fd}", watchdog.as_raw_nonzero()));
    let is_free = |fd| output(fd).is_ok_and(|path| path == Path::new("/dev/null"));
    env.wait_for("it to let go of the output", || is_free(1) && is_free(2));
    env.write("go", "");
    done(&run.wait_with_output().unwrap()).expect(0);
    assert!(!is_alive(watchdog), "it is gone before the orchestrator is");
}

#[test]
fn late_watchdog_leaves_the_resumed_run_alone() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: standard, agent: x}\n",
        &[("x", "ok\necho a >> ran\nuntil [ -f go ]; do sleep 0.02; done\ncomplete\n")],
    );
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("a", || env.has_text("ran"));
    let watchdog = watchdog_of(&env, run.id());
    kill_process(watchdog, Signal::STOP).unwrap();
    run.kill().unwrap();
    run.wait().unwrap();
    let resumed = env.spawn(["run", "--headless", "--resume"]);
    env.wait_for("a again", || env.read("ran") == "a\na\n");
    kill_process(watchdog, Signal::CONT).unwrap();
    env.wait_for("the end of the late watchdog", || !is_alive(watchdog));
    env.write("go", "");
    done(&resumed.wait_with_output().unwrap()).expect(0);
    assert_eq!(env.read("ran"), "a\na\n");
}
