//! Health, figures, logs, a clean stop, retention, the commands around the server.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

#[test]
fn health_figures_and_the_log_of_requests() {
    let machine = Machine::new();
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    for path in ["/healthz", "/readyz"] {
        assert_eq!(server.send("GET", path, &[], None).expect(200).body, "ok\n");
    }
    let id = server.start_run(&json!({"team": "@local/quick"}));
    server.ended(&id);
    let figures = server.get("/metrics").expect(200);
    assert!(figures.header("content-type").starts_with("text/plain"));
    for line in
        ["cliq_runs{state=\"completed\"} 1", "cliq_runs_started_total 1", "# TYPE cliq_connections gauge"]
    {
        assert!(figures.body.contains(line), "{line} is not in\n{}", figures.body);
    }
    let answer = server.send(
        "GET",
        "/api/v1/runs?team=secret",
        &[("x-request-id", "my-id.1"), ("authorization", &format!("Bearer {}", server.token))],
        None,
    );
    assert_eq!(answer.header("x-request-id"), "my-id.1");
    let log = wait_for("the request is logged", || {
        let text = machine.ok(&["server", "logs", "--access"]);
        text.contains("my-id.1").then_some(text)
    });
    let line: Value = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .find(|line: &Value| line["request_id"] == "my-id.1")
        .unwrap();
    assert_eq!(
        (line["method"].as_str(), line["path"].as_str(), line["status"].as_u64(), line["caller"].as_str()),
        (Some("GET"), Some("/api/v1/runs"), Some(200), Some("this machine"))
    );
    assert!(!log.contains("secret") && !log.contains(&server.token), "queries and tokens are not logged");
}

#[test]
fn log_of_requests_that_was_rotated_is_written_anew() {
    let machine = Machine::new();
    let server = machine.serve();
    let log = machine.home.join("server/access.log");
    let logged = |id: &str, file: &std::path::Path| {
        server.send("GET", "/healthz", &[("x-request-id", id)], None).expect(200);
        wait_for(id, || fs::read_to_string(file).unwrap_or_default().contains(id).then_some(()));
    };
    logged("first", &log);
    let old = log.with_extension("old");
    fs::rename(&log, &old).unwrap();
    logged("second", &log);
    let text = fs::read_to_string(&old).unwrap();
    assert!(text.contains("first") && !text.contains("second"), "{text}");
    // A rotation that removes the file, as some do.
    fs::remove_file(&log).unwrap();
    logged("third", &log);
}

#[test]
fn a_clean_stop_leaves_runs_alone() {
    let machine = Machine::new();
    machine.chain("steps", &["sleep 3", "echo done > done"]);
    let server = machine.serve();
    let record = machine.home.join("server.json");
    assert_eq!(fs::metadata(&record).unwrap().permissions().mode() & 0o777, 0o600);
    let id = server.start_run(&json!({"team": "@local/steps"}));
    wait_for("it works", || (server.run(&id)["state"] == "running").then_some(()));
    let refused = machine.cliq(&["server", "start", "--port", "0"]);
    assert_eq!(refused.status.code(), Some(4), "one server per home");
    let mut frames = Vec::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            server.follow(&id, None, |frame| {
                frames.push(frame);
                true
            })
        });
        server.has_subscribers(1);
        machine.ok(&["server", "stop"]);
        reader.join().unwrap();
    });
    assert!(server.ends_well());
    assert!(frames.iter().all(|frame| frame.kind != "end"), "a stream that is cut off has no end");
    assert!(!record.exists());
    let workspace = machine.home.join("workspaces").join(&id);
    wait_for("the run goes on", || workspace.join("done").exists().then_some(()));
    let server = machine.serve();
    assert_eq!(server.ended(&id)["state"], "completed");
    let last = frames.last().and_then(|frame| frame.id).unwrap();
    let mut more = Vec::new();
    server.follow(&id, Some(last), |frame| {
        more.extend(frame.id);
        true
    });
    assert_eq!(more.first(), Some(&(last + 1)), "a reader goes on where it was");
}

#[test]
fn retention_removes_old_runs() {
    let machine = Machine::new().settings(&json!({"server": {"retention": "2s"}}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/quick"}));
    server.ended(&id);
    let (workspace, log) =
        (machine.home.join("workspaces").join(&id), machine.home.join(format!("server/runs/{id}.log")));
    assert!(workspace.exists() && log.exists());
    wait_for("it is removed", || (server.get(&format!("/api/v1/runs/{id}")).status == 404).then_some(()));
    assert!(!workspace.exists() && !log.exists());
}

#[test]
fn the_commands_around_a_server() {
    let machine = Machine::new();
    assert!(machine.ok(&["server", "status"]).contains("no server is running"));
    assert_eq!(machine.cliq(&["server", "open"]).status.code(), Some(1));
    let said = machine.ok(&["server", "start", "--port", "0"]);
    assert!(said.contains("/signin?code=cliq_"), "{said}");
    let status: Value = serde_json::from_str(&machine.ok(&["server", "status", "--json"])).unwrap();
    assert_eq!(status["running"], true);
    assert!(said.contains(status["url"].as_str().unwrap()));
    assert!(machine.ok(&["doctor"]).contains("running on http://127.0.0.1:"));
    let token =
        machine.ok(&["server", "token", "create", "--label", "ci", "--scope", "run", "--expires", "90d"]);
    assert!(token.starts_with("cliq_"));
    let list: Value = serde_json::from_str(&machine.ok(&["server", "token", "list", "--json"])).unwrap();
    let id = list["tokens"][0]["id"].as_str().unwrap();
    assert!(!machine.ok(&["server", "token", "list"]).contains(token.trim()), "it is shown once");
    machine.ok(&["server", "token", "revoke", id]);
    assert_eq!(machine.cliq(&["server", "token", "revoke", id]).status.code(), Some(2));
    assert!(machine.ok(&["server", "stop"]).contains("has stopped"));
    assert!(machine.ok(&["server", "logs"]).contains("stopped; runs go on"));
    // What is wrong is said by name.
    for (arguments, code, text) in [
        (vec!["--host", "0.0.0.0", "--port", "0"], 2, "--insecure-http"),
        (vec!["--mesh", "prod", "--port", "0"], 2, "server.a2a.meshes"),
        (
            vec!["--tls-cert", "/nowhere", "--tls-key", "/nowhere", "--port", "0"],
            2,
            "cannot use /nowhere for TLS",
        ),
        (vec!["--host", "no.such.host.invalid", "--port", "0"], 2, "cannot listen on no.such.host.invalid"),
    ] {
        let output = machine.cliq(&[&["server", "start"], &arguments[..]].concat());
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(code) && error.contains(text), "{arguments:?}: {error}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let output = machine.cliq(&["server", "start", "--port", &port]);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("--port chooses another one"), "{error}");
}

#[test]
fn demonstrations_have_their_files_and_show_their_changes() {
    let machine = Machine::new();
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@cliq/demo"}));
    let run = server.ended(&id);
    assert_eq!(run["state"], "completed", "{run}");
    let changes = server.get(&format!("/runs/{id}/changes")).expect(200).body;
    assert!(changes.contains("pages/"), "{changes}");
    assert!(!changes.contains(".cliq/"), "{changes}");
}
