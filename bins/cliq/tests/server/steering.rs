//! Guidance for runs of a server: queued, working, parked and finished ones.

use std::fs;

use cliq_testkit::machine::{Machine, Running, journal, wait_for};
use serde_json::{Value, json};

use crate::server::parking::{approve, parked, review_of, workspace};

/// Records its dispatch message as `PHASE.json`, and completes once the workspace contains `go`.
const AGENT: &str = r#"#!/bin/sh
cat > "$CLIQ_WORKSPACE/$CLIQ_PHASE.json"
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
say '"status":"ok"'
until test -e "$CLIQ_WORKSPACE/go"; do sleep 0.02; done
say '"status":"complete","result":{}'
"#;
const TEAM: &str = "agents: {waits: {entry: agents/waits}}
workflow:
  phases:
    - {name: first, type: standard, agent: waits}
    - name: approval
      type: hug
      depends_on: [first]
      review: {reviewer: ann}
    - {name: last, type: standard, agent: waits, depends_on: [approval]}
    - {name: lint, type: exec, depends_on: [last], commands: [{name: t, run: 'true'}]}
";

fn machine(max_runs: u32) -> Machine {
    let machine = Machine::new().settings(&json!({"server": {"max_runs": max_runs, "recovery": "resume"}}));
    machine.team("guided", TEAM);
    machine.agent("guided", "waits", AGENT, &["first", "last", "approval"]);
    machine.chain("blocker", &["until test -e ../go; do sleep 0.02; done"]);
    machine
}

fn dispatched(machine: &Machine, id: &str, phase: &str) -> Option<Vec<String>> {
    let text = fs::read_to_string(workspace(machine, id).join(format!("{phase}.json"))).ok()?;
    let message: Value = serde_json::from_str(&text).ok()?;
    let steering = message["steering"].as_array().cloned().unwrap_or_default();
    Some(steering.iter().map(|message| message["text"].as_str().unwrap().to_owned()).collect())
}

fn steer(server: &Running, id: &str, body: &Value) -> Value {
    server.post(&format!("/api/v1/runs/{id}/steering"), body).expect(201).json()
}

/// Each message as `id phases`, in the order of the API.
fn delivered(server: &Running, id: &str) -> Vec<String> {
    let list = server.get(&format!("/api/v1/runs/{id}/steering")).expect(200).json();
    let messages = list["messages"].as_array().unwrap().iter();
    let shown = messages.map(|message| {
        let deliveries = message["delivered"].as_array().unwrap();
        assert_eq!(message["pending"], deliveries.is_empty(), "{message}");
        let to = deliveries.iter().map(|d| format!(" {}.{}", d["phase"].as_str().unwrap(), d["activation"]));
        format!("{}{}", message["id"].as_str().unwrap(), to.collect::<String>())
    });
    shown.collect()
}

#[test]
fn a_run_receives_messages_in_every_state() {
    let machine = machine(1);
    let server = machine.serve();
    let blocker = server.start_run(&json!({"team": "@local/blocker"}));
    wait_for("the blocker works", || (server.run(&blocker)["state"] == "running").then_some(()));
    let id = server.start_run(&json!({"team": "@local/guided"}));
    // Queued: it has no workspace yet.
    let sent = steer(&server, &id, &json!({"text": "queued", "id": "m1"}));
    assert_eq!((&sent["id"], &sent["pending"], &sent["phase"]), (&"m1".into(), &true.into(), &Value::Null));
    steer(&server, &id, &json!({"text": "queued", "id": "m1"}));
    steer(&server, &id, &json!({"text": "for the last", "phase": "last", "id": "m2"}));
    let path = format!("/api/v1/runs/{id}/steering");
    server.post(&path, &json!({"text": "x", "phase": "none"})).expect(409);
    server.post(&path, &json!({"text": "x", "phase": "lint"})).expect(409);
    assert_eq!(delivered(&server, &id), ["m1", "m2"]);
    fs::write(machine.home.join("workspaces/go"), "").unwrap();
    let first = wait_for("the first phase", || dispatched(&machine, &id, "first"));
    assert_eq!(first, ["queued"]);
    // Working.
    let sent = steer(&server, &id, &json!({"text": "working", "id": "m3"}));
    assert!(!sent["from"].as_str().unwrap().is_empty());
    wait_for("the delivery", || (delivered(&server, &id)[0] == "m1 first.1").then_some(()));
    server.post(&path, &json!({"text": "other", "id": "m3"})).expect(409);
    // Parked: stored, and not woken.
    fs::write(workspace(&machine, &id).join("go"), "").unwrap();
    parked(&server, &id);
    steer(&server, &id, &json!({"text": "parked", "id": "m4"}));
    assert_eq!(delivered(&server, &id), ["m1 first.1 approval.1", "m2", "m3 approval.1", "m4"]);
    assert_eq!(server.run(&id)["state"], "waiting");
    let review = review_of(&server, &id);
    assert!(!review.is_empty());
    approve(&server, &id);
    server.ended(&id);
    assert_eq!(dispatched(&machine, &id, "last").unwrap(), ["queued", "for the last", "working", "parked"]);
    let last = delivered(&server, &id);
    assert_eq!(last[..3], ["m1 first.1 approval.1 last.1", "m2 last.1", "m3 approval.1 last.1"]);
    assert!(["m4 last.1", "m4 approval.1 last.1"].contains(&last[3].as_str()), "{last:?}");
    server.post(&path, &json!({"text": "late"})).expect(409);
    let records = journal(&workspace(&machine, &id));
    let count = |kind: &str| records.iter().filter(|record| record["event"] == kind).count();
    assert_eq!(count("steering_received"), 4);
    // The same events, in the same order, as the journal.
    let kinds = |events: Vec<Value>| -> Vec<String> {
        let events =
            events.into_iter().filter(|event| event["event"].as_str().unwrap().starts_with("steering_"));
        events.map(|e| format!("{} {}", e["event"], e["id"])).filter(|e| !e.contains("stored")).collect()
    };
    let stored = server.events(&id).into_iter().map(|(_, event)| event).collect();
    assert_eq!(kinds(stored), kinds(records));
    let page = server.get(&format!("/runs/{id}")).expect(200).body;
    assert!(page.contains("Guidance") && page.contains("for the last"), "{page}");
}

#[test]
fn requests_outside_of_the_rules_are_refused() {
    let machine = machine(2);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/guided"}));
    wait_for("the first phase", || dispatched(&machine, &id, "first"));
    let path = format!("/api/v1/runs/{id}/steering");
    for (body, status) in [
        (json!({"text": ""}), 422),
        (json!({"text": "x".repeat(16385)}), 422),
        (json!({"text": "x", "id": "a b"}), 422),
        (json!({"text": "x", "phase": "no phase"}), 409),
        (json!({"text": "x", "phase": "frist"}), 409),
        (json!({"text": "x", "unknown": 1}), 422),
        (json!({"text": 1}), 422),
        (json!({}), 422),
    ] {
        let answer = server.post(&path, &body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
    }
    server
        .post("/api/v1/runs/0197a3f0-0000-7000-8000-000000000000/steering", &json!({"text": "x"}))
        .expect(404);
    for n in 0..200 {
        steer(&server, &id, &json!({"text": "x", "id": n.to_string()}));
    }
    server.post(&path, &json!({"text": "x"})).expect(409);
    let order: Vec<String> = (0..200).map(|n| n.to_string()).collect();
    wait_for("all messages", || (delivered(&server, &id) == order).then_some(()));
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    server.ended(&id);
}
