//! Notices to reviewers: by Slack, mail and webhooks; requests, reminders, the outcome; a failed delivery stops nothing.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::reviews::waiting::{Waiting, submit, team};

/// Takes posts and keeps their bodies.
pub(crate) struct Receiver {
    pub(crate) url: String,
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Receiver {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = Arc::clone(&kept);
                thread::spawn(move || {
                    use std::io::{Read, Write};
                    let mut reader = BufReader::new(stream.try_clone().unwrap());
                    let mut length = 0;
                    let mut line = String::new();
                    let mut is_whole = false;
                    while reader.read_line(&mut line).is_ok_and(|n| n > 0) {
                        if line.trim().is_empty() {
                            is_whole = true;
                            break;
                        }
                        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                            length = value.trim().parse().unwrap();
                        }
                        line.clear();
                    }
                    let mut body = vec![0; length];
                    // A sender that was killed leaves a part of its request.
                    if is_whole && reader.read_exact(&mut body).is_ok() {
                        kept.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
                        let mut stream = stream;
                        let _ = stream
                            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                    }
                });
            }
        });
        Self { url, bodies }
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }
}

fn machine(settings: &Value) -> Machine {
    Machine::new().settings(settings)
}

fn block(text: &str) -> String {
    team(&text.lines().map(|line| format!("        {line}\n")).collect::<String>())
}

#[test]
fn each_reviewer_is_told_with_a_link_of_their_own() {
    let receiver = Receiver::start();
    let machine = machine(&json!({
        "hug": {"reviewers": [
            {"name": "ann", "channels": ["webhook:ann"]},
            {"name": "bob", "channels": ["slack:bob", "webhook:nobody"]},
            {"name": "team", "members": ["ann", "bob"], "policy": "all"},
        ]},
        "agents": {
            "webhook": {"channels": {"ann": {"url": receiver.url}}},
            "slack": {"channels": {"bob": {"webhook_url": receiver.url}}},
        },
    }));
    let waiting = Waiting::with(machine, &block("reviewer: team\nremind_every: 2s"));
    waiting.start(&["--headless"]);
    let (ann, bob) = (waiting.link("ann"), waiting.link("bob"));
    wait_for("both were notified", || (receiver.bodies().len() >= 2).then_some(()));
    let bodies = receiver.bodies();
    let to_ann = bodies.iter().find(|body| body["event"] == "hug_review").unwrap();
    assert_eq!(to_ann["payload"]["link"], ann);
    assert_eq!(to_ann["payload"]["reviewer"], "ann");
    assert_eq!(to_ann["payload"]["checks"], json!({"passed": 1, "total": 1}));
    let to_bob = bodies.iter().find(|body| body.get("blocks").is_some()).unwrap();
    assert_eq!(to_bob["blocks"][3]["elements"][0]["url"], bob);
    // A way that does not work is visible, and nothing waits for it.
    wait_for("the failure is shown", || {
        let shown = waiting.ok(&["review", "show"]);
        (shown.contains("webhook:nobody: failed") && shown.contains("there is no channel `nobody`"))
            .then_some(())
    });
    submit(&ann, &[("verdict", "approve")]).expect(303);
    // Reminders go to who has not answered: to bob, and to ann only while she had not.
    wait_for("a reminder for bob", || {
        let texts: Vec<String> = receiver.bodies().iter().map(ToString::to_string).collect();
        texts.iter().any(|body| body.contains("still") && body.contains("for bob")).then_some(())
    });
    submit(&bob, &[("verdict", "approve")]).expect(303);
    assert_eq!(waiting.end(), 0);
    let outcome =
        wait_for("the outcome", || receiver.bodies().into_iter().find(|body| body["event"] == "hug_outcome"));
    assert!(outcome["payload"].get("link").is_none());
    assert_eq!(outcome["payload"]["verdict"]["outcome"], "PASS");
    let requests = receiver.bodies().iter().filter(|body| body["event"] == "hug_review").count();
    assert_eq!(requests, 1, "ann is asked once");
    // Links are in no log of the run.
    let token = ann.rsplit('/').next().unwrap();
    for name in [".cliq/orchestrator.log", ".cliq/journal.jsonl", ".cliq/logs/_notify-1.log"] {
        assert!(!waiting.read(name).contains(token), "{name}");
    }
}

