//! The bundled example: an issue that gets the label `cliq` becomes a run of `@cliq/feature-dev-js` and a pull request, against a git server
//! on this machine, with the API of GitHub behind Prism, which refuses requests and responses that do not fit the published description.

use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::triggers::sender::{SECRET, count_runs, decided, deliver, github, run_of};

/// A program that ends with this value.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn shell(dir: &Path, script: &str) {
    let output = Command::new("sh").args(["-ec", script]).current_dir(dir).output().unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The code host: git over TLS and the API behind Prism. Gives the port of git, that of Prism, and what the host prints.
fn code_host(dir: &Path, modules: &Path) -> (u16, u16, Vec<Program>, BufReader<ChildStdout>) {
    shell(
        dir,
        "openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -addext subjectAltName=DNS:localhost -days 2 -keyout key.pem -out cert.pem 2>/dev/null
        mkdir -p git/acme && git init -q --bare -b main git/acme/calc.git && git -C git/acme/calc.git config http.receivepack true
        git init -q -b main seed && cd seed && git config user.name T && git config user.email t@example.com
        printf '{\"name\": \"calc\", \"scripts\": {\"test\": \"node --test\"}}' > package.json && printf 'node_modules\n' > .gitignore && mkdir -p node_modules
        echo one > README.md && git add -A && git commit -qm first && echo two >> README.md && git commit -qam second
        git push -q ../git/acme/calc.git main",
    );
    let description = modules.join("@octokit/openapi/generated/api.github.com.json");
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/triggers/code_host.mjs");
    let mut host = Command::new("node")
        .arg(script)
        .args([&dir.join("git"), &dir.join("cert.pem"), &dir.join("key.pem")])
        .args([&description, &dir.join("description.json")])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(host.stdout.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let ports: Vec<u16> = line.split_whitespace().skip(1).map(|port| port.parse().unwrap()).collect();
    let prism = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let log = std::fs::File::create(dir.join("prism.log")).unwrap();
    let proxy = Command::new(modules.join(".bin/prism"))
        .args(["proxy", "--errors", "--host", "127.0.0.1", "--port", &prism.to_string()])
        .arg(dir.join("description.json"))
        .arg(format!("http://127.0.0.1:{}", ports[1]))
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    wait_for("Prism listens", || TcpStream::connect(("127.0.0.1", prism)).ok());
    (ports[0], prism, vec![Program(host), Program(proxy)], said)
}

/// A delivery that GitHub sends for a label, with the repository of this machine.
fn labelled(modules: &Path, label: &str, clone_url: &str) -> String {
    let text = std::fs::read(modules.join("@octokit/webhooks-examples/api.github.com/index.json")).unwrap();
    let events: Vec<Value> = serde_json::from_slice(&text).unwrap();
    let issues = events.iter().find(|event| event["name"] == "issues").unwrap();
    let found =
        issues["examples"].as_array().unwrap().iter().find(|body| body["action"] == "labeled").unwrap();
    let mut body = found.clone();
    body["label"]["name"] = label.into();
    body["issue"]["number"] = 7.into();
    body["issue"]["title"] = "Sums of numbers".into();
    body["issue"]["body"] = "A function that adds two numbers.".into();
    body["repository"]["clone_url"] = clone_url.into();
    body["repository"]["full_name"] = "acme/calc".into();
    body.to_string()
}

#[test]
fn labelled_issue_becomes_a_pull_request() {
    let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let is_there = ["@octokit/openapi", "@octokit/webhooks-examples", ".bin/prism"];
    if !is_there.iter().all(|name| modules.join(name).exists()) {
        return cliq_testkit::not_run("target/node has no description of GitHub's API (./test makes it)");
    }
    let modules = modules.canonicalize().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let person = dir.path().join("person");
    std::fs::create_dir_all(&person).unwrap();
    let (git, prism, _programs, mut said) = code_host(dir.path(), &modules);
    let clone_url = format!("https://localhost:{git}/acme/calc.git");
    // The person whose credentials the team pushes with.
    std::fs::write(person.join(".git-credentials"), format!("https://ann:secret-token@localhost:{git}\n"))
        .unwrap();
    let certificate = dir.path().join("cert.pem");
    let config = "[user]\n  name = Ann\n  email = ann@example.com\n[credential]\n  helper = store\n";
    std::fs::write(person.join(".gitconfig"), config).unwrap();
    let settings = json!({
        "default_agent": "scripted",
        "triggers": {"secrets": {"github": SECRET}, "repo_hosts": ["localhost"]},
        "integrations": {"github": {"url": format!("https://localhost:{git}"), "token": "secret-token"}},
    });
    let machine = Machine::new()
        .settings(&settings)
        .environment("GIT_SSL_CAINFO", certificate.to_str().unwrap())
        .environment("HOME", person.to_str().unwrap())
        .environment("GITHUB_API_URL", &format!("http://127.0.0.1:{prism}"));
    let agent = machine.home.join("agents/scripted");
    std::fs::create_dir_all(&agent).unwrap();
    std::fs::write(agent.join("manifest.json"), r#"{"name": "scripted", "entry": "agent.py"}"#).unwrap();
    std::fs::write(agent.join("agent.py"), include_str!("../outside/feature_dev_agent.py")).unwrap();
    std::fs::set_permissions(agent.join("agent.py"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(machine.home.join("triggers.yml"), machine.ok(&["trigger", "example", "github-issue"]))
        .unwrap();
    let server = machine.serve();
    // Another label starts nothing.
    let other = labelled(&modules, "bug", &clone_url);
    deliver(&server, "labelled-issue", &github("issues", "d1", &other), &other).expect(202);
    let body = labelled(&modules, "cliq", &clone_url);
    deliver(&server, "labelled-issue", &github("issues", "d2", &body), &body).expect(202);
    let found = decided(&server, "labelled-issue", 2);
    assert_eq!((&found[0]["state"], &found[1]["state"]), (&json!("skipped"), &json!("started")), "{found:?}");
    let run = server.ended(run_of(&found[1]));
    let log = std::fs::read_to_string(dir.path().join("prism.log")).unwrap();
    assert_eq!(run["state"], "completed", "{run}\n{log}");
    assert_eq!(run["title"], "Sums of numbers (#7)");
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    let pull: Value = serde_json::from_str(line.strip_prefix("PULL ").unwrap()).unwrap();
    assert_eq!(
        (&pull["owner"], &pull["name"], &pull["head"], &pull["base"]),
        (&json!("acme"), &json!("calc"), &json!("cliq/issue-7"), &json!("main")),
    );
    assert!(pull["body"].as_str().unwrap().contains("A function that adds two numbers."), "{pull}");
    let show = Command::new("git")
        .args(["-C", dir.path().join("git/acme/calc.git").to_str().unwrap()])
        .args(["show", "cliq/issue-7:sum.js"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&show.stdout), "exports.sum = (a, b) => a + b;\n");
    // The same delivery again starts nothing.
    deliver(&server, "labelled-issue", &github("issues", "d2", &body), &body).expect(200);
    assert_eq!(count_runs(&server), 1);
}
