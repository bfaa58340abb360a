//! A server whose runs work in the cluster.

use std::fs;

use cliq_testkit::PostgresServer;
use cliq_testkit::agent::Caller;
use cliq_testkit::machine::{Machine, wait_for};
use cliq_testkit::steps::outlives_servers_and_followers;
use serde_json::{Value, json};

use crate::kubernetes::cluster::{of_run, settings};

pub(crate) fn machine(database: &PostgresServer) -> Machine {
    let machine = Machine::new();
    let workspaces = machine.path("workspaces");
    let mut options: serde_json::Map<String, Value> =
        settings().into_iter().map(|(key, value)| (key.to_owned(), Value::String(value))).collect();
    options.insert("enabled".to_owned(), Value::Bool(true));
    machine.settings(&json!({
        "kubernetes": options,
        "database": {"url": database.database()},
        "server": {
            "workspace_root": workspaces, "shared_workspaces": true, "lease": "2s",
            "a2a": {"advertise": ["@"], "instance_id": "cliq-test"},
        },
    }))
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn runs_of_a_server_outlive_it_and_their_followers() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database);
    let workspaces = machine.path("workspaces");
    outlives_servers_and_followers(&machine, &workspaces, |id| of_run("jobs", id).len());
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_of_a_server_is_cancelled_and_its_end_is_told() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database);
    machine.chain("long", &["touch begun; sleep 61.5"]);
    let server = machine.serve();
    let begun = || {
        let id = server.start_run(&json!({"team": "@local/long"}));
        let begun = machine.path("workspaces").join(&id).join("begun");
        wait_for("the phase works", || begun.exists().then_some(()));
        id
    };
    let id = begun();
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&id)["state"], "cancelled");
    let id = begun();
    crate::kubernetes::cluster::said(&[
        "delete",
        "pods",
        "-l",
        &format!("cliq.dev/run={id}"),
        "--grace-period=0",
        "--force",
    ]);
    let run = server.ended(&id);
    assert_eq!(run["state"], "failed", "{run}");
    let reason = run["reason"].as_str().unwrap();
    assert!(reason.contains("deleted") || reason.contains("signal"), "{run}");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_run_that_waits_for_a_node_is_cancelled_and_taken_up() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database);
    machine.chain("steps", &["touch ran"]);
    let mut options: Value =
        serde_json::from_slice(&fs::read(machine.home.join("settings.json")).unwrap()).unwrap();
    options["kubernetes"]["cpus"] = json!(900);
    options["kubernetes"]["cpu_request"] = json!(900);
    let machine = machine.settings(&options);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/steps"}));
    wait_for("its pod waits", || (of_run("pods", &id).len() == 1).then_some(()));
    // Another server finds the Job of the run, and starts no other.
    server.kill();
    let name = format!("cliq -C {} run", machine.path("workspaces").join(&id).display());
    let killed = std::process::Command::new("pkill").args(["-KILL", "-f", &name]).status().unwrap();
    assert!(killed.success());
    let pod = of_run("pods", &id)[0]["metadata"]["uid"].clone();
    let server = machine.serve();
    let follows =
        || std::process::Command::new("pgrep").args(["-f", &name]).output().unwrap().status.success();
    wait_for("it is followed again", || follows().then_some(()));
    std::thread::sleep(std::time::Duration::from_secs(2));
    assert_eq!(of_run("pods", &id)[0]["metadata"]["uid"], pod, "it is the same");
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&id)["state"], "cancelled");
    wait_for("nothing is left", || {
        (of_run("pods", &id).is_empty() && of_run("jobs", &id).is_empty()).then_some(())
    });
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn a_task_of_a2a_works_in_the_cluster() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database).arguments(&["--a2a"]);
    machine.chain("where", &["hostname"]);
    machine.chain("long", &["sleep 61.5"]);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/where");
    assert_eq!(caller.ended(&id)["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(of_run("jobs", &id).len(), 1);
    let events = server.events(&id);
    let (_, finished) = events.iter().find(|(_, event)| event["event"] == "commands_finished").unwrap();
    let host = finished["results"][0]["output_tail"].as_str().unwrap();
    assert!(host.starts_with(&format!("cliq-{id}")), "{finished}");
    let id = caller.start("m2", "@local/long");
    caller.works(&id);
    caller.ok("CancelTask", &json!({"id": id}));
    assert_eq!(caller.ended(&id)["status"]["state"], "TASK_STATE_CANCELED");
}

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn people_review_what_runs_in_the_cluster() {
    let Ok(host) = std::env::var("CLIQ_TEST_HOST") else {
        cliq_testkit::not_run("pods of this cluster cannot reach this machine (CLIQ_TEST_HOST)");
        return;
    };
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database).arguments(&["--host", "0.0.0.0", "--insecure-http"]);
    machine.team(
        "asks",
        "workflow:
  phases:
    - {name: ask, type: hug, review: {reviewer: ada, timeout: 5m}}
    - {name: last, type: exec, depends_on: [ask], commands: [{name: c, run: 'echo last >> ran'}]}
",
    );
    let server = machine.serve();
    machine.keep_port(&server);
    let port = server.url.rsplit(':').next().unwrap().to_owned();
    let token = cliq_testkit::agent::token(&machine, "reviews", "run");
    let mut settings: Value =
        serde_json::from_slice(&fs::read(machine.home.join("settings.json")).unwrap()).unwrap();
    settings["hug"] = json!({"server_url": format!("http://{host}:{port}"), "token": token});
    settings["server"]["allowed_hosts"] = json!([host]);
    let machine = machine.settings(&settings);
    server.kill();
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/asks"}));
    let waiting = || server.get("/api/v1/reviews?pending=true").json();
    let review = wait_for("the review", || waiting()["reviews"][0]["id"].as_str().map(str::to_owned));
    // The server has the run too, and parks it: its Job ends.
    wait_for("the run is parked", || (server.run(&id)["state"] == "waiting").then_some(()));
    wait_for("no pod works", || {
        of_run("pods", &id).iter().all(|pod| pod["status"]["phase"] != "Running").then_some(())
    });
    machine.ok(&["steer", "Use short words.", "--run", &id]);
    machine.ok(&["review", "approve", &review]);
    assert_eq!(server.ended(&id)["state"], "completed");
    assert_eq!(waiting()["reviews"], json!([]), "the next pod goes on with the same review");
    let steered = server.run(&id)["steering"].clone();
    assert_eq!(steered[0]["text"], "Use short words.", "{steered}");
    assert_eq!(fs::read_to_string(machine.path("workspaces").join(&id).join("ran")).unwrap(), "last\n");
}
