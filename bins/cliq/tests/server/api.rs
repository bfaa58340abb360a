//! Use of the API: start, follow, cancel, resume; projects; teams; plans; files.

use std::fs;

use cliq_testkit::machine::{Machine, journal, wait_for};
use serde_json::{Value, json};

#[test]
fn a_run_in_a_fresh_workspace_from_start_to_end() {
    let machine = Machine::new();
    machine.team(
        "greet",
        "inputs: [{name: who, description: Whom to greet, required: true}]
workflow:
  phases:
    - name: hello
      type: exec
      commands: [{name: say, run: 'echo hello $(inputs.who) | tee greeting.txt'}]
    - name: check
      type: gate
      agent: rules
      depends_on: [hello]
      commands: [{name: there, run: test -s greeting.txt}]
",
    );
    let server = machine.serve();
    let wrong =
        server.post("/api/v1/runs", &json!({"team": "@local/greet", "inputs": {"whom": "x"}})).expect(409);
    assert_eq!(wrong.header("content-type"), "application/problem+json");
    let errors = wrong.json()["errors"].to_string();
    assert!(
        errors.contains("input `who` is missing: Whom to greet") && errors.contains("no input `whom`"),
        "{errors}"
    );

    let wish = json!({"team": "@local/greet", "requirement": "Be kind", "inputs": {"who": "the; world"}});
    let made = server.post("/api/v1/runs", &wish).expect(201);
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.header("location"), format!("/api/v1/runs/{id}"));
    let mut frames = Vec::new();
    server.follow(&id, None, |frame| {
        frames.push(frame);
        true
    });
    let run = server.ended(&id);
    assert_eq!((run["state"].as_str(), run["caller"].as_str()), (Some("completed"), Some("this machine")));
    let names: Vec<_> =
        run["phases"].as_array().unwrap().iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["hello", "check"]);

    // The stream has what is stored, and what is stored is the journal between the server's own events.
    let end = frames.pop().unwrap();
    assert_eq!((end.kind.as_str(), end.id), ("end", None));
    let stored = server.events(&id);
    assert_eq!(
        frames.iter().map(|frame| frame.id.unwrap()).collect::<Vec<_>>(),
        (1..=frames.len() as i64).collect::<Vec<_>>()
    );
    assert_eq!(
        frames.iter().map(|frame| serde_json::from_str(&frame.data).unwrap()).collect::<Vec<Value>>(),
        stored.iter().map(|(_, event)| event.clone()).collect::<Vec<_>>()
    );
    let workspace = std::path::PathBuf::from(run["workspace"].as_str().unwrap());
    let (own, journaled): (Vec<_>, Vec<_>) = stored
        .into_iter()
        .map(|(_, event)| event)
        .partition(|event| ["run_queued", "run_dispatched"].contains(&event["event"].as_str().unwrap()));
    assert_eq!(own.len(), 2);
    assert_eq!(journaled, journal(&workspace));
    assert_eq!(fs::read_to_string(workspace.join(".cliq/requirement.md")).unwrap(), "Be kind\n");
    assert_eq!(fs::read_to_string(workspace.join("greeting.txt")).unwrap(), "hello the; world\n");

    // A stream of a run that ended, whose client has all of it, answers 204: the client stops.
    let last = run["last_event"].to_string();
    let done = server.send(
        "GET",
        &format!("/api/v1/runs/{id}/events"),
        &[
            ("authorization", &format!("Bearer {}", server.token)),
            ("accept", "text/event-stream"),
            ("last-event-id", &last),
        ],
        None,
    );
    assert_eq!(done.status, 204);

    // What it left.
    let get = |path: &str| server.get(&format!("/api/v1/runs/{id}{path}"));
    let logs = get("/logs").expect(200).json();
    let name = logs["logs"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|log| log["name"].as_str().filter(|name| name.starts_with("hello.")))
        .unwrap()
        .to_owned();
    let part = get(&format!("/logs/{name}?offset=2&limit=5")).expect(200);
    assert_eq!(
        (part.body.as_str(), part.header("x-next-offset"), part.header("x-log-size")),
        ("llo t", "7", "17")
    );
    assert_eq!(get(&format!("/logs/{name}?offset=-6")).body, "world\n");
    assert_eq!(get("/handoffs").json()["handoffs"][0]["to"], "check");
    assert_eq!(get("/handoffs/hello/check").expect(200).json()["phase"], "hello");
    let files = get("/files").expect(200).json();
    assert!(files["entries"].as_array().unwrap().iter().any(|entry| entry["name"] == "greeting.txt"));
    assert_eq!(get("/files/content?path=greeting.txt").expect(200).body, "hello the; world\n");
    assert_eq!(get("/timeline").expect(200).json()["status"], "COMPLETED");
    assert!(get("/graph.svg").expect(200).body.starts_with("<svg"));
    assert_eq!(server.get("/api/v1/usage").expect(200).json()["teams"][0]["runs"], 1);
}

