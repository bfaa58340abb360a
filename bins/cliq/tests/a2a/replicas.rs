//! Several servers on one PostgreSQL: what one of them does for all, meshes, push notifications, retention, is done by one, and by another where that one is gone.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cliq_testkit::PostgresServer;
use cliq_testkit::agent::{Caller, machine_with};
use cliq_testkit::machine::{Machine, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::a2a::mesh::{mesh, mesh_settings};
use crate::a2a::push::{first_deliveries, log, numbers, receiver, receiver_of, start};

/// Lease duration of the servers.
const LEASE: Duration = Duration::from_secs(2);
/// Lease duration where no server may lose its duties because a busy machine keeps it waiting.
const LONG_LEASE: Duration = Duration::from_secs(6);

/// One of several servers. `a2a` is more settings of `server.a2a`.
fn replica(database: &str, workspaces: &Path, a2a: &Value, lease: Duration) -> Machine {
    let machine = machine_with(a2a);
    let path = machine.home.join("settings.json");
    let mut settings: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    settings["database"] = json!({"url": database});
    let server = settings["server"].as_object_mut().unwrap();
    server.insert("lease".to_owned(), format!("{}s", lease.as_secs()).into());
    server.insert("shared_workspaces".to_owned(), true.into());
    server.insert("workspace_root".to_owned(), workspaces.to_str().unwrap().into());
    server.insert("retention".to_owned(), "8s".into());
    fs::write(&path, settings.to_string()).unwrap();
    machine
}

fn replicas(database: &str, workspaces: &Path, a2a: &Value, lease: Duration) -> [Machine; 2] {
    fs::create_dir_all(workspaces).unwrap();
    [(); 2].map(|()| replica(database, workspaces, a2a, lease))
}

fn pid(machine: &Machine) -> Pid {
    let record: Value = serde_json::from_slice(&fs::read(machine.home.join("server.json")).unwrap()).unwrap();
    Pid::from_raw(i32::try_from(record["pid"].as_i64().unwrap()).unwrap()).unwrap()
}

#[test]
fn a_mesh_knows_one_of_them() {
    let Some(database) = PostgresServer::start() else { return };
    let (url, calls) = mesh(|path, _| match path {
        "/auth/token" => (200, json!({"access_token": "jwt", "expires_in": 1}).to_string()),
        _ => (200, "{}".to_owned()),
    });
    // The addresses that registered since a call.
    let registered = |from: usize| -> Vec<String> {
        let calls = calls.lock().unwrap();
        let registrations = calls[from..].iter().filter(|(path, _, _)| path == "/agents/register");
        registrations.map(|(_, _, body)| body["agent_card_url"].as_str().unwrap().to_owned()).collect()
    };
    let count = || calls.lock().unwrap().len();
    let shared = tempfile::tempdir().unwrap();
    let settings = mesh_settings(&[("prod", &url, true)]);
    let machines = replicas(&database.database(), &shared.path().join("workspaces"), &settings, LONG_LEASE);
    let servers = [machines[0].serve(), machines[1].serve()];
    wait_for("one registers again and again", || (registered(0).len() >= 8).then_some(()));
    let all = registered(0);
    assert!(all.iter().all(|url| *url == all[0]), "{all:?}");
    let has = usize::from(!all[0].starts_with(&servers[0].url));
    let other = |url: &String| url.starts_with(&servers[1 - has].url);
    // It sleeps for longer than its lease: another registers, and the one that wakes up leaves it so.
    kill_process(pid(&machines[has]), Signal::STOP).unwrap();
    let slept = count();
    wait_for("the other registers", || registered(slept).iter().any(other).then_some(()));
    kill_process(pid(&machines[has]), Signal::CONT).unwrap();
    // What it was about to send when it fell asleep may come.
    std::thread::sleep(LONG_LEASE / 2);
    let woke = count();
    wait_for("many register", || (registered(woke).len() >= 8).then_some(()));
    let since = registered(woke);
    assert!(since.iter().all(other), "{since:?}");
    // The one that has it stops, and leaves the mesh; the first goes on.
    machines[1 - has].ok(&["server", "stop"]);
    let stopped = count();
    wait_for("the first registers", || registered(stopped).first().cloned());
    assert!(registered(stopped)[0].starts_with(&servers[has].url));
}

#[test]
fn updates_are_pushed_by_one_of_them() {
    let Some(database) = PostgresServer::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    let machines = replicas(&database.database(), &shared.path().join("workspaces"), &json!({}), LEASE);
    let servers = [machines[0].serve(), machines[1].serve()];
    let first = Caller::new(&machines[0], &servers[0]);
    let second = Caller { server: &servers[1], token: first.token.clone() };
    // While both live: each update once.
    let tasks: Vec<_> = [&first, &second, &first, &second]
        .map(|caller| {
            let (url, received) = receiver(Vec::new());
            (start(caller, "@local/steps", &url), received)
        })
        .into();
    for (id, received) in &tasks {
        wait_for("everything is delivered", || (receiver_of(&second, id)["state"] == "done").then_some(()));
        assert_eq!(numbers(received), log(&first, id));
    }
    // Each of them sleeps for longer than its lease: the other goes on.
    for (n, awake) in [(0, &second), (1, &first)] {
        let (url, received) = receiver(Vec::new());
        let id = start(awake, "@local/steps", &url);
        std::thread::sleep(Duration::from_millis(150));
        kill_process(pid(&machines[n]), Signal::STOP).unwrap();
        wait_for("everything is delivered", || (receiver_of(awake, &id)["state"] == "done").then_some(()));
        kill_process(pid(&machines[n]), Signal::CONT).unwrap();
        std::thread::sleep(LEASE);
        assert_eq!(first_deliveries(&numbers(&received)), log(awake, &id));
    }
}

#[test]
fn retention_runs_on_one_server() {
    let Some(database) = PostgresServer::start() else { return };
    let shared = tempfile::tempdir().unwrap();
    let workspaces = shared.path().join("workspaces");
    let machines = replicas(&database.database(), &workspaces, &json!({}), LEASE);
    let mut servers = [machines[0].serve(), machines[1].serve()].map(Some);
    // Whichever it was, the other does it where that one is gone.
    for n in [0, 1] {
        let server = servers[n].as_ref().unwrap();
        let id = server.start_run(&json!({"team": "@local/steps"}));
        server.ended(&id);
        assert!(workspaces.join(&id).exists());
        servers[n].take().unwrap().kill();
        let other = servers[1 - n].as_ref().unwrap();
        wait_for("it is removed", || (other.get(&format!("/api/v1/runs/{id}")).status == 404).then_some(()));
        wait_for("its workspace is removed", || (!workspaces.join(&id).exists()).then_some(()));
        servers[n] = Some(machines[n].serve());
    }
}
