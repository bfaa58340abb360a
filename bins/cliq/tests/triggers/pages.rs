//! The pages of triggers and of the audit log, in a real browser.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;

use crate::triggers::sender::{decided, deliver, github, machine_with};

const TRIGGERS: &str = r#"
  - name: issues
    preset: github-issue
    webhook: { secret: s }
    when: body.label.name == "cliq"
    team: "@local/quick"
  - name: nightly
    schedule: { cron: "30 2 1 1 *", timezone: Europe/Berlin, catch_up: last }
    team: "@local/quick"
  - name: unset
    webhook: { signature: hmac, secret: other }
    team: "@local/quick"
"#;

#[test]
fn a_person_at_the_pages_of_triggers() {
    let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let has_chromium = Command::new("chromium").arg("--version").output().is_ok_and(|o| o.status.success());
    if !has_chromium || !modules.join("playwright-core").exists() || !modules.join("axe-core").exists() {
        return cliq_testkit::not_run(
            "there is no chromium, or target/node with playwright-core (./test makes it)",
        );
    }
    let machine = machine_with(TRIGGERS, json!({}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let issue = |n: u32, label: &str| {
        let text = json!({"action": "labeled", "label": {"name": label}, "issue": {"number": n, "title": "A <b>bug</b>", "body": "Broken."}, "repository": {"full_name": "octo/repo"}}).to_string();
        deliver(&server, "issues", &github("issues", &format!("d{n}"), &text), &text).expect(202);
    };
    issue(1, "bug");
    issue(2, "cliq");
    decided(&server, "issues", 2);
    let link = machine.ok(&["server", "open"]);
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("triggers");
    std::fs::create_dir_all(&pictures).unwrap();
    let mut node = Command::new("node")
        .arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/triggers/pages.mjs"))
        .arg(link.trim())
        .env("NODE_MODULES", modules.canonicalize().unwrap())
        .env("PICTURES", pictures)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reply = node.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        println!("{line}");
        if line == "DELIVER" {
            issue(3, "cliq");
            writeln!(reply, "done").unwrap();
        }
        said.push(line);
    }
    assert!(node.wait().unwrap().success(), "{}", said.join("\n"));
    assert_eq!(said.last().map(String::as_str), Some("ALL DONE"));
}