#[test]
fn changes_of_a_run_come_from_its_checkpoints() {
    let machine = Machine::new().settings(&json!({"checkpoints": {"always": true}}));
    machine.team(
        "items",
        "phases:
    - {name: first, type: exec, commands: [{name: c, run: 'echo \"<b>\" > page.html'}]}
    - {name: each, type: exec, depends_on: [first], for_each: '[1, 2]', max_parallel: 1, commands: [{name: c, run: 'echo $(item) >> list.txt'}]}
",
    );
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/items"}));
    assert_eq!(server.ended(&id)["state"], "completed");
    let get = |path: &str| server.get(&format!("/api/v1/runs/{id}{path}"));
    let whole = get("/changes").expect(200).json();
    let paths: Vec<_> =
        whole["activations"][0]["changes"].as_array().unwrap().iter().map(|c| c["path"].clone()).collect();
    assert_eq!(paths, [json!("list.txt"), json!("page.html")]);
    let item = get("/changes?of=each.1&patch=true").expect(200).json();
    assert_eq!(item["activations"][0]["changes"], json!([{"path": "list.txt", "kind": "modified"}]));
    assert!(item["activations"][0]["patch"].as_str().unwrap().ends_with("+2\n"));
    let changed = json!({"files": 2, "lines_added": 3, "lines_removed": 0});
    assert_eq!(server.run(&id)["changed"], changed);
    assert_eq!(server.get("/api/v1/runs").expect(200).json()["runs"][0]["changed"], changed);
    let card = server.get("/").expect(200).body;
    assert!(card.contains("+3</span> <span class=\"minus\">−0</span> in 2 files"), "{card}");
    assert_eq!(get("/checkpoints").expect(200).json()["checkpoints"].as_array().unwrap().len(), 6);
    assert!(get("/changes?of=none").expect(404).body.contains("no checkpoint of `none`"));
    let page = server.get(&format!("/runs/{id}/changes?of=first")).expect(200).body;
    assert!(page.contains("<td class=\"sign\">+</td><td>&lt;<span class=\"k\">b</span>&gt;</td>"), "{page}");
    let statuses: Vec<_> =
        server.run(&id)["phases"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
    assert_eq!(statuses, [json!("first"), json!("each"), json!("each.0"), json!("each.1")]);
    assert!(get("/graph.svg").expect(200).body.contains("2/2 items"));
}

/// Does what the script of a page does.
fn put_together(page: &str, difference: &serde_json::Value) -> String {
    let page: Vec<u16> = page.encode_utf16().collect();
    let part = |part: &serde_json::Value| match part.as_str() {
        Some(text) => text.to_owned(),
        None => {
            let number = |n: usize| usize::try_from(part[n].as_u64().unwrap()).unwrap();
            String::from_utf16(&page[number(0)..number(0) + number(1)]).unwrap()
        }
    };
    difference.as_array().unwrap().iter().map(part).collect()
}

#[test]
fn an_open_page_gets_the_difference_to_what_it_has() {
    let machine = Machine::new();
    machine.chain("steps", &["true", "until test -e go; do sleep 0.05; done", "true"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/steps", "title": "Ölstand \u{1f980}"}));
    let workspace = machine.home.join("workspaces").join(&id);
    wait_for("the second phase runs", || (server.run(&id)["phases"][1]["status"] == "running").then_some(()));
    for path in [format!("/runs/{id}"), "/".to_owned()] {
        let token = format!("Bearer {}", server.token);
        let get = |tag: &str| {
            server.send("GET", &path, &[("authorization", &token), ("cliq-page", tag)], None).expect(200)
        };
        assert_eq!(server.get(&path).header("cliq-page"), "", "a page that is opened is not kept");
        let whole = get("-");
        assert!(whole.header("content-type").starts_with("text/html"));
        let _ = fs::write(workspace.join("go"), "");
        server.ended(&id);
        let next = get(whole.header("cliq-page"));
        assert_eq!(next.header("content-type"), "application/json", "{}", next.body);
        assert!(next.body.len() < whole.body.len() / 2);
        let text = put_together(&whole.body, &next.json());
        assert!(text.contains("completed") && text.ends_with("</html>"), "{text}");
        let unknown = get("0123456789abcdef");
        assert!(unknown.header("content-type").starts_with("text/html"));
    }
}

#[test]
fn cancel_resume_and_run_from_a_phase() {
    let machine = Machine::new();
    machine.chain("steps", &["echo 0 >> ran", "echo 1 >> ran; test -e go || sleep 60", "echo 2 >> ran"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/steps"}));
    let workspace = machine.home.join("workspaces").join(&id);
    let ran = || fs::read_to_string(workspace.join("ran")).unwrap_or_default();
    wait_for("the second phase runs", || ran().contains('1').then_some(()));
    server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).expect(409);
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&id)["state"], "cancelled");
    server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(409);
    fs::write(workspace.join("go"), "").unwrap();
    server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).expect(202);
    assert_eq!(server.ended(&id)["state"], "completed");
    assert_eq!(ran(), "0\n1\n1\n2\n", "what was complete is not run again");
    server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).expect(409);
    let wrong = server.post(&format!("/api/v1/runs/{id}/resume"), &json!({"from": "p9"})).expect(409);
    assert!(wrong.body.contains("p0, p1, p2"), "{}", wrong.body);
    server.post(&format!("/api/v1/runs/{id}/resume"), &json!({"from": "p2"})).expect(202);
    wait_for("it runs again", || (ran() == "0\n1\n1\n2\n2\n").then_some(()));
    assert_eq!(server.ended(&id)["state"], "completed");
    let numbers: Vec<i64> = server.events(&id).into_iter().map(|(id, _)| id).collect();
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>(), "one sequence over all of it");
}

