//! Recovery of runs whose orchestrator died (setting `server.recovery`): marked as failed, or resumed.

use std::fs;
use std::path::Path;

use cliq_testkit::machine::{Machine, processes_with, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// The orchestrator that works in a workspace.
fn orchestrator(workspace: &Path) -> Option<Pid> {
    let text = fs::read_to_string(workspace.join(".cliq/lock")).ok()?;
    Pid::from_raw(text.trim().parse().ok()?)
}

fn kill(workspace: &Path) {
    let pid = wait_for("the orchestrator works", || orchestrator(workspace));
    kill_process(pid, Signal::KILL).unwrap();
}

fn kinds(events: &[(i64, Value)]) -> Vec<&str> {
    events.iter().map(|(_, event)| event["event"].as_str().unwrap()).collect()
}

#[test]
fn a_run_whose_orchestrator_dies_is_marked_failed_and_nothing_is_left() {
    let machine = Machine::new();
    machine.chain("long", &["echo begun > begun; sleep 61.5"]);
    for server_dies_too in [false, true] {
        let server = machine.serve();
        let id = server.start_run(&json!({"team": "@local/long"}));
        let workspace = machine.home.join("workspaces").join(&id);
        wait_for("the phase works", || workspace.join("begun").exists().then_some(()));
        assert!(!processes_with(&id).is_empty());
        kill(&workspace);
        let server = if server_dies_too {
            server.kill();
            machine.serve()
        } else {
            server
        };
        let run = server.ended(&id);
        assert_eq!(run["state"], "failed");
        assert!(run["reason"].as_str().unwrap().contains("its orchestrator died"), "{run}");
        assert_eq!(run["phases"][0]["name"], "p0", "its phases are kept");
        let events = server.events(&id);
        assert_eq!(kinds(&events)[events.len() - 2..], ["orchestrator_died", "run_finished"]);
        wait_for("the workspace is removed", || (!workspace.exists()).then_some(()));
        assert_eq!(processes_with(&id), [0_u32; 0], "no process is left");
        // Requests for files that are gone get 410.
        server.get(&format!("/api/v1/runs/{id}/logs")).expect(410);
        server.get(&format!("/api/v1/runs/{id}/timeline")).expect(410);
    }
}

#[test]
fn a_run_whose_workspace_is_deleted_ends() {
    for recovery in ["fail", "resume"] {
        let machine = Machine::new().settings(&json!({"server": {"recovery": recovery}}));
        machine.chain("long", &["echo begun > begun; sleep 61.5"]);
        let server = machine.serve();
        let id = server.start_run(&json!({"team": "@local/long"}));
        let workspace = machine.home.join("workspaces").join(&id);
        wait_for("the phase works", || workspace.join("begun").exists().then_some(()));
        // For the server, a run begins with the first line of its journal that it reads.
        wait_for("the server knows it", || {
            (server.run(&id)["phases"][0]["status"] == "running").then_some(())
        });
        // The run may make a file in a directory that is just being emptied.
        wait_for("it is deleted", || fs::remove_dir_all(&workspace).ok());
        let run = server.ended(&id);
        assert_eq!(run["state"], "failed");
        let reason = run["reason"].as_str().unwrap();
        assert!(reason.contains("its workspace was deleted"), "{recovery}: {reason}");
        assert_eq!(processes_with(&id), [0_u32; 0], "no process is left");
    }
}

#[test]
fn a_run_whose_orchestrator_dies_is_resumed() {
    let machine = Machine::new().settings(&json!({"server": {"recovery": "resume"}}));
    machine.chain("steps", &["echo 0 >> ran", "echo 1 >> ran; test -e go || sleep 61.5", "echo 2 >> ran"]);
    for server_dies_too in [false, true] {
        let server = machine.serve();
        let id = server.start_run(&json!({"team": "@local/steps"}));
        let workspace = machine.home.join("workspaces").join(&id);
        let ran = || fs::read_to_string(workspace.join("ran")).unwrap_or_default();
        wait_for("the second phase works", || ran().contains('1').then_some(()));
        fs::write(workspace.join("go"), "").unwrap();
        kill(&workspace);
        let server = if server_dies_too {
            server.kill();
            machine.serve()
        } else {
            server
        };
        let run = server.ended(&id);
        assert_eq!((run["state"].as_str(), run["recoveries"].as_u64()), (Some("completed"), Some(1)));
        assert_eq!(ran(), "0\n1\n1\n2\n", "what was complete is not run again");
        let events = server.events(&id);
        assert!(kinds(&events).contains(&"orchestrator_died") && kinds(&events).contains(&"run_resumed"));
        assert_eq!(processes_with(&id), [0_u32; 0]);
    }
}

#[test]
fn a_run_that_always_dies_is_not_resumed_for_ever() {
    let machine = Machine::new().settings(&json!({"server": {"recovery": "resume"}}));
    // The command ends its own orchestrator.
    machine.chain("deadly", &["kill -9 $(cat .cliq/lock); sleep 61.5"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/deadly"}));
    let run = server.ended(&id);
    assert_eq!((run["state"].as_str(), run["recoveries"].as_u64()), (Some("failed"), Some(5)));
    assert_eq!(processes_with(&id), [0_u32; 0]);
}

#[test]
fn a_person_who_resumes_a_run_in_its_project_is_followed() {
    let machine = Machine::new();
    machine.chain("steps", &["true", "test -e go"]);
    let project = machine.project("project");
    let path = project.to_str().unwrap();
    machine.ok(&["-C", path, "assemble", "@local/steps"]);
    let server = machine.serve();
    let instance = server.post("/api/v1/instances", &json!({"path": path})).expect(201).json();
    let id = server.start_run(&json!({"instance": instance["id"], "team": "@local/steps"}));
    assert_eq!(server.ended(&id)["state"], "escalated");
    fs::write(project.join("go"), "").unwrap();
    machine.ok(&["-C", path, "run", "--headless", "--resume"]);
    wait_for("the end is seen", || (server.run(&id)["state"] == "completed").then_some(()));
}
