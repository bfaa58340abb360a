//! Tools of MCP servers: real ones from npm and PyPI, and ones that misbehave.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cliq_scripted_model::Behavior;
use cliq_testkit::env::{has_program, python_with};
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

fn everything() -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/node/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    match file.canonicalize() {
        Ok(file) if has_program("node") => Some(file),
        _ => {
            cliq_testkit::not_run("the MCP server of npm is not installed");
            None
        }
    }
}

fn set(world: &World, settings: &[(&str, &str)]) {
    for (key, value) in settings {
        world.env.cliq(["settings", "set", key, value]).expect(0);
    }
}

fn offered(world: &World, request: usize) -> Vec<String> {
    let tools = world.model.requests()[request].body["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Program that is killed at the end of a test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn real_servers_give_tools_by_program_and_over_http() {
    let Some(everything) = everything() else { return };
    let Some(python) = python_with("mcp_server_time") else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _served = Served(
        Command::new("node")
            .arg(&everything)
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let world = World::new(
        "claude-api",
        TEAM,
        &script(&[
            calls(
                "",
                &[
                    call("every__echo", json!({"message": "by a program"})),
                    call(
                        "time__convert_time",
                        json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
                    ),
                    call("web__echo", json!({"message": "over HTTP"})),
                    call("every__echo", json!({"wrong": 1})),
                ],
            ),
            says("Done."),
        ]),
        Behavior::default(),
    );
    set(
        &world,
        &[
            ("mcp.every.command", "node"),
            ("mcp.every.args", &format!("{},stdio", everything.display())),
            ("mcp.time.command", python.to_str().unwrap()),
            ("mcp.time.args", "-m,mcp_server_time"),
            ("mcp.web.url", &format!("http://127.0.0.1:{port}/mcp")),
        ],
    );
    world.env.wait_for("the server listens", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    world.env.cliq(["run", "--headless"]).expect(0);
    let results = world.results("work.1");
    for (n, part) in [(0, "by a program"), (1, "21:00"), (2, "over HTTP")] {
        assert!(results[n].0.contains(part) && !results[n].1, "{results:?}");
    }
    assert!(results[3].1, "{results:?}");
    let names = offered(&world, 0);
    assert!(
        names.contains(&"every__echo".to_owned()) && names.contains(&"read_file".to_owned()),
        "{names:?}"
    );
    assert_eq!(world.env.left_over(), [""; 0], "servers end with the phase");
}

#[test]
fn teams_declare_servers_and_phases_choose_their_tools() {
    let team = "mcp:
  bad: {command: agents/server, args: [works], timeout: 5s}
workflow:
  phases:
    - {name: work, type: standard, agent: AGENT, agent_tools: [read_file, bad__work]}
    - {name: all, type: standard, agent: AGENT, depends_on: [work]}
    - {name: gate, type: gate, agent: AGENT, depends_on: [all]}
";
    let replies = script(&[calls("", &[call("bad__work", json!({}))]), says("PASS: good")]);
    let world = World::new("claude-api", team, &replies, Behavior::default());
    let server =
        format!("#!/bin/sh\nexec python3 {}/tests/coder/bad_server.py \"$@\"\n", env!("CARGO_MANIFEST_DIR"));
    world.env.write_executable("../team/agents/server", &server);
    world.env.cliq(["assemble", "../team"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(world.results("work.1")[0], ("done".to_owned(), false));
    assert_eq!(offered(&world, 0), ["read_file", "bad__work"]);
    let of_all = offered(&world, 2);
    assert!(
        of_all.contains(&"bad__work".to_owned()) && of_all.contains(&"run_command".to_owned()),
        "{of_all:?}"
    );
    assert!(
        !offered(&world, 4).contains(&"bad__work".to_owned()),
        "gates have no tools of servers by default"
    );
    assert!(world.results("gate.1")[0].0.contains("there is no tool `bad__work`"));
    world.env.write("../team/team.yml", "name: \"@local/x\"\nmcp: {Bad: {command: a, url: b}}\nworkflow: {phases: [{name: a, type: standard, agent_tools: [reed_file]}]}\n");
    let wrong = world.env.cliq(["team", "validate", "../team"]).expect(2);
    for part in [
        "`Bad` cannot be the name of an MCP server",
        "needs a `command` or a `url`",
        "there is no tool `reed_file`",
        "did you mean `read_file`?",
    ] {
        assert!(
            wrong.stderr.contains(part) || wrong.stdout.contains(part),
            "{part}: {}{}",
            wrong.stdout,
            wrong.stderr
        );
    }
}

fn with_bad_server(mode: &str, replies: &[Value]) -> World {
    let world = World::new("claude-api", TEAM, &script(replies), Behavior::default());
    let file = format!("{}/tests/coder/bad_server.py", env!("CARGO_MANIFEST_DIR"));
    set(
        &world,
        &[
            ("mcp.bad.command", "python3"),
            ("mcp.bad.args", &format!("{file},{mode}")),
            ("mcp.bad.timeout", "3s"),
        ],
    );
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(world.env.left_over(), [""; 0], "nothing is left of the server");
    world
}

#[test]
fn servers_that_misbehave_are_tool_errors() {
    let twice = [
        calls("", &[call("bad__work", json!({}))]),
        calls("", &[call("bad__work", json!({}))]),
        says("Done."),
    ];
    for (mode, is_error, part) in [
        ("dies", true, "whether the tool had an effect is unknown"),
        ("hangs", true, "no result after 3 s"),
        ("malformed", false, "done"),
        ("huge", false, "bytes removed]"),
        ("endless", true, "MCP server `bad`"),
    ] {
        let world = with_bad_server(mode, &twice);
        let results = world.results("work.1");
        assert_eq!(results.len(), 2, "{mode}");
        for (text, failed) in results {
            assert!(
                failed == is_error && text.contains(part) && text.len() < 40_000,
                "{mode}: {failed} {}",
                &text[..text.len().min(300)]
            );
        }
    }
}

#[test]
fn other_tools_of_a_server_are_offered_once_it_announces_them() {
    let world = with_bad_server(
        "changes",
        &[
            calls("", &[call("bad__work", json!({}))]),
            calls("", &[call("bad__other", json!({}))]),
            says("Done."),
        ],
    );
    assert!(offered(&world, 0).contains(&"bad__work".to_owned()));
    assert!(offered(&world, 1).contains(&"bad__other".to_owned()), "{:?}", offered(&world, 1));
    assert!(world.results("work.1").iter().all(|(_, is_error)| !is_error));
}

#[test]
fn servers_that_do_not_start_end_the_phase_with_the_reason() {
    let world = World::new("claude-api", TEAM, &script(&[says("Done.")]), Behavior::default());
    set(&world, &[("mcp.gone.command", "/nowhere/server")]);
    world.env.cliq(["run", "--headless"]).expect(3).says("MCP server `gone`");
    assert!(world.model.requests().is_empty());
    // Phases without tools of servers do not need it.
    set(&world, &[("agents.claude-api.tools", "read")]);
    world.env.cliq(["run", "--headless", "--resume"]).expect(0);
}
