//! Repositories of tasks: cloned from a real git server over TLS; hosts that are private or not allowed are refused.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use cliq_testkit::agent::{Caller, machine_with};
use serde_json::{Value, json};

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn git(dir: &std::path::Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "init.defaultBranch=main"];
    let output = Command::new("git").args(identity).args(arguments).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn cloned_shallow_into_a_directory_each() {
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost", "-out"])
        .arg(&certificate)
        .arg("-keyout")
        .arg(&key)
        .output();
    let python = Command::new("python3").arg("--version").output();
    if !made.is_ok_and(|output| output.status.success()) || python.is_err() {
        cliq_testkit::not_run("there is no openssl, or no python3");
        return;
    }
    for name in ["one", "two"] {
        let work = dir.path().join(name);
        std::fs::create_dir(&work).unwrap();
        git(&work, &["init", "-q"]);
        for text in ["first", name] {
            std::fs::write(work.join("file.txt"), text).unwrap();
            git(&work, &["add", "."]);
            git(&work, &["commit", "-qm", text]);
        }
        git(dir.path(), &["clone", "-q", "--bare", name, &format!("{name}.git")]);
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/a2a/clients/git_server.py");
    let mut child = Command::new("python3")
        .arg(script)
        .args([dir.path(), &certificate, &key])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut port = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let (_server, port) = (Server(child), port.trim().to_owned());
    let machine = machine_with(&json!({"repo_hosts": ["localhost"]}))
        .environment("GIT_SSL_CAINFO", certificate.to_str().unwrap());
    machine.team(
        "look",
        "outputs: [{name: found}]\nworkflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: \"cat one/file.txt two/file.txt > found; git -C one rev-list --count HEAD >> found\"}]}\n",
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let send = |id: &str, repos: &str| {
        let data = json!({"team": "@local/look", "repos": repos});
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"data": data}]});
        caller.call("1.0", "SendMessage", &json!({"message": message}))
    };
    let url = |name: &str| format!("https://localhost:{port}/{name}.git");
    let task = send("m1", &format!("{}, {}", url("one"), url("two")))["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    // Both, and one commit only.
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], "onetwo1\n", "{task}");
    // A host that is not in the list, and one that does not exist there.
    let error = send("m2", "https://github.com/a/b")["error"].clone();
    assert!(error["code"] == -32602 && error.to_string().contains("repo_hosts"), "{error}");
    let task = send("m3", &url("nosuch"))["result"]["task"].clone();
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
    // Without the list a private host is refused, in the task.
    drop(server);
    let file = machine.home.join("settings.json");
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    settings["server"]["a2a"].as_object_mut().unwrap().remove("repo_hosts");
    std::fs::write(file, settings.to_string()).unwrap();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let data = json!({"team": "@local/look", "repos": url("one")});
    let message = json!({"messageId": "m4", "role": "ROLE_USER", "parts": [{"data": data}]});
    let task = caller.ok("SendMessage", &json!({"message": message}))["task"].clone();
    assert!(task["status"].to_string().contains("not public"), "{task}");
}
