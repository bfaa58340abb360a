//! Schedules on the real clock, and the file while the server runs.

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::json;

use crate::triggers::sender::{count_runs, decided, firings, machine_with, run_of, write};

const EACH_SECOND: &str = r#"
  - name: often
    schedule: { cron: "* * * * * *", overlap: skip }
    team: "@local/quick"
    title: "At $(now)"
"#;

#[test]
fn each_second_has_one_firing_also_when_the_server_starts_again() {
    let machine = machine_with(EACH_SECOND, json!({}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    wait_for("it fires", || (firings(&server, "often").len() >= 3).then_some(()));
    server.kill();
    let server = machine.serve();
    let before = firings(&server, "often").len();
    wait_for("it goes on", || (firings(&server, "often").len() >= before + 3).then_some(()));
    server.post("/api/v1/triggers/often/pause", &json!({})).expect(200);
    let found = decided(&server, "often", 1);
    let causes: Vec<&str> = found.iter().map(|f| f["cause"].as_str().unwrap()).collect();
    let mut distinct = causes.clone();
    distinct.dedup();
    assert_eq!(causes, distinct, "each tick once, in order");
    assert!(causes.is_sorted());
    for firing in &found {
        match firing["run_id"].as_str() {
            Some(run) => {
                let run = server.ended(run);
                assert_eq!(run["state"], "completed", "{run}");
                assert!(run["title"].as_str().unwrap().starts_with("At 20"), "{run}");
            }
            None => assert_eq!(firing["state"], "skipped", "{firing}"),
        }
    }
    let count = firings(&server, "often").len();
    std::thread::sleep(std::time::Duration::from_millis(2200));
    assert_eq!(firings(&server, "often").len(), count, "paused");
    let resumed = server.post("/api/v1/triggers/often/resume", &json!({})).expect(200).json();
    assert_eq!(resumed["paused"], false);
    assert_eq!(resumed["next"].as_array().unwrap().len(), 5);
    wait_for("it fires again", || (firings(&server, "often").len() > count).then_some(()));
}

#[test]
fn file_is_read_again_and_errors_keep_the_last_triggers() {
    let machine =
        machine_with("  - {name: a, schedule: {cron: '0 3 1 1 *'}, team: '@local/quick'}\n", json!({}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let names = || {
        let list = server.get("/api/v1/triggers").expect(200).json();
        let names = list["triggers"].as_array().unwrap().iter();
        let names = names.map(|t| t["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
        (names, list["problem"].as_str().map(str::to_owned))
    };
    assert_eq!(names(), (vec!["a".to_owned()], None));
    write(&machine, "  - {name: b, schedule: {cron: '* * * * * *'}, when: 'false', team: '@local/quick'}\n");
    wait_for("the new file counts", || (names().0 == ["b"]).then_some(()));
    wait_for("it fires", || (firings(&server, "b").len() >= 2).then_some(()));
    write(&machine, "  - {name: c, schedule: {cron: 'x'}, team: '@local/quick'}\n");
    let problem = wait_for("the problem is reported", || names().1);
    assert!(problem.contains("line 2") && problem.contains("cron"), "{problem}");
    assert_eq!(names().0, ["b"]);
    let count = firings(&server, "b").len();
    wait_for("it goes on", || (firings(&server, "b").len() > count).then_some(()));
    drop(server);
    // A server does not start with such a file, and says where the mistake is.
    let output = machine.cliq(&["server", "start", "--port", "0"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("triggers.yml:2:") && error.contains("1 error"), "{error}");
}

#[test]
fn refused_requests_are_failed_firings_with_the_reason() {
    let triggers = r#"
  - {name: unknown, schedule: {cron: "* * * * * *"}, team: "@local/nowhere"}
  - {name: inputs, schedule: {cron: "* * * * * *"}, team: "@local/needs"}
  - {name: hosts, schedule: {cron: "* * * * * *"}, team: "@local/quick", repos: ["https://evil.example/a/b"]}
  - {name: nothing, schedule: {cron: "* * * * * *"}, team: "@local/quick", project: /nowhere/at/all}
  - {name: value, schedule: {cron: "* * * * * *"}, team: "@local/quick", title: "$(now.x)"}
"#;
    let machine = machine_with(triggers, json!({"triggers": {"repo_hosts": ["git.example"]}}));
    machine.chain("quick", &["true"]);
    machine.team("needs", "inputs: [{name: who, required: true}]\nworkflow: {phases: [{name: a, type: exec, commands: [{name: c, run: 'echo $(inputs.who)'}]}]}\n");
    let server = machine.serve();
    for (name, reason) in [
        ("unknown", "@local/nowhere"),
        ("inputs", "`who` is missing"),
        ("hosts", "evil.example are not allowed"),
        ("nothing", "/nowhere/at/all"),
        ("value", "`title`"),
    ] {
        let found = wait_for("a firing failed", || {
            firings(&server, name).into_iter().find(|firing| firing["state"] == "failed")
        });
        assert!(found["reason"].as_str().unwrap().contains(reason), "{name}: {found}");
    }
    assert_eq!(count_runs(&server), 0);
}

#[test]
fn run_works_in_the_project_of_its_trigger() {
    let machine = Machine::new();
    machine.chain("quick", &["echo here > made"]);
    let project = machine.project("p");
    let path = project.to_str().unwrap();
    let triggers = format!(
        "  - {{name: in-place, schedule: {{cron: '* * * * * *'}}, team: '@local/quick', project: {path}, budget: {{usd: 2}}}}\n"
    );
    write(&machine, &triggers);
    let server = machine.serve();
    let found = wait_for("it fires", || {
        firings(&server, "in-place").into_iter().find(|firing| firing["state"] == "started")
    });
    server.post("/api/v1/triggers/in-place/pause", &json!({})).expect(200);
    let run = server.ended(run_of(&found));
    assert_eq!((run["state"].as_str(), run["workspace"].as_str()), (Some("completed"), Some(path)), "{run}");
    assert!(project.join("made").exists());
    // The project is registered by its first run.
    assert_eq!(server.get("/api/v1/instances").expect(200).json()["instances"][0]["path"], path);
}
