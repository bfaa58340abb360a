//! Runs that wait for people: a server keeps them without processes and places, and continues them after an answer.

use std::fs;
use std::path::PathBuf;

use cliq_testkit::machine::{Machine, Running, is_final, journal, processes_with, wait_for};
use serde_json::{Value, json};

/// A phase that works, a human gate with a command, and a phase after it.
pub(crate) fn asking(review: &str) -> String {
    format!(
        "workflow:
  phases:
    - name: writer
      type: exec
      commands: [{{name: write, run: 'echo written >> notes'}}]
    - name: approval
      type: hug
      depends_on: [writer]
      commands: [{{name: check, run: 'echo checked >> checks; test -f notes'}}]
      review: {review}
    - name: after
      type: exec
      depends_on: [approval]
      commands: [{{name: done, run: 'echo passed >> after'}}]
"
    )
}

pub(crate) fn machine(max_runs: u32) -> Machine {
    let machine = Machine::new().settings(&json!({"server": {"max_runs": max_runs, "recovery": "resume"}}));
    machine.team("ask", &asking("{reviewer: ann}"));
    machine.chain("quick", &["echo quick > quick"]);
    machine
}

pub(crate) fn workspace(machine: &Machine, id: &str) -> PathBuf {
    machine.home.join("workspaces").join(id)
}

#[track_caller]
pub(crate) fn parked(server: &Running, id: &str) -> Value {
    wait_for("the run is parked", || {
        let run = server.run(id);
        assert!(!is_final(&run), "{run}");
        (run["state"] == "waiting").then_some(run)
    })
}

pub(crate) fn review_of(server: &Running, id: &str) -> String {
    let reviews = server.get(&format!("/api/v1/reviews?run_id={id}&pending=true")).expect(200).json();
    let mut own = reviews["reviews"].as_array().unwrap().iter().filter(|review| review["run_id"] == id);
    own.next().unwrap_or_else(|| panic!("{id} has no review: {reviews}"))["id"].as_str().unwrap().to_owned()
}

pub(crate) fn approve(server: &Running, id: &str) {
    let review = review_of(server, id);
    let body = json!({"reviewer": "ann", "verdict": "approve"});
    server.post(&format!("/api/v1/reviews/{review}/decision"), &body).expect(200);
}

fn kinds(server: &Running, id: &str) -> Vec<String> {
    let events = server.events(id);
    events.iter().map(|(_, event)| event["event"].as_str().unwrap().to_owned()).collect()
}

/// Checks that each phase of a run was executed once, and that the run was decided and ended once.
#[track_caller]
fn done_once(machine: &Machine, id: &str) {
    let read = |name: &str| fs::read_to_string(workspace(machine, id).join(name)).unwrap_or_default();
    assert_eq!(
        (read("notes"), read("checks"), read("after")),
        ("written\n".into(), "checked\n".into(), "passed\n".into())
    );
    let journal = journal(&workspace(machine, id));
    let count = |kind: &str| journal.iter().filter(|event| event["event"] == kind).count();
    assert_eq!((count("verdict"), count("run_finished")), (1, 1));
}

#[test]
fn waiting_runs_take_no_place_and_continue_after_the_answer() {
    let machine = machine(1);
    let server = machine.serve();
    let asking: Vec<String> = (0..4).map(|_| server.start_run(&json!({"team": "@local/ask"}))).collect();
    for id in &asking {
        let run = parked(&server, id);
        assert!(run["wake_at"].is_string(), "{run}");
        assert_eq!(run["phases"][1]["status"], "running", "its phases are shown: {run}");
        assert_eq!(run["phases"][1]["review"]["reviewers"], json!(["ann"]));
        assert_eq!(processes_with(id), [0_u32; 0], "it holds no process");
    }
    assert!(server.get("/metrics").expect(200).body.contains("cliq_runs{state=\"waiting\"} 4"), "metrics");
    let listed = server.get("/api/v1/runs?state=waiting").expect(200).json();
    assert_eq!(listed["runs"].as_array().unwrap().len(), 4);
    let quick = server.start_run(&json!({"team": "@local/quick"}));
    assert_eq!(server.ended(&quick)["state"], "completed");
    for id in asking.iter().rev() {
        approve(&server, id);
        assert_eq!(server.ended(id)["state"], "completed");
        done_once(&machine, id);
        let kinds = kinds(&server, id);
        let own: Vec<&str> = kinds
            .iter()
            .map(String::as_str)
            .filter(|kind| {
                [
                    "run_queued",
                    "run_dispatched",
                    "run_parked",
                    "run_waiting",
                    "run_woken",
                    "run_resumed",
                    "run_finished",
                ]
                .contains(kind)
            })
            .collect();
        // While the only place is taken, the others are dispatched later: the order is the same.
        assert_eq!(
            own,
            [
                "run_queued",
                "run_dispatched",
                "run_parked",
                "run_waiting",
                "run_woken",
                "run_dispatched",
                "run_resumed",
                "run_finished"
            ]
        );
    }
}

