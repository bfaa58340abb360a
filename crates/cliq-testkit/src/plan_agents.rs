//! Agents of plans that work elsewhere, and what holds for them wherever that is.

use crate::daemon::{daemon, start, wait_for_state};
use crate::env::Env;

/// A plan of one task.
pub const WAITS: &str = "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n";

/// Makes the roles of a project do all well. A coder waits for a file `go`.
pub fn agents(env: &Env) {
    env.cliq(["init"]).expect(0);
    env.write(
        "agent.sh",
        r#"set -eu
echo "$CLIQ_ROLE $CLIQ_TASK $(hostname)" >> "$CLIQ_PROJECT/done"
case $CLIQ_ROLE in
coder)
  touch "$CLIQ_PROJECT/begun"
  while ! test -e "$CLIQ_PROJECT/go"; do sleep 0.1; done
  touch "made-by-$CLIQ_TASK"
  t=${CLIQ_TASK#*-t}
  cliq signal emit implement_task_finished "$CLIQ_PLAN" --payload "{\"wave_number\":1,\"task_number\":$t}" ;;
reviewer) cliq signal emit review_approved "$CLIQ_PLAN" ;;
master)
  if cliq plan list > "$CLIQ_PROJECT/list" 2>&1; then exit 1; fi
  cliq signal emit verify_approved "$CLIQ_PLAN" ;;
esac
"#,
    );
    for role in ["coder", "reviewer", "master"] {
        let command = format!("sh '{}'", env.path("agent.sh").display());
        env.cliq(["settings", "set", &format!("roles.{role}.command"), &command]).expect(0);
    }
}

/// The daemon is killed while an agent works; the next one follows that agent to its end, and starts it no second time.
/// `places` is how many containers or Jobs there are.
pub fn an_agent_outlives_the_daemon(env: &Env, places: impl Fn() -> usize) {
    start(env, WAITS);
    let first = daemon(env);
    env.wait_for("the agent begins", || env.exists("begun"));
    assert_eq!(places(), 1);
    first.kill();
    let _second = daemon(env);
    env.wait_for("it is followed", || {
        env.read("../daemon.log").matches("coder for w1-t1 started").count() == 2
    });
    env.write("go", "");
    wait_for_state(env, "done");
    env.wait_for("all places are given back", || places() == 0);
    let done = env.read("done");
    let done: Vec<Vec<&str>> = done.lines().map(|line| line.split(' ').collect()).collect();
    let roles: Vec<&str> = done.iter().map(|line| line[0]).collect();
    assert_eq!(roles, ["coder", "reviewer", "master"], "each once");
    let here = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert!(done.iter().all(|line| line[2] != here.trim()), "{done:?}");
    let list = env.read("list");
    assert!(list.contains("signals and plans cannot be read in a container"), "{list}");
}

/// An agent ends with its plan, and with a daemon that is asked to stop; also where the plan was cancelled while no daemon lived.
pub fn unwanted_agents_end(env: &Env, places: impl Fn() -> usize) {
    start(env, WAITS);
    let begins = || {
        env.wait_for("the agent begins", || env.exists("begun") && places() == 1);
        std::fs::remove_file(env.path("begun")).unwrap();
    };
    let ends = || env.wait_for("the agent ends", || places() == 0);
    // The daemon stops: the plan still needs the agent.
    let first = daemon(env);
    begins();
    drop(first);
    ends();
    // The plan is cancelled.
    let second = daemon(env);
    begins();
    env.cliq(["plan", "cancel", "ship"]).expect(0);
    ends();
    drop(second);
    // The daemon is killed, and then the plan is cancelled.
    env.cliq(["plan", "reopen", "ship"]).expect(0);
    env.cliq(["plan", "start", "ship"]).expect(0);
    let third = daemon(env);
    begins();
    third.kill();
    env.cliq(["plan", "cancel", "ship"]).expect(0);
    assert_eq!(places(), 1);
    let _fourth = daemon(env);
    ends();
}
