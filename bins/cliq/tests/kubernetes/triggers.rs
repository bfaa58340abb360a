//! Runs that triggers start, in Jobs.

use std::fs;

use cliq_testkit::PostgresServer;
use serde_json::{Value, json};

use crate::kubernetes::cluster::of_run;
use crate::kubernetes::server::machine;
use crate::triggers::sender::{SECRET, decided, deliver, github, run_of, write};

const TRIGGERS: &str = r#"
  - {name: often, schedule: {cron: "*/5 * * * * *", overlap: skip}, team: "@local/where"}
  - {name: pushed, webhook: {signature: github, secret: s}, team: "@local/where"}
  - {name: after, after: {team: "@local/where"}, when: "run.title == 'first'", team: "@local/last"}
"#;

#[test]
#[ignore = "needs a cluster: scripts/kubernetes"]
fn triggers_start_jobs() {
    let Some(database) = PostgresServer::start() else { return };
    let machine = machine(&database);
    machine.chain("where", &["hostname > where"]);
    machine.chain("last", &["hostname > where"]);
    let mut settings: Value =
        serde_json::from_slice(&fs::read(machine.home.join("settings.json")).unwrap()).unwrap();
    settings["triggers"]["secrets"] = json!({"s": SECRET});
    let machine = machine.settings(&settings);
    write(&machine, TRIGGERS);
    let server = machine.serve();
    let in_job = |id: &str| {
        assert_eq!(server.ended(id)["state"], "completed", "{id}");
        let place = fs::read_to_string(machine.path("workspaces").join(id).join("where")).unwrap();
        assert!(place.starts_with(&format!("cliq-{id}")), "{place}");
        assert_eq!(of_run("jobs", id).len(), 1);
    };
    in_job(run_of(&decided(&server, "often", 1)[0]));
    server.post("/api/v1/triggers/often/pause", &json!({})).expect(200);
    let body = r#"{"ref": "refs/heads/main", "repository": {"full_name": "a/b"}}"#;
    let answer = deliver(&server, "pushed", &github("push", "one", body), body);
    assert!((200..300).contains(&answer.status), "{}", answer.body);
    in_job(run_of(&decided(&server, "pushed", 1)[0]));
    let first = server.start_run(&json!({"team": "@local/where", "title": "first"}));
    in_job(&first);
    let after = decided(&server, "after", 1);
    let fired = after.iter().find(|firing| firing["run_id"].is_string());
    in_job(run_of(fired.unwrap_or_else(|| panic!("{after:?}"))));
}
