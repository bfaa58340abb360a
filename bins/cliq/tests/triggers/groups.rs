//! Concurrency groups and ends of runs, with real runs.

use cliq_testkit::machine::{Running, wait_for};
use serde_json::{Value, json};

use crate::triggers::sender::{decided, deliver, firings, machine_with, plain, run_of};

fn triggers(policy: &str) -> String {
    format!(
        r#"
  - name: work
    webhook: {{ signature: hmac, secret: s }}
    team: "@local/waits"
    inputs: {{ n: "$(body.n)" }}
    concurrency: {{ group: "deploy $(body.target)", policy: {policy} }}
"#
    )
}

/// Works until the file of its number is there.
const WAITS: &str = "inputs: [{name: n, required: true}]
workflow: {phases: [{name: w, type: exec, commands: [{name: c, run: 'until test -e ../../go-$(inputs.n); do sleep 0.05; done'}]}]}
";

fn send(server: &Running, n: u32, target: &str) {
    let body = json!({"n": n, "target": target}).to_string();
    deliver(server, "work", &plain(&n.to_string(), &body), &body).expect(202);
}

/// Waits until the firing number `n` (1-based) has this state.
#[track_caller]
fn firing(server: &Running, n: usize, state: &str) -> Value {
    wait_for(&format!("firing {n} is {state}"), || {
        let found = firings(server, "work").get(n - 1)?.clone();
        (found["state"] == state).then_some(found)
    })
}

#[track_caller]
fn runs(server: &Running, firing: &Value) {
    wait_for("it works", || (server.run(run_of(firing))["state"] == "running").then_some(()));
}

#[test]
fn queued_causes_take_turns() {
    let machine = machine_with(&triggers("queue"), json!({"server": {"sandbox": "off"}}));
    machine.team("waits", WAITS);
    let go = |n: u32| std::fs::write(machine.home.join(format!("go-{n}")), "").unwrap();
    let server = machine.serve();
    for n in 1..=3 {
        send(&server, n, "a");
    }
    send(&server, 4, "b");
    let first = firing(&server, 1, "started");
    runs(&server, &first);
    // Another group does not wait.
    runs(&server, &firing(&server, 4, "started"));
    let second = wait_for("it waits", || {
        firings(&server, "work").get(1).filter(|f| f["group"] == "deploy a").cloned()
    });
    assert!(second["reason"].as_str().unwrap().contains(run_of(&first)), "{second}");
    go(1);
    let second = firing(&server, 2, "started");
    assert_eq!(firings(&server, "work")[2]["state"], "pending", "one after the other");
    // A server that is killed keeps those that wait.
    server.kill();
    let server = machine.serve();
    runs(&server, &second);
    go(2);
    let third = firing(&server, 3, "started");
    go(3);
    go(4);
    for firing in [&first, &second, &third] {
        assert_eq!(server.ended(run_of(firing))["state"], "completed");
    }
}

#[test]
fn skipped_causes_start_nothing() {
    let machine = machine_with(&triggers("skip"), json!({"server": {"sandbox": "off"}}));
    machine.team("waits", WAITS);
    let server = machine.serve();
    send(&server, 1, "a");
    let first = firing(&server, 1, "started");
    send(&server, 2, "a");
    let second = firing(&server, 2, "skipped");
    assert!(second["reason"].as_str().unwrap().contains(run_of(&first)), "{second}");
    std::fs::write(machine.home.join("go-1"), "").unwrap();
    server.ended(run_of(&first));
    send(&server, 3, "a");
    firing(&server, 3, "started");
    std::fs::write(machine.home.join("go-3"), "").unwrap();
}

#[test]
fn newer_cause_cancels_the_active_run_and_those_that_wait() {
    let machine = machine_with(&triggers("cancel"), json!({"server": {"sandbox": "off"}}));
    machine.team("waits", WAITS);
    let server = machine.serve();
    send(&server, 1, "a");
    let first = firing(&server, 1, "started");
    runs(&server, &first);
    send(&server, 2, "a");
    send(&server, 3, "a");
    assert_eq!(server.ended(run_of(&first))["state"], "cancelled");
    let third = firing(&server, 3, "started");
    std::fs::write(machine.home.join("go-3"), "").unwrap();
    assert_eq!(server.ended(run_of(&third))["state"], "completed");
    // The one between them was skipped, or started and was cancelled: it depends on the moment.
    let second = decided(&server, "work", 3)[1].clone();
    if second["state"] == "started" {
        assert_eq!(server.ended(run_of(&second))["state"], "cancelled");
    } else {
        assert!(second["reason"].as_str().unwrap().contains("newer"), "{second}");
    }
}

#[test]
fn ends_of_runs_start_others_and_chains_are_bounded() {
    let triggers = r#"
  - name: on-failure
    after: { team: "@local/fails", state: [failed, escalated] }
    when: run.trigger == null
    team: "@local/quick"
    title: "After $(run.state): $(run.title)"
  - name: circle
    after: { team: "@local/circle" }
    team: "@local/circle"
"#;
    let machine = machine_with(triggers, json!({}));
    machine.chain("fails", &["exit 3"]);
    machine.chain("quick", &["true"]);
    machine.chain("circle", &["true"]);
    let server = machine.serve();
    let failed = server.start_run(&json!({"team": "@local/fails", "title": "A failure"}));
    let state = server.ended(&failed)["state"].as_str().unwrap().to_owned();
    let found = decided(&server, "on-failure", 1);
    let run = server.ended(run_of(&found[0]));
    assert_eq!(run["title"], format!("After {state}: A failure"));
    assert!(found[0]["cause"].as_str().unwrap().contains(&failed), "{}", found[0]);
    // A completed one of the same team is no cause, and an end counts once across a kill.
    server.start_run(&json!({"team": "@local/circle"}));
    wait_for("some runs follow each other", || (firings(&server, "circle").len() >= 3).then_some(()));
    server.kill();
    let server = machine.serve();
    let circle = wait_for("the chain ends", || {
        let found = firings(&server, "circle");
        found.last().is_some_and(|last| last["state"] == "skipped").then_some(found)
    });
    assert_eq!(circle.len(), 11, "ten runs and the reason for no eleventh");
    assert!(circle[10]["reason"].as_str().unwrap().contains("10 triggers in a row"), "{}", circle[10]);
    assert_eq!(firings(&server, "on-failure").len(), 1);
}
