//! Access control, and attempts of hostile callers, pages and agents.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running, wait_for};
use serde_json::json;

/// A token of this scope, and its id.
fn token(machine: &Machine, scope: &str, more: &[&str]) -> (String, String) {
    let arguments =
        [&["server", "token", "create", "--label", scope, "--scope", scope, "--json"], more].concat();
    let made: serde_json::Value = serde_json::from_str(&machine.ok(&arguments)).unwrap();
    (made["token"].as_str().unwrap().to_owned(), made["id"].as_str().unwrap().to_owned())
}

fn with(server: &Running, token: &str, method: &str, path: &str) -> u16 {
    let headers =
        [("authorization", format!("Bearer {token}")), ("content-type", "application/json".to_owned())];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    server.send(method, path, &headers, ["POST", "PUT"].contains(&method).then_some("{}")).status
}

/// Signs a browser in and gives its cookie.
fn sign_in(machine: &Machine, server: &Running) -> String {
    let link = machine.ok(&["server", "open"]);
    let path = link.trim().strip_prefix(&server.url).unwrap().to_owned();
    let answer = server.send("GET", &path, &[], None).expect(200);
    let cookie = answer.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let again = server.send("GET", &path, &[], None).expect(200);
    assert_eq!(again.header("set-cookie"), "", "the link works once");
    cookie.split(';').next().unwrap().to_owned()
}

/// Every operation of the description needs a token, and each that changes something a scope.
#[test]
fn every_route_needs_a_token_of_its_scope() {
    let machine = Machine::new().settings(&json!({"server": {"rate_limit": 100_000}}));
    let server = machine.serve();
    let (read, _) = token(&machine, "read", &[]);
    let (run, _) = token(&machine, "run", &[]);
    let (edit, _) = token(&machine, "edit", &[]);
    let description = cliq_server::openapi();
    let mut seen = 0;
    for (path, item) in &description.paths.paths {
        let path = path.replace(['{', '}'], "x");
        let operations =
            [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put), ("DELETE", &item.delete)];
        for (method, operation) in operations {
            if operation.is_none() || ["/healthz", "/readyz"].contains(&path.as_str()) {
                continue;
            }
            seen += 1;
            assert_eq!(server.send(method, &path, &[], None).status, 401, "{method} {path} without a token");
            let is_secret = ["token", "audit", "sessions"].iter().any(|word| path.contains(word));
            let admin = is_secret
                || path.contains("sign-in")
                || (path.contains("instances") && !path.contains("/x"))
                || (method == "DELETE" && !path.contains("/comments/"));
            let reads = method == "GET" || path.ends_with("/validate");
            let edits = path.contains("/drafts") || path.ends_with("/teams/generate");
            let wanted = if reads && !is_secret {
                "read"
            } else if edits {
                "edit"
            } else if admin {
                "admin"
            } else {
                "run"
            };
            let (as_reader, as_runner) =
                (with(&server, &read, method, &path), with(&server, &run, method, &path));
            assert_eq!(as_reader == 403, wanted != "read", "{method} {path} as a reader: {as_reader}");
            let as_editor = with(&server, &edit, method, &path);
            assert_eq!(
                as_runner == 403,
                ["edit", "admin"].contains(&wanted),
                "{method} {path} as a runner: {as_runner}"
            );
            assert_eq!(as_editor == 403, wanted == "admin", "{method} {path} as an editor: {as_editor}");
        }
    }
    assert!(seen > 30, "{seen}");
    for path in [
        "/",
        "/runs",
        "/runs/new",
        "/teams",
        "/studio",
        "/plans",
        "/signals",
        "/projects",
        "/usage",
        "/triggers",
        "/audit",
        "/live",
    ] {
        let answer = server.send("GET", path, &[], None);
        assert_eq!((answer.status, answer.header("location")), (303, "/signin"), "{path}");
    }
}

