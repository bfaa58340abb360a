//! Meshes: token, registration, renewal, leave; meshes that are down, refuse, or answer nonsense. No published mock of this protocol
//! exists: the mesh here answers by a script.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use cliq_testkit::agent::machine_with;
use cliq_testkit::machine::wait_for;
use serde_json::{Value, json};

/// Requests: path, token, body.
pub(crate) type Calls = Arc<Mutex<Vec<(String, String, Value)>>>;

/// A mesh that answers each request as `answer` says: status and body.
pub(crate) fn mesh(answer: impl Fn(&str, usize) -> (u16, String) + Send + 'static) -> (String, Calls) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let calls = Calls::default();
    let seen = Arc::clone(&calls);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let Some(call) = request(&stream) else { continue };
            let (path, count) = (call.0.clone(), seen.lock().unwrap().len());
            seen.lock().unwrap().push(call);
            let (status, body) = answer(&path, count);
            let head =
                format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = (&stream).write_all((head + &body).as_bytes());
        }
    });
    (url, calls)
}

fn request(stream: &TcpStream) -> Option<(String, String, Value)> {
    let mut reader = BufReader::new(stream);
    let (mut line, mut token, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(": ")?;
        match name.to_ascii_lowercase().as_str() {
            "authorization" => value.clone_into(&mut token),
            "content-length" => length = value.parse().ok()?,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, token, serde_json::from_slice(&body).ok()?))
}

/// Settings of `server.a2a`: name, address and whether it is joined, of each mesh.
pub(crate) fn mesh_settings(meshes: &[(&str, &str, bool)]) -> Value {
    let list: Vec<Value> = meshes
        .iter()
        .map(|(name, url, active)| {
            json!({"name": name, "type": "savant", "url": url, "active": active, "client_id": "cliq-agent", "client_secret": "hush-hush"})
        })
        .collect();
    json!({"meshes": list, "agent_type": "pipelines"})
}

fn paths(calls: &Calls) -> Vec<String> {
    calls.lock().unwrap().iter().map(|(path, _, _)| path.clone()).collect()
}

#[test]
fn joined_renewed_and_left() {
    // A token that lasts a second: it is renewed.
    let (url, calls) = mesh(|path, count| match path {
        "/auth/token" => (200, json!({"access_token": format!("jwt-{count}"), "expires_in": 1}).to_string()),
        _ => (200, "{}".to_owned()),
    });
    let (other, other_calls) = mesh(|_, _| (200, json!({"token": "t"}).to_string()));
    let machine = machine_with(&mesh_settings(&[("prod", &url, true), ("spare", &other, false)]));
    let server = machine.serve();
    wait_for("it registers again with another token", || {
        let calls = calls.lock().unwrap();
        let mut tokens: Vec<&str> = calls
            .iter()
            .filter(|(path, _, _)| path == "/agents/register")
            .map(|(_, token, _)| token.as_str())
            .collect();
        tokens.dedup();
        (tokens.len() >= 3).then_some(())
    });
    let status = machine.ok(&["server", "status"]);
    assert!(status.contains("mesh prod is joined"), "{status}");
    let status: Value = serde_json::from_str(&machine.ok(&["server", "status", "--json"])).unwrap();
    assert_eq!(status["meshes"].as_array().unwrap().len(), 1, "{status}");
    let (_, _, body) =
        calls.lock().unwrap().iter().find(|(path, _, _)| path == "/agents/register").unwrap().clone();
    assert_eq!((&body["agent_type"], &body["instance_id"]), (&json!("pipelines"), &json!("cliq-test")));
    assert_eq!(body["agent_card_url"], format!("{}/.well-known/agent-card.json", server.url));
    assert!(body["agent_card"]["skills"].as_array().unwrap().len() > 1);
    machine.ok(&["server", "stop"]);
    assert_eq!(paths(&calls).last().unwrap(), "/agents/deregister");
    assert!(paths(&other_calls).is_empty(), "a mesh that is not active is not joined");
    drop(server);
    // By name, whether it is active or not, and without --a2a.
    let machine = machine_with(&mesh_settings(&[("prod", &url, true), ("spare", &other, false)]))
        .arguments(&["--mesh", "spare"]);
    let _server = machine.serve();
    wait_for("it is joined", || paths(&other_calls).contains(&"/agents/register".to_owned()).then_some(()));
}

#[test]
fn meshes_that_fail_do_not_stop_the_server() {
    let (refuses, _) = mesh(|_, _| (401, "bad client_secret hush-hush".to_owned()));
    let (garbage, _) = mesh(|_, _| (200, "<html>".to_owned()));
    let (empty, _) = mesh(|_, _| (200, "{}".to_owned()));
    // It has a bad day, and then a good one.
    let (recovers, calls) = mesh(|path, count| match (path, count) {
        (_, 0) => (503, String::new()),
        ("/auth/token", _) => (200, json!({"access_token": "secret-jwt"}).to_string()),
        (_, 2) => (500, "your token is secret-jwt".to_owned()),
        _ => (204, String::new()),
    });
    let down = "http://127.0.0.1:9";
    let list = [
        ("refuses", refuses.as_str(), true),
        ("garbage", &garbage, true),
        ("empty", &empty, true),
        ("down", down, true),
        ("recovers", &recovers, true),
    ];
    let machine = machine_with(&mesh_settings(&list));
    let server = machine.serve();
    wait_for("it recovers", || {
        let list = server.get("/api/v1/meshes").expect(200).json();
        let state = |name: &str| {
            list["meshes"].as_array()?.iter().find(|mesh| mesh["name"] == name)?["state"]
                .as_str()
                .map(str::to_owned)
        };
        let failing = ["refuses", "garbage", "empty", "down"]
            .iter()
            .all(|name| state(name).as_deref() == Some("failing"));
        (failing && state("recovers").as_deref() == Some("joined")).then_some(())
    });
    assert!(paths(&calls).len() >= 4);
    let status = machine.ok(&["server", "status"]);
    for text in [
        "mesh refuses is failing",
        "401",
        "mesh garbage is failing",
        "no JSON",
        "without a token",
        "cannot be reached",
    ] {
        assert!(status.contains(text), "{text}: {status}");
    }
    let log = std::fs::read_to_string(machine.path("log")).unwrap();
    for text in [&status, &log] {
        assert!(!text.contains("hush-hush") && !text.contains("secret-jwt"), "{text}");
    }
    server.get("/healthz").expect(200);
}
