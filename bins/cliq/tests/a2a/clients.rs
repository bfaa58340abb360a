//! Clients that others wrote: the official SDKs for Python, JavaScript and Go. Each does discovery, send, stream, resubscribe, push,
//! list, cancel and a conversation against a real server with real teams.

use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_testkit::agent::token;
use cliq_testkit::machine::Machine;
use cliq_testkit::target;

/// Protocol bindings with their versions.
const BINDINGS: [(&str, &str); 3] = [("JSONRPC", "1.0"), ("HTTP+JSON", "1.0"), ("JSONRPC", "0.3")];

/// A machine whose team `ask` waits for a review.
fn machine() -> Machine {
    let machine = cliq_testkit::agent::machine();
    let asking = "workflow:\n  phases:\n    - {name: approval, type: hug, review: {reviewer: ann}}\n";
    machine.team("ask", asking);
    machine
}

fn client(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/a2a/clients").join(name)
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.trim_end().ends_with("ok"), "{command:?}: {said}");
}

fn runs(command: &mut Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

#[test]
fn the_official_python_client() {
    let python = target("venv/bin/python");
    if !runs(Command::new(&python).args(["-c", "import a2a.client"])) {
        cliq_testkit::not_run("there is no Python with a2a-sdk in target/venv (./test makes it)");
        return;
    }
    let machine = machine();
    let server = machine.serve();
    let token = token(&machine, "python", "run");
    for (binding, version) in BINDINGS {
        succeeds(Command::new(&python).arg(client("client.py")).args([
            &server.url,
            &token,
            binding,
            version,
        ]));
    }
}

#[test]
fn the_official_javascript_client() {
    let modules = target("node/node_modules");
    if !runs(Command::new("node").arg("--version")) || !modules.join("@a2a-js/sdk").is_dir() {
        cliq_testkit::not_run("there is no node, or no target/node with @a2a-js/sdk (./test makes it)");
        return;
    }
    let machine = machine();
    let server = machine.serve();
    let token = token(&machine, "javascript", "run");
    // A module looks for others beside itself.
    let script = machine.path("client.mjs");
    std::fs::copy(client("client.mjs"), &script).unwrap();
    std::os::unix::fs::symlink(modules.canonicalize().unwrap(), machine.path("node_modules")).unwrap();
    for (binding, version) in BINDINGS {
        succeeds(Command::new("node").arg(&script).args([&server.url, &token, binding, version]));
    }
}

#[test]
fn the_official_go_client() {
    let Some(built) = cliq_testkit::go_program("a2a-client", &client("go")) else { return };
    let machine = machine();
    let server = machine.serve();
    let token = token(&machine, "go", "run");
    succeeds(Command::new(&built).args([&server.url, &token]));
}
