//! The server on a real PostgreSQL.

use std::time::Duration;

use cliq_testkit::PostgresServer;
use cliq_testkit::machine::{Machine, wait_for};
use serde_json::json;

#[test]
fn runs_on_postgresql_and_a_database_that_goes_and_comes_back() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = Machine::new().settings(&json!({"database": {"url": database.database()}}));
    machine.chain("steps", &["sleep 0.2", "sleep 0.2", "sleep 1", "true"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/steps"}));
    wait_for("it works", || (server.run(&id)["state"] == "running").then_some(()));
    database.stop();
    let refused = server.get("/api/v1/runs");
    assert_eq!(refused.status, 503);
    assert_eq!(refused.header("retry-after"), "2");
    assert_eq!(server.send("GET", "/healthz", &[], None).status, 200);
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 503);
    std::thread::sleep(Duration::from_millis(1500));
    database.begin();
    wait_for("the server goes on", || (server.send("GET", "/readyz", &[], None).status == 200).then_some(()));
    let run = server.ended(&id);
    assert_eq!(run["state"], "completed");
    let numbers: Vec<i64> = server.events(&id).into_iter().map(|(n, _)| n).collect();
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>());
    assert_eq!(numbers.len() as i64, run["last_event"].as_i64().unwrap());
    assert!(!machine.home.join("cliq.db").exists());
    // A server cannot start while the database is away.
    server.kill();
    database.stop();
    let output = machine.cliq(&["server", "start", "--port", "0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.contains("cannot be used") && error.contains("database.url"), "{error}");
}
