//! `cliq trigger` and `cliq audit`.

use cliq_testkit::machine::Machine;
use serde_json::{Value, json};

use crate::triggers::sender::{firings, machine_with, write};

const TRIGGERS: &str = r#"
  - name: issues
    preset: github-issue
    webhook: { secret: s }
    when: body.label.name == "cliq"
    team: "@local/quick"
  - name: nightly
    schedule: { cron: "30 2 * * *", timezone: Europe/Berlin }
    team: "@local/quick"
"#;

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn triggers_are_listed_shown_tested_and_paused() {
    let machine = machine_with(TRIGGERS, json!({}));
    let list = parsed(&machine.ok(&["trigger", "list", "--json"]));
    assert_eq!(list["triggers"][0]["path"], "/hooks/issues");
    assert_eq!(list["triggers"][1]["next"].as_array().unwrap().len(), 5);
    assert!(machine.ok(&["trigger", "list"]).contains("schedule: 30 2 * * * Europe/Berlin"));
    assert!(machine.ok(&["trigger", "validate"]).contains("2 triggers"));
    let payload = machine.path("payload.json");
    let body = json!({"action": "labeled", "label": {"name": "cliq"}, "issue": {"number": 7, "title": "A bug", "body": "It is\nbroken."}, "repository": {"full_name": "octo/repo"}});
    std::fs::write(&payload, body.to_string()).unwrap();
    let payload = payload.to_str().unwrap();
    let tested = parsed(&machine.ok(&["trigger", "test", "issues", "--payload", payload, "--json"]));
    assert_eq!((&tested["outcome"], &tested["title"]), (&json!("run"), &json!("A bug (#7)")));
    assert_eq!(tested["group"], "octo/repo#7");
    assert!(tested["requirement"].as_str().unwrap().contains("```external\nIt is\nbroken.\n```"), "{tested}");
    let text =
        machine.ok(&["trigger", "test", "issues", "--payload", payload, "--header", "X-GitHub-Event: push"]);
    assert!(text.contains("no run") && text.contains("`when` is false"), "{text}");
    // The team is not there yet: it may come before the trigger fires.
    for arguments in [vec!["trigger", "validate"], vec!["trigger", "test", "issues", "--payload", payload]] {
        let output = machine.cliq(&arguments);
        let warning = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(
            output.status.success() && warning.contains("issues: ") && warning.contains("@local/quick"),
            "{warning}"
        );
        assert_eq!(warning.matches("@local/quick").count(), 1, "once for all of its triggers: {warning}");
    }
    // Failures name what is wrong and what to do.
    let refused = |arguments: &[&str], code: i32, words: &[&str]| {
        let output = machine.cliq(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{arguments:?}: {error}");
    };
    refused(&["trigger", "show", "nightli"], 2, &["no trigger `nightli`", "did you mean nightly?"]);
    refused(&["trigger", "test", "issues", "--payload", "/nowhere"], 2, &["/nowhere"]);
    refused(&["trigger", "pause", "nightly"], 4, &["no server has seen", "cliq server start"]);
    refused(&["audit", "--since", "yesterday"], 2, &["ISO-8601"]);
    let server = machine.serve();
    machine.ok(&["trigger", "pause", "nightly"]);
    assert!(machine.ok(&["trigger", "show", "nightly"]).contains("paused"));
    assert_eq!(server.get("/api/v1/triggers/nightly").expect(200).json()["paused"], true);
    machine.ok(&["trigger", "resume", "nightly"]);
    assert!(firings(&server, "nightly").is_empty());
    let tested = server.post("/api/v1/triggers/issues/test", &json!({"body": body})).expect(200).json();
    assert_eq!(tested["outcome"], "run");
    server.post("/api/v1/triggers/none/test", &json!({})).expect(404);
    server.get("/api/v1/triggers/none/firings").expect(404);
    server.get("/api/v1/triggers/nightly/firings?state=x").expect(400);
    // Commands and requests are on record, tests are none.
    let audit = machine.ok(&["audit", "--json"]);
    let actions: Vec<Value> = audit.lines().map(parsed).collect();
    let actions: Vec<(&str, &str)> = actions
        .iter()
        .map(|entry| (entry["via"].as_str().unwrap(), entry["action"].as_str().unwrap()))
        .collect();
    assert_eq!(actions, [("command", "trigger pause"), ("command", "trigger resume")]);
    assert!(machine.ok(&["audit"]).contains("trigger resume"));
}

#[test]
fn problems_of_the_file_have_their_place() {
    let machine = Machine::new();
    write(
        &machine,
        r#"  - name: Upper
    schedule: { cron: "* * * *" }
    team: "@local/quick"
  - name: two
    schedule: { cron: "0 0 * * *", timezone: Nowhere }
    webhook: { signature: hmac, secret: s }
    team: "@local/quick"
  - name: none
    tema: "@local/quick"
  - name: expr
    webhook: { signature: hmac, secret: s }
    when: "run.x == 1 +"
    title: "$(body"
    inputs: { a: "$(run.title)" }
  - name: expr
    after: { state: done }
    when: "'text'"
    team: quick
  - name: files
    files: { glob: "../x" }
    repos: ["https://a.example/b"]
    project: /p
"#,
    );
    let output = machine.cliq(&["trigger", "validate", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report = parsed(&String::from_utf8_lossy(&output.stdout));
    let found: Vec<String> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|d| format!("{}:{} {}", d["line"], d["column"], d["code"].as_str().unwrap()))
        .collect();
    insta::assert_snapshot!(found.join("\n"));
    for (command, word) in [("example", "@cliq/hello-world"), ("schema", "\"triggers\"")] {
        assert!(machine.ok(&["trigger", command]).contains(word));
    }
    for example in ["schedule", "github-issue"] {
        std::fs::write(machine.home.join("triggers.yml"), machine.ok(&["trigger", "example", example]))
            .unwrap();
        machine.ok(&["trigger", "validate"]);
    }
    let schema = parsed(&machine.ok(&["trigger", "schema"]));
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&schema["properties"]["triggers"]["items"]["required"]).unwrap()
    );
}