/// A mail server that someone else wrote: aiosmtpd, with TLS and a password.
struct MailServer {
    child: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const MAIL_SERVER: &str = r#"
import json, ssl, sys, time
from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult, LoginPassword
mode, cert, key = sys.argv[1:4]
class Handler:
    async def handle_DATA(self, server, session, envelope):
        text = envelope.content.decode("utf8", "replace")
        print(json.dumps({"from": envelope.mail_from, "to": envelope.rcpt_tos, "user": str(session.auth_data.login, "utf8") if session.auth_data else None, "text": text}), flush=True)
        return "250 OK"
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody"):
            return "550 there is nobody of this name"
        envelope.rcpt_tos.append(address)
        return "250 OK"
def auth(server, session, envelope, mechanism, data):
    good = isinstance(data, LoginPassword) and data.password == b"hush"
    return AuthResult(success=good, auth_data=data if good else None)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(cert, key)
options = dict(hostname="127.0.0.1", port=0, authenticator=auth, auth_required=True)
if mode == "tls":
    controller = Controller(Handler(), ssl_context=context, auth_require_tls=False, **options)
else:
    controller = Controller(Handler(), tls_context=context, require_starttls=True, **options)
import socket
with socket.socket() as s:
    s.bind(("127.0.0.1", 0)); controller.port = s.getsockname()[1]
controller.ready_timeout = 20
controller.start()
print(json.dumps({"port": controller.port}), flush=True)
time.sleep(600)
"#;

/// A certificate for localhost. `None` if openssl is not there.
fn certificate(machine: &Machine) -> Option<(String, String)> {
    let (cert, key) = (machine.path("cert.pem"), machine.path("key.pem"));
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args([
            "-addext",
            "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .arg("-out")
        .arg(&cert)
        .arg("-keyout")
        .arg(&key)
        .output();
    made.is_ok_and(|output| output.status.success())
        .then(|| (cert.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned()))
}

fn mail_server(mode: &str, cert: &str, key: &str) -> Option<MailServer> {
    let python = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let has = Command::new(&python)
        .args(["-c", "import aiosmtpd"])
        .output()
        .is_ok_and(|output| output.status.success());
    if !has {
        cliq_testkit::not_run("target/venv has no aiosmtpd (./test makes it)");
        return None;
    }
    let mut child = Command::new(python)
        .args(["-W", "ignore", "-c", MAIL_SERVER, mode, cert, key])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let mails = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&mails);
    thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            kept.lock().unwrap().push(serde_json::from_str(&line).unwrap());
        }
    });
    Some(MailServer { child, port: u16::try_from(first["port"].as_u64().unwrap()).unwrap(), mails })
}

#[test]
fn mail_over_starttls_and_tls() {
    for mode in ["starttls", "tls"] {
        let machine = Machine::new();
        let Some((cert, key)) = certificate(&machine) else {
            return cliq_testkit::not_run("there is no openssl");
        };
        let Some(server) = mail_server(mode, &cert, &key) else { return };
        let machine = machine.settings(&json!({
            "hug": {"reviewers": [{"name": "Ann Ärger", "channels": ["email:ann@example.com"]}, {"name": "bob", "channels": ["email:nobody@example.com"]}]},
            "agents": {"email": {"host": "localhost", "port": server.port, "security": mode, "username": "me", "password": "hush",
                "from": "cliq <cliq@example.com>", "ca_file": cert}},
        }));
        let waiting = Waiting::with(machine, &block("reviewer: [Ann Ärger, bob]"));
        waiting.start(&["--headless"]);
        let link = waiting.link("Ann Ärger");
        // The server takes no mail without TLS.
        let mail = wait_for("the mail", || server.mails.lock().unwrap().first().cloned());
        assert_eq!((&mail["to"][0], &mail["user"]), (&json!("ann@example.com"), &json!("me")), "{mail}");
        let text = mail["text"].as_str().unwrap().replace("=\r\n", "").replace("=3D", "=");
        assert!(text.contains("Subject: Review needed: approval of @local/review"), "{text}");
        assert!(text.contains(&link), "{text}");
        let shown = wait_for("the refusal is shown", || {
            Some(waiting.ok(&["review", "show"])).filter(|shown| shown.contains("nobody@example.com: failed"))
        });
        assert!(shown.contains("there is nobody of this name"), "{shown}");
        assert!(!shown.contains("hush"));
        submit(&link, &[("verdict", "approve")]).expect(303);
        assert_eq!(waiting.end(), 0);
    }
}

#[test]
fn a_mail_server_that_cannot_be_trusted_gets_nothing() {
    let machine = Machine::new();
    let Some((cert, key)) = certificate(&machine) else {
        return cliq_testkit::not_run("there is no openssl");
    };
    let Some(server) = mail_server("starttls", &cert, &key) else { return };
    let machine = machine.settings(&json!({
        "hug": {"reviewers": [{"name": "ann", "channels": ["email:ann@example.com"]}]},
        "agents": {"email": {"host": "localhost", "port": server.port, "username": "me", "password": "hush", "from": "cliq@example.com"}},
    }));
    let waiting = Waiting::with(machine, &block("reviewer: ann"));
    waiting.start(&["--headless"]);
    waiting.review();
    wait_for("the failure is shown", || {
        waiting.ok(&["review", "show"]).contains("ann@example.com: failed").then_some(())
    });
    assert!(server.mails.lock().unwrap().is_empty());
}