#[test]
fn tokens_expire_and_are_revoked_at_once() {
    let machine = Machine::new().environment("CLIQ_ADMIN_TOKEN", "a-long-random-admin-token");
    let server = machine.serve();
    let (kept, _) = token(&machine, "read", &[]);
    let (revoked, id) = token(&machine, "admin", &[]);
    let (expired, _) = token(&machine, "read", &["--expires", "5s"]);
    for good in [&kept, &revoked, &expired, "a-long-random-admin-token"] {
        assert_eq!(with(&server, good, "GET", "/api/v1/runs"), 200);
    }
    // A browser that signed in with the token.
    let form = [("origin", server.url.as_str()), ("content-type", "application/x-www-form-urlencoded")];
    let signed_in = server.send("POST", "/signin", &form, Some(&format!("token={revoked}"))).expect(200);
    let session = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let browser = || server.send("GET", "/api/v1/runs", &[("cookie", &session)], None).status;
    assert_eq!(browser(), 200);
    machine.ok(&["server", "token", "revoke", &id]);
    assert_eq!(with(&server, &revoked, "GET", "/api/v1/runs"), 401);
    assert_eq!(browser(), 401, "the session ends with its token");
    wait_for("the token expires", || (with(&server, &expired, "GET", "/api/v1/runs") == 401).then_some(()));
    assert_eq!(with(&server, &kept, "GET", "/api/v1/runs"), 200);
    // A session's cookie is not a token, and a token is not a session.
    let cookie = sign_in(&machine, &server);
    let value = cookie.split_once('=').unwrap().1;
    assert_eq!(with(&server, value, "GET", "/api/v1/runs"), 401);
    let as_cookie = |value: &str| {
        server.send("GET", "/api/v1/runs", &[("cookie", &format!("cliq_session={value}"))], None).status
    };
    assert_eq!((as_cookie(value), as_cookie(&kept)), (200, 401));
    server.send("POST", "/signout", &[("cookie", &cookie), ("origin", &server.url)], None).expect(303);
    assert_eq!(as_cookie(value), 401, "signing out ends the session");
    // What is stored is not the token.
    let bytes =
        ["cliq.db", "cliq.db-wal"].map(|file| fs::read(machine.home.join(file)).unwrap_or_default()).concat();
    for secret in [&kept, value] {
        assert!(memchr::memmem::find(&bytes, secret.as_bytes()).is_none(), "only hashes are stored");
    }
    let output =
        Machine::new().environment("CLIQ_ADMIN_TOKEN", "short").cliq(&["server", "run", "--port", "0"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("fewer than 16 characters"));
}

#[test]
fn guessing_is_slowed_down() {
    let machine = Machine::new();
    let server = machine.serve();
    let statuses: Vec<u16> = (0..200).map(|_| with(&server, "wrong", "GET", "/api/v1/runs")).collect();
    assert_eq!(statuses[0], 401);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(server.get("/api/v1/runs").status, 200, "a right token is not slowed down");
}

#[test]
fn other_sites_can_do_nothing() {
    let machine = Machine::new().settings(&json!({"server": {"allowed_hosts": ["cliq.example"]}}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let cookie = sign_in(&machine, &server);
    let wish = r#"{"team":"@local/quick"}"#;
    let post = |origin: Option<&str>| {
        let mut headers = vec![("cookie", cookie.as_str()), ("content-type", "application/json")];
        headers.extend(origin.map(|origin| ("origin", origin)));
        server.send("POST", "/api/v1/runs", &headers, Some(wish)).status
    };
    assert_eq!(post(Some(&server.url)), 201);
    for origin in [Some("http://evil.example"), Some("null"), Some("http://127.0.0.1:1"), None] {
        assert_eq!(post(origin), 403, "{origin:?}");
    }
    // A form of another site: simple content types are not JSON, and its origin is refused in any case.
    let form = server.send(
        "POST",
        "/runs/new",
        &[
            ("cookie", &cookie),
            ("origin", "http://evil.example"),
            ("content-type", "application/x-www-form-urlencoded"),
        ],
        Some("team=%40local%2Fquick"),
    );
    assert_eq!(form.status, 403);
    // DNS rebinding: the name of another site that leads here.
    for (host, status) in [
        ("evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost", 200),
        ("cliq.example", 200),
        ("[::1]:80", 200),
    ] {
        let answer = server.send("GET", "/api/v1/runs", &[("cookie", &cookie), ("host", host)], None);
        assert_eq!(answer.status, status, "{host}");
    }
    // What a page may load.
    let page = server.send("GET", "/", &[("cookie", &cookie)], None).expect(200);
    let policy = page.header("content-security-policy");
    assert!(
        policy.contains("default-src 'none'")
            && policy.contains("script-src 'self'")
            && !policy.contains("unsafe"),
        "{policy}"
    );
    assert!(
        !page.body.contains("<script>") && !page.body.contains(" style=") && !page.body.contains(" onclick=")
    );
    assert_eq!(
        (page.header("x-content-type-options"), page.header("x-frame-options"), page.header("cache-control")),
        ("nosniff", "DENY", "no-store")
    );
}

#[test]
fn files_and_logs_of_a_run_and_of_nothing_else() {
    let machine = Machine::new();
    machine.chain("quick", &["echo out > out.txt; echo said"]);
    let server = machine.serve();
    let (one, other) = (
        server.start_run(&json!({"team": "@local/quick"})),
        server.start_run(&json!({"team": "@local/quick"})),
    );
    server.ended(&one);
    server.ended(&other);
    let root = machine.home.join("workspaces");
    fs::write(root.join(&other).join("secret.txt"), "secret").unwrap();
    let link = |target: &str, name: &str| symlink(target, root.join(&one).join(name)).unwrap();
    link("/etc/passwd", "passwd");
    link(&format!("../{other}"), "other");
    link("../../../../../../../etc/passwd", ".cliq/logs/p0.9.log");
    fs::write(root.join(&one).join(".cliq/settings.json"), "{\"agents\":{}}").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, root.join(&one).join("fifo"), rustix::fs::Mode::RWXU).unwrap();
    let file = |path: &str| server.get(&format!("/api/v1/runs/{one}/files/content?path={path}"));
    assert_eq!(file("out.txt").expect(200).body, "out\n");
    assert_eq!(file("out.txt").header("content-disposition"), "attachment");
    for path in [
        "passwd",
        "other/secret.txt",
        "../../../../etc/passwd",
        "..%2F..%2Fserver.json",
        "%2Fetc%2Fpasswd",
        ".cliq/settings.json",
        ".cliq/../.cliq/settings.json",
        "fifo",
        "",
        ".",
        "out.txt%00",
        "other/.cliq/settings.json",
    ] {
        let answer = file(path);
        assert_eq!(answer.status, 404, "{path}: {}", answer.body);
    }
    let began = Instant::now();
    for name in [
        "..%2Fjournal.jsonl",
        "..%2Fsettings.json",
        "..%2F..%2Fjournal.jsonl",
        "%2E%2E",
        "p0.9.log",
        ".hidden",
        "orchestrator.log%00",
        "..",
        "p0.1.log%2F..%2F..%2Fsettings.json",
    ] {
        let status = server.get(&format!("/api/v1/runs/{one}/logs/{name}")).status;
        assert_eq!(status, 404, "{name}");
    }
    assert!(began.elapsed() < Duration::from_secs(20));
    for path in ["/handoffs/..%2F..%2Fx/y", "/handoffs/a--b/c"] {
        assert_eq!(server.get(&format!("/api/v1/runs/{one}{path}")).status, 404, "{path}");
    }
    for id in ["..", "x", "00000000-0000-7000-8000-000000000000", "%2E%2E%2F", &one.to_uppercase()] {
        assert_eq!(server.get(&format!("/api/v1/runs/{id}/logs")).status, 404, "{id}");
    }
    // A caller chooses no folder of the machine as a team, and no repository on it.
    let folder = machine.home.join("teams/@local/quick");
    for team in [folder.to_str().unwrap(), "/etc", "../x", "@local/../../x", "@local", "./quick"] {
        assert_eq!(server.post("/api/v1/runs", &json!({"team": team})).status, 422, "{team}");
    }
    for repo in [
        "file:///etc",
        "/etc",
        "ext::sh -c id",
        "--upload-pack=x",
        "http://127.0.0.1/x",
        "https://u:p@host/x",
    ] {
        let answer =
            server.post("/api/v1/runs", &json!({"team": "@local/quick", "repos": [repo]})).expect(422);
        assert!(!answer.body.contains("u:p@"), "{}", answer.body);
    }
    let id = server.start_run(&json!({"team": "@local/quick", "repos": ["https://localhost/x.git"]}));
    let run = server.ended(&id);
    assert!(run["state"] == "failed" && run["reason"].as_str().unwrap().contains("not public"), "{run}");
}

#[test]
fn agent_output_is_escaped_on_pages() {
    let machine = Machine::new();
    let evil = r#"printf '<script>alert(1)</script>\033[31mred\033]0;title\007<img src=x onerror=alert(2)>\n'; head -c 300000 /dev/zero | tr '\0' 'A'; exit 3"#;
    machine.chain("evil", &["printf '# <script>alert(3)</script>' > x.md", evil]);
    let server = machine.serve();
    let requirement = "<script>alert(4)</script>\n\n[x](javascript:alert(5)) ![y](http://evil.example/z.png)";
    let id = server.start_run(&json!({"team": "@local/evil", "requirement": requirement}));
    assert_eq!(server.ended(&id)["state"], "escalated");
    let cookie = sign_in(&machine, &server);
    let page = |path: &str| server.send("GET", path, &[("cookie", &cookie)], None).expect(200);
    let logs = server.get(&format!("/api/v1/runs/{id}/logs")).json();
    let name = logs["logs"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|log| log["name"].as_str())
        .find(|name| name.starts_with("p1."))
        .unwrap()
        .to_owned();
    for path in [
        format!("/runs/{id}"),
        format!("/runs/{id}/logs/{name}"),
        format!("/runs/{id}/files?path=x.md"),
        "/".to_owned(),
    ] {
        let answer = page(&path);
        let body = &answer.body;
        for wrong in ["<script>alert", "<img", "href=\"javascript", "src=\"http", "\u{1b}", "\u{7}"] {
            assert!(
                !body.contains(wrong),
                "{path} has {wrong:?}: {}",
                &body[body.find(wrong).unwrap().saturating_sub(200)..]
            );
        }
        assert!(body.len() < 150_000, "{path} has {} bytes", body.len());
    }
    assert!(page(&format!("/runs/{id}/files?path=x.md")).body.contains("&lt;script&gt;alert(3)"));
    // As it is, it is text, and no browser takes it for anything else.
    let raw = server.get(&format!("/api/v1/runs/{id}/logs/{name}"));
    assert_eq!(
        (raw.header("content-type"), raw.header("x-content-type-options")),
        ("text/plain; charset=utf-8", "nosniff")
    );
}

#[test]
fn limits_of_size_rate_connections_and_patience() {
    let machine = Machine::new().settings(&json!({"server": {"rate_limit": 20, "max_connections": 20}}));
    let server = machine.serve();
    let large = format!("{{\"requirement\":\"{}\"}}", "x".repeat(5 << 20));
    let auth = format!("Bearer {}", server.token);
    assert_eq!(
        server
            .send(
                "POST",
                "/api/v1/runs",
                &[("authorization", &auth), ("content-type", "application/json")],
                Some(&large)
            )
            .status,
        413
    );
    assert_eq!(
        server
            .send(
                "POST",
                "/api/v1/runs",
                &[("authorization", &auth), ("content-type", "text/plain")],
                Some("{}")
            )
            .status,
        415
    );
    assert_eq!(
        server
            .send(
                "POST",
                "/api/v1/runs",
                &[("authorization", &auth), ("content-type", "application/json")],
                Some("{")
            )
            .status,
        400
    );
    assert_eq!(server.send("PUT", "/api/v1/runs", &[("authorization", &auth)], Some("{}")).status, 405);
    assert!(
        server
            .send("GET", "/api/v1/runs", &[("authorization", &auth), ("x-long", &"y".repeat(60_000))], None)
            .status
            >= 400
    );
    let limited = (0..500).any(|_| server.send("GET", "/healthz", &[], None).status == 429);
    assert!(limited, "more than 20 requests per second are refused");
    std::thread::sleep(Duration::from_secs(2));

    // Clients that send half a request give way, oldest first: others work, however many of them there are.
    let address = server.url.strip_prefix("http://").unwrap();
    let half = || {
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(40))).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nHo").ok()?;
        Some(stream)
    };
    let mut open: Vec<TcpStream> = (0..300).filter_map(|_| half()).collect();
    for _ in 0..5 {
        assert_eq!(server.send("GET", "/healthz", &[], None).status, 200);
    }
    let mut first = open.remove(0);
    assert!(!matches!(first.read(&mut [0]), Ok(1..)), "the oldest is closed");
    // A client that sends half a request and nothing more is cut off.
    let (began, mut last) = (Instant::now(), half().unwrap());
    let mut rest = Vec::new();
    let _ = last.read_to_end(&mut rest);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    drop(open);
    wait_for("the server has places again", || {
        TcpStream::connect(address).ok().filter(|_| server.send("GET", "/healthz", &[], None).status == 200)
    });
}

#[test]
fn bodies_with_too_many_values_are_refused() {
    let machine =
        Machine::new().settings(&json!({"server": {"a2a": {"advertise": ["@local"]}}})).arguments(&["--a2a"]);
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let auth = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", auth.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("a2a-version", "1.0"),
    ];
    let body = |objects: usize| {
        let data = vec![r#"{"":0}"#; objects].join(",");
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"data":[{data}]}}]}}}}}}"#
        )
    };
    // 4 MB, of which each object takes a hundred times its size.
    let large = body(570_000);
    for path in ["/api/v1/runs", "/a2a/jsonrpc", "/a2a/rest/message:send", "/mcp"] {
        let response = server.send("POST", path, &headers, Some(&large));
        assert_eq!(response.status, 413, "{path}: {}", response.body);
        assert!(response.body.len() < 500, "{path}: {}", response.body);
    }
    let most = server.send("POST", "/a2a/jsonrpc", &headers, Some(&body(24_000)));
    assert_eq!(most.status, 200, "{}", most.body);
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 250_000, "{peak}");
}