#[test]
fn answers_of_other_processes_and_while_the_server_is_down_count() {
    let machine = machine(2);
    let server = machine.serve();
    machine.keep_port(&server);
    let [first, second] = [(); 2].map(|()| server.start_run(&json!({"team": "@local/ask"})));
    parked(&server, &first);
    parked(&server, &second);
    let approve = |review: &str| {
        let output = machine.cliq(&["review", "approve", review, "--as", "ann"]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let said = approve(&review_of(&server, &first));
    assert!(!said.contains("--resume"), "a server continues its runs: {said}");
    assert_eq!(server.ended(&first)["state"], "completed");
    let review = review_of(&server, &second);
    server.kill();
    assert!(approve(&review).contains("`cliq server start` continues the run"));
    let server = machine.serve();
    assert_eq!(server.ended(&second)["state"], "completed");
    for id in [&first, &second] {
        done_once(&machine, id);
    }
}

#[test]
fn parked_run_is_cancelled_with_its_review() {
    let machine = machine(1);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/ask"}));
    parked(&server, &id);
    let review = review_of(&server, &id);
    let run = server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202).json();
    assert_eq!(run["cancel_requested"], true, "{run}");
    let run = server.ended(&id);
    assert_eq!(run["state"], "cancelled", "{run}");
    let review = server.get(&format!("/api/v1/reviews/{review}")).expect(200).json();
    assert_eq!(review["state"], "cancelled", "{review}");
    assert!(!workspace(&machine, &id).join("after").exists());
}

/// The reviews of sub-teams are stored with the run of the team: the run around it waits for them too.
#[test]
fn runs_with_sub_teams_park_and_continue_after_the_answer() {
    let machine = machine(1);
    machine.team(
        "outer",
        "workflow:
  phases:
    - {name: sub, type: team, team: \"@local/ask\"}
    - {name: last, type: exec, depends_on: [sub], commands: [{name: c, run: 'echo last >> last'}]}
",
    );
    let server = machine.serve();
    let ids: Vec<String> = (0..3).map(|_| server.start_run(&json!({"team": "@local/outer"}))).collect();
    for id in &ids {
        let run = parked(&server, id);
        assert_eq!(run["phases"][0]["review"]["reviewers"], json!(["ann"]), "{run}");
        assert_eq!(processes_with(id), [0_u32; 0], "it holds no process");
    }
    for id in ids.iter().rev() {
        let review = server.run(id)["phases"][0]["review"]["id"].as_str().unwrap().to_owned();
        let body = json!({"reviewer": "ann", "verdict": "approve"});
        server.post(&format!("/api/v1/reviews/{review}/decision"), &body).expect(200);
        assert_eq!(server.ended(id)["state"], "completed");
        let read = |name: &str| fs::read_to_string(workspace(&machine, id).join(name)).unwrap_or_default();
        let files = ["notes", "checks", "after", "last"].map(read);
        assert_eq!(files, ["written\n", "checked\n", "passed\n", "last\n"]);
    }
}

#[test]
fn deadline_wakes_the_run_on_time() {
    let machine = machine(1);
    machine.team("brief", &asking("{reviewer: ann, timeout: 2s}"));
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/brief"}));
    parked(&server, &id);
    let run = server.ended(&id);
    let kinds = kinds(&server, &id);
    assert!(kinds.iter().any(|kind| kind == "run_woken"), "{kinds:?} {run}");
    assert_eq!(run["state"], "escalated", "{run}");
}

#[test]
fn parked_run_of_a_person_is_followed_when_it_is_resumed() {
    let machine = machine(1);
    machine.team("ask", &asking("{reviewer: ann}"));
    let project = machine.project("project");
    let server = machine.serve();
    server.post("/api/v1/instances", &json!({"path": project})).expect(201);
    let dir = project.to_str().unwrap();
    machine.ok(&["-C", dir, "assemble", "@local/ask"]);
    let output = machine.cliq(&["-C", dir, "run", "--headless", "--park"]);
    assert_eq!(output.status.code(), Some(6));
    let listed = || server.get("/api/v1/runs").expect(200).json()["runs"][0].clone();
    let run = wait_for("the run is found", || (listed()["state"] == "waiting").then(listed));
    assert_eq!(run["wake_at"], Value::Null, "a person resumes it");
    machine.ok(&["-C", dir, "review", "approve", "--as", "ann"]);
    machine.ok(&["-C", dir, "run", "--resume", "--headless", "--park"]);
    let id = run["id"].as_str().unwrap();
    assert_eq!(server.ended(id)["state"], "completed");
    assert!(!kinds(&server, id).contains(&"run_woken".to_owned()));
}
