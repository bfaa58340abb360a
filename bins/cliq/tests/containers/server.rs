//! A server whose runs work in containers.

use std::fs;

use cliq_testkit::agent::Caller;
use cliq_testkit::machine::{Machine, wait_for};
use cliq_testkit::steps::outlives_servers_and_followers;
use serde_json::json;

use crate::containers::engine::{containers, image, make_image, of_run, running, said};

fn machine() -> Option<Machine> {
    let image = image()?;
    Some(Machine::new().settings(&json!({"docker": {"enabled": true, "image": image, "memory": "1g"}})))
}

#[test]
fn runs_of_a_server_outlive_it_and_their_followers() {
    let Some(machine) = machine() else { return };
    let workspaces = machine.home.join("workspaces");
    outlives_servers_and_followers(&machine, &workspaces, |id| of_run(id).len());
    // The last run's follower was killed; the next run removes what it could not, when that has ended.
    wait_for("the last container ends", || (running(&machine.home) == 0).then_some(()));
    machine.chain("next", &["true"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/next"}));
    assert_eq!(server.ended(&id)["state"], "completed");
    wait_for("the containers go", || containers(&machine.home).is_empty().then_some(()));
}

#[test]
fn a_run_of_a_server_is_cancelled() {
    let Some(machine) = machine() else { return };
    machine.chain("long", &["touch begun; sleep 61.5"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/long"}));
    let workspace = machine.home.join("workspaces").join(&id);
    wait_for("the phase works", || workspace.join("begun").exists().then_some(()));
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&id)["state"], "cancelled");
    wait_for("the container goes", || containers(&machine.home).is_empty().then_some(()));
}

#[test]
fn run_that_waits_for_a_person_has_no_container() {
    let Some(machine) = machine() else { return };
    machine.team(
        "ask",
        "workflow:
  phases:
    - name: approval
      type: hug
      commands: [{name: check, run: 'echo checked >> checks'}]
      review: {reviewer: ann}
    - name: after
      type: exec
      depends_on: [approval]
      commands: [{name: done, run: 'echo passed >> after'}]
",
    );
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/ask"}));
    wait_for("the run is parked", || (server.run(&id)["state"] == "waiting").then_some(()));
    wait_for("the container goes", || containers(&machine.home).is_empty().then_some(()));
    let reviews = server.get(&format!("/api/v1/reviews?run_id={id}")).expect(200).json();
    let review = reviews["reviews"][0]["id"].as_str().unwrap();
    let body = json!({"reviewer": "ann", "verdict": "approve"});
    server.post(&format!("/api/v1/reviews/{review}/decision"), &body).expect(200);
    assert_eq!(server.ended(&id)["state"], "completed");
    let workspace = machine.home.join("workspaces").join(&id);
    let read = |name: &str| fs::read_to_string(workspace.join(name)).unwrap();
    assert_eq!((read("checks"), read("after")), ("checked\n".into(), "passed\n".into()));
}

#[test]
fn the_image_of_the_server_serves() {
    if image().is_none() {
        return;
    }
    let made = make_image("server");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let hardened =
        ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
    let token = "a-long-random-text-of-the-administrator-0123456789";
    let variable = format!("CLIQ_ADMIN_TOKEN={token}");
    let run = [&["run", "-d", "--rm", "-e", &variable][..], &hardened, &["cliq-server:test"]].concat();
    let id = said(&run);
    let shown = crate::containers::engine::inspect(&id);
    let address = shown["NetworkSettings"]["IPAddress"].as_str().unwrap().to_owned();
    let base = format!("http://{address}:4100");
    let get = |path: &str| {
        ureq::get(format!("{base}{path}")).header("authorization", &format!("Bearer {token}")).call()
    };
    wait_for("the server", || get("/readyz").ok().filter(|answer| answer.status() == 200).map(drop));
    let runs = get("/api/v1/runs").unwrap().body_mut().read_to_string().unwrap();
    assert!(runs.contains("\"runs\":[]") || runs.contains("\"items\":[]"), "{runs}");
    assert_eq!(said(&["exec", &id, "id", "-u"]), "1000");
    said(&["stop", &id]);
}

#[test]
fn a_task_of_a2a_works_in_a_container() {
    let Some(image) = image() else { return };
    let machine = Machine::new()
        .settings(&json!({
            "docker": {"enabled": true, "image": image, "memory": "1g"},
            "server": {"a2a": {"advertise": ["@"], "instance_id": "cliq-test"}},
        }))
        .arguments(&["--a2a"]);
    machine.chain("where", &["hostname"]);
    machine.chain("long", &["sleep 61.5"]);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/where");
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let own = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let events = server.events(&id);
    let (_, finished) = events.iter().find(|(_, event)| event["event"] == "commands_finished").unwrap();
    let host = finished["results"][0]["output_tail"].as_str().unwrap();
    assert!(host.len() > 4 && host.trim() != own.trim(), "{finished}");
    wait_for("the container goes", || containers(&machine.home).is_empty().then_some(()));
    // A caller cancels it, as any other.
    let id = caller.start("m2", "@local/long");
    wait_for("it works", || (!containers(&machine.home).is_empty()).then_some(()));
    caller.works(&id);
    caller.ok("CancelTask", &json!({"id": id}));
    assert_eq!(caller.ended(&id)["status"]["state"], "TASK_STATE_CANCELED");
    wait_for("the container goes", || containers(&machine.home).is_empty().then_some(()));
}

/// The inbox and the steering file lie in the mounted project: a message of the host reaches an agent in a container while it works.
#[test]
fn agent_in_a_container_receives_a_steering_message() {
    let Some(machine) = machine() else { return };
    machine.team(
        "guided",
        "agents: {listens: {entry: agents/listens}}
workflow:
  phases:
    - {name: work, type: standard, agent: listens}
",
    );
    let agent = r#"#!/bin/sh
message=$(cat)
file=$(printf '%s' "$message" | sed -n 's/.*"steering_file": "\([^"]*\)".*/\1/p')
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
say '"status":"ok"'
touch ready
until grep -q . "$file"; do sleep 0.05; done
cat "$file" > heard
say '"status":"complete","result":{}'
"#;
    machine.agent("guided", "listens", agent, &["work"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/guided"}));
    let workspace = machine.home.join("workspaces").join(&id);
    wait_for("the agent works", || workspace.join("ready").exists().then_some(()));
    let path = format!("/api/v1/runs/{id}/steering");
    server.post(&path, &json!({"text": "Only one page.", "id": "m1"})).expect(201);
    assert_eq!(server.ended(&id)["state"], "completed");
    assert!(fs::read_to_string(workspace.join("heard")).unwrap().contains("Only one page."));
    let messages = server.get(&path).expect(200).json()["messages"].clone();
    assert_eq!(
        (&messages[0]["pending"], &messages[0]["delivered"][0]["phase"]),
        (&false.into(), &"work".into())
    );
}
