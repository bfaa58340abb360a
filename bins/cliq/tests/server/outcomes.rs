//! Outcomes of runs: never overwritten, with the team of then, and with their caveats.

use std::path::Path;

use cliq_testkit::machine::{Machine, Running};
use serde_json::{Value, json};

fn assemble(machine: &Machine, project: &Path, team: &str) {
    machine.ok(&["-C", project.to_str().unwrap(), "assemble", team]);
}

/// Runs the assembled team of a project to its end.
fn run_in(server: &Running, instance: &Value) -> String {
    let id = server.start_run(&json!({"instance": instance["id"]}));
    server.ended(&id);
    id
}

#[test]
fn only_the_last_run_of_a_project_is_resumed_and_each_keeps_its_outcome_and_its_team() {
    let machine = Machine::new();
    machine.chain("first", &["echo a", "echo b"]);
    machine.team(
        "second",
        "workflow: {phases: [{name: other, type: exec, commands: [{name: c, run: 'exit 3'}]}]}\n",
    );
    let project = machine.project("p");
    assemble(&machine, &project, "@local/first");
    let server = machine.serve();
    let instance = server.post("/api/v1/instances", &json!({"path": project})).expect(201).json();
    let old = run_in(&server, &instance);
    let page = |id: &str| server.get(&format!("/runs/{id}")).expect(200).body;
    assert!(page(&old).contains("Run again from"), "it is the last run");
    assemble(&machine, &project, "@local/second");
    let last = run_in(&server, &instance);
    assert_eq!(server.run(&last)["state"], "escalated");

    let before = (server.run(&old), server.events(&old));
    for body in [json!({}), json!({"from": "p0"}), json!({"from": "other"})] {
        let refused = server.post(&format!("/api/v1/runs/{old}/resume"), &body).expect(409);
        if body != json!({}) {
            assert!(refused.body.contains(&last) && refused.body.contains("last run"), "{}", refused.body);
        }
    }
    assert_eq!((server.run(&old), server.events(&old)), before, "its outcome and its events stay");
    assert_eq!(before.0["state"], "completed");
    assert!(
        !page(&old).contains("Run again from") && !page(&old).contains("/resume"),
        "pages do not offer it"
    );
    assert!(page(&last).contains("Run again from"));

    // The graph and the team are those of then.
    let graph = |id: &str| server.get(&format!("/api/v1/runs/{id}/graph.svg")).expect(200).body;
    assert!(graph(&old).contains("p0") && !graph(&old).contains("other"));
    assert!(graph(&last).contains("other"));
    assert!(page(&old).contains("Team of the run") && page(&old).contains("@local/first"));
    std::fs::remove_file(project.join(format!(".cliq/history/{old}/run_team.json"))).unwrap();
    assert!(page(&old).contains("was not kept"), "no other team is shown in its place");
    server.get(&format!("/api/v1/runs/{old}/graph.svg")).expect(404);

    // On the command line, too.
    let refused = machine.cliq(&["-C", project.to_str().unwrap(), "run", "--resume", "--run-id", &old]);
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
}

#[test]
fn a_pass_with_failed_commands_is_no_plain_success() {
    let machine = Machine::new();
    machine.team(
        "optional",
        "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: c, run: 'true'}]}
    - name: check
      type: gate
      agent: rules
      depends_on: [work]
      commands: [{name: lint, run: 'exit 1'}]
      rules: [{if: 'true', to: PASS, reason: the lint is optional}]
",
    );
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/optional"}));
    let run = server.ended(&id);
    assert_eq!(
        (&run["state"], &run["caveats"]),
        (&json!("completed"), &json!(["pass_with_failures"])),
        "{run}"
    );
    let list = server.get("/api/v1/runs").expect(200).json();
    assert_eq!(list["runs"][0]["caveats"], json!(["pass_with_failures"]));
    for page in ["/".to_owned(), "/runs".to_owned(), format!("/runs/{id}"), format!("/runs/{id}/timeline")] {
        let body = server.get(&page).expect(200).body;
        assert!(body.contains("passed with failures") && body.contains("badge unclear"), "{page}: {body}");
    }
}

#[test]
fn estimated_usage_is_marked_on_pages() {
    let machine = Machine::new();
    machine.team(
        "spender",
        "agents: {spender: {entry: agents/spender}}
workflow:
  phases:
    - {name: exact, type: standard, agent: spender}
    - {name: rough, type: standard, agent: spender, depends_on: [exact]}
",
    );
    let agent = r#"#!/bin/sh
cat > /dev/null
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
[ "$CLIQ_PHASE" = exact ] || mark=',"estimated":true'
say '"status":"ok"'
say '"status":"complete","result":{"usage":{"model":"m-'$CLIQ_PHASE'","tokens_in":70,"tokens_out":7'$mark'}}'
"#;
    machine.agent("spender", "spender", agent, &["exact", "rough"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/spender"}));
    let run = server.ended(&id);
    assert_eq!(run["state"], "completed", "{run}");
    let estimated: Vec<&serde_json::Value> =
        run["phases"].as_array().unwrap().iter().map(|phase| &phase["usage"]["estimated"]).collect();
    assert_eq!(estimated, [&serde_json::Value::Null, &json!(true)], "{run}");
    let page = |path: &str| server.get(&format!("/runs/{id}{path}")).expect(200).body;
    let first = page("");
    assert!(first.contains("140 in, 14 out, cost unknown, estimated"), "{first}");
    assert_eq!(first.matches("≈77").count(), 1, "{first}");
    assert!(page("?phase=rough").contains("70 tokens in, 7 out, estimated"));
    assert!(!page("?phase=exact").contains("7 out, estimated"));
    let cost = page("/cost");
    // A row of the phase, one of the model, and their sums.
    assert_eq!(cost.matches("≈70").count(), 2, "{cost}");
    assert_eq!(cost.matches("≈140").count(), 2, "{cost}");
    assert!(cost.contains("replies that were cancelled, timed out or killed"), "{cost}");
}