#[test]
fn runs_wait_their_turn() {
    let machine = Machine::new().settings(&json!({"server": {"max_runs": 2}}));
    machine.chain("slow", &["sleep 0.4"]);
    machine.chain("long", &["sleep 60"]);
    let server = machine.serve();
    let blocker = server.start_run(&json!({"team": "@local/long"}));
    let ids: Vec<String> = (0..4).map(|_| server.start_run(&json!({"team": "@local/slow"}))).collect();
    let waiting = server.start_run(&json!({"team": "@local/slow"}));
    server.post(&format!("/api/v1/runs/{waiting}/cancel"), &json!({})).expect(202);
    let cancelled = server.run(&waiting);
    assert_eq!((cancelled["state"].as_str(), cancelled["started_at"].as_str()), (Some("cancelled"), None));
    let runs: Vec<Value> = ids.iter().map(|id| server.ended(id)).collect();
    let started: Vec<&str> = runs.iter().map(|run| run["started_at"].as_str().unwrap()).collect();
    let ended: Vec<&str> = runs.iter().map(|run| run["ended_at"].as_str().unwrap()).collect();
    for n in 1..runs.len() {
        assert!(started[n] >= ended[n - 1], "one place is left: {started:?} {ended:?}");
    }
    server.post(&format!("/api/v1/runs/{blocker}/cancel"), &json!({})).expect(202);
    assert_eq!(server.ended(&blocker)["state"], "cancelled");
}

#[test]
fn a_registered_project_is_run_in_and_followed() {
    let machine = Machine::new();
    machine.chain("work", &["cat .cliq/requirement.md > seen; sleep 0.3"]);
    let project = machine.project("project");
    let path = project.to_str().unwrap();
    machine.ok(&["-C", path, "assemble", "@local/work"]);
    machine.ok(&["-C", path, "req", "-m", "first"]);
    let server = machine.serve();
    server.post("/api/v1/instances", &json!({"path": "/nowhere"})).expect(409);
    let instance = server.post("/api/v1/instances", &json!({"path": path})).expect(201).json();
    assert_eq!(server.post("/api/v1/instances", &json!({"path": path})).expect(201).json(), instance);
    let id = instance["id"].as_str().unwrap();

    // A person's run is shown, as it goes and after it.
    machine.ok(&["-C", path, "run", "--headless"]);
    let seen = wait_for("the person's run is found", || {
        let runs = server.get("/api/v1/runs").json();
        let run = runs["runs"].as_array().unwrap().iter().find(|run| run["origin"] == "project").cloned();
        run.filter(cliq_testkit::machine::is_final)
    });
    assert_eq!((seen["state"].as_str(), seen["instance"].as_str()), (Some("completed"), Some(id)));

    // Two runs of one project follow each other; a person's run in between is waited for.
    let wish = |text: &str| json!({"instance": id, "requirement": text});
    let (second, third) = (server.start_run(&wish("second")), server.start_run(&wish("third")));
    let (second, third) = (server.ended(&second), server.ended(&third));
    assert_eq!((second["state"].as_str(), third["state"].as_str()), (Some("completed"), Some("completed")));
    assert!(third["started_at"].as_str() >= second["ended_at"].as_str());
    assert_eq!(fs::read_to_string(project.join("seen")).unwrap(), "third\n");
    // The record of a run that was put aside is still that of the run.
    let second = second["id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/v1/runs/{second}/timeline")).expect(200).json()["run_id"], second);
    assert_eq!(
        server.get(&format!("/api/v1/runs?instance={id}")).json()["runs"].as_array().unwrap().len(),
        3
    );
    assert_eq!(server.delete(&format!("/api/v1/instances/{id}")).status, 204);
    assert_eq!(server.get(&format!("/api/v1/instances/{id}")).status, 404);
}

