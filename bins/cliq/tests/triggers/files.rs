//! Changed files of a project.

use std::time::Duration;

use camino::Utf8PathBuf;
use cliq_model::TriggerStore;
use cliq_store::{Location, SqlStore};
use cliq_testkit::machine::{Machine, wait_for};
use serde_json::json;

use crate::triggers::sender::{decided, firings, run_of, write};

/// Mark of the trigger `docs` in the database: empty until the first look at the files.
fn mark(machine: &Machine) -> String {
    let path = Utf8PathBuf::from_path_buf(machine.home.join("cliq.db")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let row = runtime.block_on(async {
        let store = SqlStore::open(&Location::Sqlite(path)).await.unwrap();
        store.trigger_row("docs").await.unwrap()
    });
    row.map(|row| row.mark).unwrap_or_default()
}

#[test]
fn changes_fire_once_after_a_quiet_moment_and_runs_do_not_start_themselves() {
    let machine = Machine::new();
    let project = machine.project("p");
    std::fs::create_dir_all(project.join("docs")).unwrap();
    std::fs::write(project.join("docs/a.md"), "1").unwrap();
    // The run changes a file that the glob matches.
    machine.team(
        "touches",
        "inputs: [{name: which, required: true}]\nworkflow: {phases: [{name: t, type: exec, commands: [{name: c, run: 'echo $(inputs.which) >> docs/log.md; sleep 1'}]}]}\n",
    );
    let path = project.to_str().unwrap();
    let triggers = format!(
        "  - {{name: docs, files: {{glob: 'docs/**/*.md', debounce: 3s}}, project: {path}, team: '@local/touches', inputs: {{which: '$(files[0])'}}}}\n"
    );
    write(&machine, &triggers);
    let server = machine.serve();
    wait_for("the first look sets the mark", || (!mark(&machine).is_empty()).then_some(()));
    assert!(firings(&server, "docs").is_empty());
    for n in 0..5 {
        std::fs::write(project.join("docs/b.md"), n.to_string()).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
    std::fs::write(project.join("other.txt"), "x").unwrap();
    let found = decided(&server, "docs", 1);
    assert_eq!(found[0]["cause"], "docs/b.md changed");
    assert_eq!(server.ended(run_of(&found[0]))["inputs"]["which"], "docs/b.md");
    std::thread::sleep(Duration::from_millis(5000));
    assert_eq!(firings(&server, "docs").len(), 1, "its own change is no cause");
    // What changes while no server runs is found by the next.
    server.kill();
    std::fs::remove_file(project.join("docs/a.md")).unwrap();
    let server = machine.serve();
    let found = wait_for("it fires", || Some(firings(&server, "docs")).filter(|found| found.len() == 2));
    assert_eq!(found[1]["cause"], "files changed");
    server.post("/api/v1/triggers/docs/pause", &json!({})).expect(200);
    std::fs::write(project.join("docs/c.md"), "c").unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    server.post("/api/v1/triggers/docs/resume", &json!({})).expect(200);
    std::thread::sleep(Duration::from_millis(5000));
    assert_eq!(firings(&server, "docs").len(), 2, "changes while it was paused are no cause");
}
