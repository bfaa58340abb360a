//! Plans whose agents work in containers: the daemon has them followed.

use cliq_testkit::daemon::{daemon, start, status, wait_for_state};
use cliq_testkit::env::Env;
use cliq_testkit::plan_agents::{WAITS, agents, an_agent_outlives_the_daemon, unwanted_agents_end};

use crate::containers::engine::{IMAGE, containers, docker, running, said, use_containers};

fn project(settings: &[(&str, &str)]) -> Option<Env> {
    let env = use_containers(Env::bare(), settings)?;
    agents(&env);
    Some(env)
}

#[test]
fn an_agent_in_a_container_outlives_the_daemon() {
    let Some(env) = project(&[]) else { return };
    an_agent_outlives_the_daemon(&env, || containers(&env.home()).len());
}

#[test]
fn agents_that_nobody_wants_end() {
    let Some(env) = project(&[]) else { return };
    unwanted_agents_end(&env, || running(&env.home()));
    // What nobody followed to its end is removed by the next run of the home.
    env.write("go", "");
    env.cliq(["plan", "reopen", "ship"]).expect(0);
    env.cliq(["plan", "start", "ship"]).expect(0);
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    env.wait_for("they are removed", || containers(&env.home()).is_empty());
}

/// Worktrees of git work in containers; what an agent commits there is merged here.
#[test]
fn agents_in_containers_have_branches() {
    let Some(env) = project(&[]) else { return };
    let git = |args: &[&str]| {
        let done = std::process::Command::new("git").args(args).current_dir(env.work()).output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    for args in [
        &["init", "-q"][..],
        &["config", "user.email", "ada@example.com"],
        &["config", "user.name", "Ada"],
        &["commit", "-q", "--allow-empty", "-m", "begin"],
    ] {
        git(args);
    }
    let task = "Do it.\n\n";
    start(
        &env,
        &format!("Goal.\n\nBranches: yes\n\n## Wave 1\n\n### Task 1: a\n{task}### Task 2: b\n{task}"),
    );
    env.write("go", "");
    let _daemon = daemon(&env);
    wait_for_state(&env, "done");
    git(&["show", "cliq/ship:made-by-w1-t1", "cliq/ship:made-by-w1-t2"]);
}

/// Whatever keeps an agent from beginning is a question for a person, who can mend it and answer.
#[test]
fn container_start_failure_becomes_a_question() {
    let Some(env) = project(&[("image", "nobody/nothing:1")]) else { return };
    start(&env, WAITS);
    env.write("go", "");
    let _daemon = daemon(&env);
    let asked = || status(&env)["questions"].as_array().unwrap().first().cloned();
    env.wait_for("a question", || asked().is_some());
    let text = asked().unwrap()["text"].as_str().unwrap().to_owned();
    assert!(text.contains("coder cannot be started: there is no image `nobody/nothing:1`"), "{text}");
    env.cliq(["settings", "set", "-g", "docker.image", IMAGE]).expect(0);
    env.cliq(["plan", "answer", "ship", "again"]).expect(0);
    wait_for_state(&env, "done");
}

/// A container that is killed is an agent that failed: its task is tried again.
#[test]
fn an_agent_whose_container_is_killed_is_tried_again() {
    let Some(env) = project(&[]) else { return };
    start(&env, WAITS);
    let _daemon = daemon(&env);
    env.wait_for("the agent begins", || env.exists("begun"));
    let there = containers(&env.home());
    said(&["kill", &there[0]]);
    env.write("go", "");
    wait_for_state(&env, "done");
    assert!(!docker(&["inspect", &there[0]]).status.success(), "it is removed");
}
