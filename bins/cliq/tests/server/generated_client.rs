//! A client in another language, generated from the description by openapi-python-client.

use std::process::Command;

use cliq_testkit::machine::Machine;

use crate::server::schema::python_with;

const PROGRAM: &str = r#"
import sys, time
from cliq_client import AuthenticatedClient
from cliq_client.api.runs import start_run, get_run, list_events
from cliq_client.models import NewRun
client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2], raise_on_unexpected_status=True)
run = start_run.sync(client=client, body=NewRun(team="@local/steps", requirement="go"))
seen, after = [], 0
while True:
    page = list_events.sync(client=client, id=run.id, after=after)
    for event in page.events:
        seen.append(event.event["event"])
        after = event.id
    if seen and seen[-1] == "run_finished":
        break
    time.sleep(0.05)
assert seen.count("phase_completed") == 2, seen
assert len(seen) == len(set(range(1, after + 1)))
print(get_run.sync(client=client, id=run.id).state)
"#;

#[test]
fn a_generated_client_starts_a_run_and_follows_it_to_its_end() {
    let Some(python) = python_with("openapi_python_client") else { return };
    let machine = Machine::new();
    machine.chain("steps", &["sleep 0.2", "true"]);
    let server = machine.serve();
    let description = machine.path("openapi.json");
    std::fs::write(&description, server.get("/api/v1/openapi.json").expect(200).body).unwrap();
    let target = machine.path("client");
    let generated = Command::new(&python)
        .args(["-m", "openapi_python_client", "generate", "--meta", "none", "--path"])
        .arg(&description)
        .arg("--output-path")
        .arg(target.join("cliq_client"))
        .env(
            "PATH",
            format!("{}:{}", python.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default()),
        )
        .output()
        .unwrap();
    let said =
        String::from_utf8_lossy(&generated.stdout).into_owned() + &String::from_utf8_lossy(&generated.stderr);
    assert!(generated.status.success(), "{said}");
    let output = Command::new(&python)
        .args(["-c", PROGRAM, &server.url, &server.token])
        .current_dir(&target)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "completed");
}