#[test]
fn teams_plans_and_signals() {
    let machine = Machine::new();
    machine.team("broken", "workflow: {phases: [{name: a, type: nonsense}]}\n");
    let project = machine.project("project");
    fs::write(
        project.join("search.md"),
        "# Search\n\nGoal: find.\n\n## Wave 1\n\n### Task 1: Index\n\nDo it.\n",
    )
    .unwrap();
    machine.ok(&["-C", project.to_str().unwrap(), "plan", "add", "search.md"]);
    let server = machine.serve();
    let teams = server.get("/api/v1/teams").expect(200).json();
    let team = |name: &str| {
        teams["teams"].as_array().unwrap().iter().find(|team| team["name"] == name).cloned().unwrap()
    };
    assert_eq!(
        (team("@cliq/demo")["valid"].as_bool(), team("broken")["valid"].as_bool()),
        (Some(true), Some(false))
    );
    let demo = server.get("/api/v1/teams/@cliq/demo").expect(200).json();
    assert_eq!(demo["phases"].as_array().unwrap().len(), 7);
    let broken = server.get("/api/v1/teams/@local/broken").expect(200).json();
    assert!(broken["diagnostics"][0]["message"].as_str().unwrap().contains("nonsense"), "{broken}");
    assert!(
        server.get("/api/v1/teams/@cliq/demo/graph?format=mermaid").expect(200).body.contains("flowchart")
    );
    server.get("/api/v1/teams/@cliq/nothing").expect(404);
    server.get("/api/v1/teams/..%2f..%2fetc/passwd").expect(404);
    let checked = server.post("/api/v1/teams/validate", &json!({"team_yml": "name: x\n"})).expect(200).json();
    assert_eq!(checked["valid"], false);

    let path = project.to_str().unwrap();
    let id = server.post("/api/v1/instances", &json!({"path": path})).expect(201).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let plans = format!("/api/v1/instances/{id}/plans");
    assert_eq!(server.get(&plans).expect(200).json()["plans"][0]["name"], "search");
    server.post(&format!("{plans}/search"), &json!({"command": "start"})).expect(202);
    server.post(&format!("{plans}/search"), &json!({"command": "reopen"})).expect(409);
    server.post(&format!("{plans}/search"), &json!({"command": "cancel"})).expect(202);
    assert_eq!(server.get(&format!("{plans}/search")).expect(200).json()["state"], "cancelled");
    assert_eq!(
        server.get(&format!("{plans}/search/events")).expect(200).json()["events"].as_array().unwrap().len(),
        2
    );
    server.get(&format!("{plans}/nothing")).expect(404);
    let wrong = server
        .post(&format!("/api/v1/instances/{id}/signals"), &json!({"type": "nonsense", "plan": "search"}))
        .expect(422);
    assert!(wrong.body.contains("planner_finished"), "it lists the types: {}", wrong.body);
    let signal = server
        .post(
            &format!("/api/v1/instances/{id}/signals"),
            &json!({"type": "review-changes", "plan": "search", "payload": "mend it"}),
        )
        .expect(201)
        .json();
    assert_eq!(server.get(&format!("/api/v1/signals/{}", signal["id"])).expect(200).json(), signal);
    assert_eq!(
        server.get("/api/v1/signals?status=pending").expect(200).json()["signals"].as_array().unwrap().len(),
        2
    );
    server.post(&format!("/api/v1/signals/{}/retry", signal["id"]), &json!({})).expect(409);
}
