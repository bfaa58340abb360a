//! Tasks from their message to their artifacts: what a team gets, what a caller gets, what is left behind.

use std::fs;

use cliq_testkit::agent::{Caller, follow, is_last, machine, machine_with, message};
use cliq_testkit::machine::wait_for;
use serde_json::{Value, json};

/// The data parts of the updates of a task, from its beginning on.
fn updates(caller: &Caller<'_>, id: &str) -> Vec<Value> {
    let mut all = Vec::new();
    follow(&caller.server.url, &caller.token, id, Some("0.0"), |(_, item)| {
        all.push(item.clone());
        !is_last(&item)
    });
    all
}

fn data(updates: &[Value]) -> Vec<Value> {
    let parts = updates.iter().map(|update| &update["statusUpdate"]["status"]["message"]["parts"][1]["data"]);
    parts.filter(|data| !data.is_null()).cloned().collect()
}

#[test]
fn a_gate_that_sends_back() {
    let machine = machine();
    machine.team(
        "loop",
        r#"description: A loop
tools: [sh, no-such-tool-at-all]
workflow:
  phases:
    - {name: build, type: exec, commands: [{name: b, run: "true"}]}
"#,
    );
    machine.team(
        "gated",
        r#"description: A gate
tools: [sh]
workflow:
  phases:
    - {name: build, type: exec, commands: [{name: b, run: "echo x >> n"}]}
    - name: check
      type: gate
      agent: rules
      depends_on: [build]
      max_iterations: 3
      commands: [{name: twice, run: "test $(wc -l < n) -ge 2"}]
      rules: {twice: build}
"#,
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/gated");
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let updates = updates(&caller, &id);
    let data = data(&updates);
    let of = |key: &str, value: &str| -> Vec<&Value> { data.iter().filter(|d| d[key] == value).collect() };
    // Preflight
    assert_eq!(of("type", "cliq:preflight_started")[0]["tools"], json!(["sh"]));
    assert_eq!(
        *of("type", "cliq:tool_check")[0],
        json!({"type": "cliq:tool_check", "tool": "sh", "available": true})
    );
    let done = of("type", "cliq:preflight_completed")[0];
    assert_eq!(
        *done,
        json!({"type": "cliq:preflight_completed", "passed": 1, "total": 1, "verdict": "PASS"})
    );
    // Workspace, phases, commands, verdicts
    let workspace = of("event", "workspace_initialized")[0];
    assert_eq!(
        (&workspace["instance_id"], &workspace["team"]),
        (&json!("cliq-test"), &json!("@local/gated"))
    );
    assert_eq!(of("event", "on_phase_start").len(), 4);
    let verdicts = of("event", "on_gate_verdict");
    assert_eq!(verdicts.len(), 2);
    assert_eq!((&verdicts[0]["verdict"]["outcome"], &verdicts[0]["iteration"]), (&json!("ROUTE"), &json!(1)));
    assert_eq!(verdicts[0]["commands"][0]["name"], "twice");
    assert_eq!(
        (&verdicts[1]["verdict"]["outcome"], &verdicts[1]["max_iterations"]),
        (&json!("PASS"), &json!(3))
    );
    let summaries: Vec<&Value> =
        of("type", "cliq:commands_summary").into_iter().filter(|d| d["phase"] == "check").collect();
    assert_eq!(summaries[0]["verdict"], "CONTINUE");
    assert_eq!((&summaries[1]["verdict"], &summaries[1]["passed"]), (&json!("PASS"), &json!(1)));
    let command = of("type", "cliq:command_completed")[0];
    assert_eq!(
        (&command["command"], &command["pass"], &command["exit_code"]),
        (&json!("b"), &json!(true), &json!(0))
    );
    let completed = of("event", "on_phase_complete");
    assert_eq!(completed.last().unwrap()["phase_type"], "gate");
    // The result comes before the end of the stream.
    let result = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(result["gate_verdicts"].as_array().unwrap().len(), 2, "{result}");
    assert!(result["orchestrator_log"].as_str().unwrap().contains("check"));
    assert!(updates[updates.len() - 2]["artifactUpdate"].is_object());
    // A program that is missing: the pipeline does not start.
    let id = caller.start("m2", "@local/loop");
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    assert!(task["status"]["message"].to_string().contains("no-such-tool-at-all"), "{task}");
    let data = self::data(&self::updates(&caller, &id));
    assert!(data.iter().any(|d| d["type"] == "cliq:preflight_completed" && d["verdict"] == "ESCALATE"));
    assert!(!data.iter().any(|d| d["event"] == "on_phase_start"));
}

#[test]
fn an_escalation_is_a_failure_with_its_reason() {
    let machine = machine();
    machine.chain("fails", &["exit 7"]);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/fails");
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED");
    let result = &task["artifacts"][0]["parts"][0]["data"];
    assert_eq!(
        (&result["status"], &result["escalation"]["phase"]),
        (&json!("failed"), &json!("p0")),
        "{result}"
    );
    let data = data(&updates(&caller, &id));
    let escalated = data.iter().find(|d| d["event"] == "on_escalate").unwrap();
    assert!(escalated["reason"].as_str().unwrap().contains("exit status 7"), "{escalated}");
    // The run cannot be taken up again: a task that is over stays over.
    let answer = server.post(&format!("/api/v1/runs/{id}/resume"), &json!({}));
    assert!(answer.expect(409).body.contains("task"));
}

#[test]
fn artifacts_have_the_form_of_their_content() {
    let machine = machine();
    machine.team(
        "files",
        r#"outputs: [{name: out}]
workflow:
  phases:
    - {name: a, type: exec, commands: [{name: c, run: "mkdir out; cd out; echo '# A' > a.md; echo '{\"x\": 1}' > b.json; echo '[1]' > c.json; printf '\\377\\000' > d.bin; echo '{' > e.json"}]}
"#,
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let task = caller.ok("SendMessage", &json!({"message": message("m", "@local/files")}))["task"].clone();
    assert_eq!(
        task["artifacts"][0]["parts"],
        json!([
            {"filename": "a.md", "mediaType": "text/markdown", "text": "# A\n"},
            {"filename": "b.json", "mediaType": "application/json", "data": {"x": 1}},
            {"filename": "c.json", "mediaType": "application/json", "text": "[1]\n"},
            {"filename": "d.bin", "mediaType": "application/octet-stream", "raw": "/wA="},
            {"filename": "e.json", "mediaType": "application/json", "text": "{\n"},
        ]),
        "{task}"
    );
    // 0.3 has the names of texts and data in the metadata.
    let old = caller.call("0.3", "tasks/get", &json!({"id": task["id"]}));
    let parts = &old["result"]["artifacts"][0]["parts"];
    let metadata = json!({"filename": "a.md", "mediaType": "text/markdown"});
    assert_eq!(parts[0], json!({"kind": "text", "text": "# A\n", "metadata": metadata}));
    assert_eq!(parts[3]["file"]["name"], "d.bin");
}

#[test]
fn the_team_gets_text_and_inputs_and_the_workspace_goes() {
    let machine = machine();
    machine.team(
        "echo",
        r#"inputs: [{name: word, default: none}]
outputs: [{name: out}]
workflow:
  phases:
    - {name: a, type: exec, commands: [{name: c, run: "mkdir out; cp .cliq/requirement.md out/requirement.txt; echo $(inputs.word) > out/word.txt"}]}
"#,
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let send = |id: &str, parts: Value| {
        let message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
        caller.ok("SendMessage", &json!({"message": message}))["task"].clone()
    };
    let task = send(
        "m1",
        json!([{"text": "Build \u{1f980}"}, {"data": {"team": "@local/echo", "inputs": {"word": "hello"}}}]),
    );
    let parts = &task["artifacts"][0]["parts"];
    let names: Vec<&str> =
        parts.as_array().unwrap().iter().map(|part| part["filename"].as_str().unwrap()).collect();
    assert_eq!(names, ["requirement.txt", "word.txt"], "{task}");
    assert_eq!((&parts[0]["text"], &parts[1]["text"]), (&json!("Build \u{1f980}\n"), &json!("hello\n")));
    let workspaces = machine.home.join("workspaces");
    let workspace = workspaces.join(task["id"].as_str().unwrap());
    wait_for("the workspace goes", || (!workspace.exists()).then_some(()));
    // Without a text the team works on its own; the workspace stays where that was asked for.
    let task = send("m2", json!([{"data": {"team": "@local/echo", "keep_workspace": true}}]));
    let workspace = workspaces.join(task["id"].as_str().unwrap());
    let requirement = fs::read_to_string(workspace.join(".cliq/requirement.md")).unwrap();
    assert!(requirement.starts_with("No task was given"), "{requirement}");
    // What the run's process tells callers, as a file (docs/a2a.md).
    let events = fs::read_to_string(workspace.join(".cliq/signals/_a2a_events")).unwrap();
    let events: Vec<Value> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(
        events.iter().any(|event| event["event"] == "on_phase_complete" && event["phase"] == "a"),
        "{events:?}"
    );
    let kinds: Vec<&str> = events
        .iter()
        .map(|event| event["event"].as_str().or_else(|| event["type"].as_str()).unwrap_or_default())
        .collect();
    assert_eq!(
        kinds,
        [
            "workspace_initialized",
            "cliq:preflight_started",
            "cliq:preflight_completed",
            "on_phase_start",
            "cliq:command_started",
            "cliq:command_completed",
            "cliq:commands_summary",
            "on_phase_complete",
            "on_complete",
        ]
    );
    assert_eq!(events[0]["team"], "@local/echo");
}

#[test]
fn command_started_is_sent_when_the_command_begins() {
    let machine = machine();
    machine.team(
        "waits",
        r#"workflow:
  phases:
    - name: a
      type: exec
      commands:
        - {name: waits, run: "until test -e go; do sleep 0.05; done"}
        - {name: never, run: "true", if: "false"}
"#,
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/waits");
    // It is there before the command ends.
    wait_for("the command has started", || {
        let row = server.get(&format!("/api/v1/runs/{id}/events?limit=100")).expect(200).body;
        row.contains("command_started").then_some(())
    });
    let task = caller.task(&id);
    assert_eq!(task["metadata"]["phases"][0]["name"], "a", "{task}");
    assert_eq!(task["metadata"]["phases"][0]["status"], "running", "{task}");
    fs::write(machine.home.join("workspaces").join(&id).join("go"), "").unwrap();
    let task = caller.ended(&id);
    assert!(task["metadata"].get("phases").is_none(), "the result has them: {task}");
    let data = data(&updates(&caller, &id));
    let of = |kind: &str| data.iter().filter(|data| data["type"] == kind).collect::<Vec<_>>();
    assert_eq!(of("cliq:command_started").len(), 1, "{data:?}");
    let completed = of("cliq:command_completed");
    assert_eq!((completed.len(), &completed[1]["skipped"]), (2, &json!(true)), "{data:?}");
    assert_eq!(of("cliq:commands_summary")[0]["passed"], 1);
}

#[test]
fn cancelled_task_has_the_reason_of_its_caller() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    for (message, params) in [("m1", json!({"reason": "the order was withdrawn"})), ("m2", json!({}))] {
        let id = caller.start(message, "@local/slow");
        caller.works(&id);
        let task = caller.ok("CancelTask", &json!({"id": id, "metadata": params}));
        assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED", "{task}");
        let all = data(&updates(&caller, &id));
        let end = all.iter().find(|data| data["event"] == "on_cancel").unwrap();
        let reason = end["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("cancelled by caller"), "{end}");
        assert_eq!(reason.ends_with(": the order was withdrawn"), message == "m1", "{end}");
    }
}

#[test]
fn workspace_of_a_task_that_never_began_is_removed() {
    let machine = machine();
    machine.team(
        "needs",
        "tools: [no-such-program-here]\nworkflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: \"true\"}]}\n",
    );
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/needs");
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{task}");
    assert!(task.to_string().contains("no-such-program-here"), "{task}");
    let workspace = machine.home.join("workspaces").join(&id);
    wait_for("the workspace goes", || (!workspace.exists()).then_some(()));
}

#[test]
fn messages_contexts_and_references() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let mut first = message("m1", "@local/steps");
    first["contextId"] = "talk".into();
    let params = json!({"message": first, "configuration": {"returnImmediately": true}});
    let task = caller.ok("SendMessage", &params)["task"].clone();
    let id = task["id"].as_str().unwrap();
    assert!(
        ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].contains(&task["status"]["state"].as_str().unwrap())
    );
    // The same message gives the same task, also when the rest of the request differs.
    assert_eq!(caller.ok("SendMessage", &params)["task"]["id"], id);
    let again: Vec<_> = std::thread::scope(|scope| {
        let sent: Vec<_> = (0..8).map(|_| scope.spawn(|| caller.start("m2", "@local/steps"))).collect();
        sent.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(again.windows(2).all(|pair| pair[0] == pair[1]), "{again:?}");
    // A message to the task that works, which waits for the end of the task.
    let mut more = message("m3", "@local/steps");
    more["taskId"] = id.into();
    let task = &caller.ok("SendMessage", &json!({"message": more}))["task"];
    assert_eq!((&task["id"], &task["status"]["state"]), (&id.into(), &"TASK_STATE_COMPLETED".into()));
    more["contextId"] = "other".into();
    assert_eq!(caller.error("SendMessage", &json!({"message": more}))["code"], -32602);
    caller.ended(id);
    more["contextId"] = "talk".into();
    let refused = caller.error("SendMessage", &json!({"message": more}));
    assert!(refused["code"] == -32004 && refused.to_string().contains("referenceTaskIds"), "{refused}");
    // A task that refers to another, in the same conversation.
    let mut next = message("m4", "@local/steps");
    (next["contextId"], next["referenceTaskIds"]) = ("talk".into(), json!([id]));
    let task = caller.ok("SendMessage", &json!({"message": next}))["task"].clone();
    let run = server.run(task["id"].as_str().unwrap());
    assert!(run["requirement"].as_str().unwrap().contains(&format!("Earlier task {id}")), "{run}");
    let list = caller.ok("ListTasks", &json!({"contextId": "talk"}));
    let ids: Vec<&Value> = list["tasks"].as_array().unwrap().iter().map(|task| &task["id"]).collect();
    assert_eq!(ids, [&task["id"], &json!(id)], "last changed first");
}

#[test]
fn a_cancellation_at_any_moment() {
    let machine = machine_with(&json!({}));
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let mut tasks = Vec::new();
    for pause in [0, 1, 3, 6, 10, 20, 40, 80, 150] {
        let id = caller.start(&format!("m{pause}"), "@local/slow");
        std::thread::sleep(std::time::Duration::from_millis(pause));
        let task = caller.ok("CancelTask", &json!({"id": id}));
        assert_eq!(task["status"]["state"], "TASK_STATE_CANCELED", "after {pause} ms: {task}");
        let result = &task["artifacts"][0]["parts"][0]["data"];
        assert_eq!(result["status"], "cancelled", "{task}");
        let data = data(&updates(&caller, &id));
        assert_eq!(data.iter().filter(|d| d["event"] == "on_cancel").count(), 1, "{data:?}");
        tasks.push(id);
    }
    // The workspace of a task has its name, so each process of the task names it.
    for id in tasks {
        wait_for("the processes of a cancelled task to end", || {
            cliq_testkit::machine::processes_with(&id).is_empty().then_some(())
        });
    }
}

#[test]
fn agent_output_is_streamed_with_offsets() {
    let machine = machine();
    let mut settings: Value =
        serde_json::from_slice(&fs::read(machine.home.join("settings.json")).unwrap()).unwrap();
    settings["server"]["workflow_streaming"] = true.into();
    fs::write(machine.home.join("settings.json"), settings.to_string()).unwrap();
    let agent = machine.home.join("teams/@local/talks/agents/talker");
    machine.team(
        "talks",
        "agents:\n  talker: {entry: agents/talker/run}\nworkflow:\n  phases:\n    - {name: a, type: standard, agent: talker}\n",
    );
    fs::create_dir_all(&agent).unwrap();
    fs::write(machine.home.join("teams/@local/talks/roles/a.md"), "Talk.").unwrap();
    let script = r#"#!/usr/bin/env python3
import json, os, sys, time
message = json.load(sys.stdin)
print("\x1b[31mred\x1b[0m \x07 line", flush=True)
time.sleep(0.7)
for n in range(5000): print(f"line {n}")
print("no newline at the end", end="", flush=True)
"#;
    fs::write(agent.join("run"), script).unwrap();
    let mut permissions = fs::metadata(agent.join("run")).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
    fs::set_permissions(agent.join("run"), permissions).unwrap();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/talks");
    caller.ended(&id);
    let outputs: Vec<Value> =
        data(&updates(&caller, &id)).into_iter().filter(|d| d["event"] == "phase_output").collect();
    let lines: Vec<&str> =
        outputs.iter().flat_map(|d| d["lines"].as_array().unwrap()).filter_map(Value::as_str).collect();
    assert_eq!(lines[0], "red  line");
    assert_eq!(lines.iter().filter(|line| line.starts_with("line ")).count(), 5000);
    assert_eq!(*lines.last().unwrap(), "no newline at the end");
    let offsets: Vec<u64> = outputs.iter().map(|d| d["offset"].as_u64().unwrap()).collect();
    assert!(offsets[0] == 0 && offsets.windows(2).all(|pair| pair[0] < pair[1]), "{offsets:?}");
}

/// A text to a task that works is guidance for its agents; the response is the task (docs/steering.md).
#[test]
fn a_message_to_a_working_task_is_steering() {
    let machine = machine();
    let workflow = "workflow:
  phases:
    - {name: build, type: exec, commands: [{name: b, run: 'until test -e go; do sleep 0.02; done'}]}
    - {name: write, type: standard, agent: writer, depends_on: [build]}
";
    machine.team(
        "steered",
        &format!(
            "description: A team\ntools: [sh]\nagents: {{writer: {{entry: agents/writer}}}}\n{workflow}"
        ),
    );
    let agent = "#!/bin/sh
cat > dispatched && mv dispatched dispatched.json
until test -e seen; do sleep 0.02; done
say() { printf '{\"ts\":\"2026-01-01T00:00:00.000Z\",\"version\":1,\"type\":\"phase\",%s}\\n' \"$1\" >> \"$CLIQ_SIGNAL_FILE\"; }
say '\"status\":\"ok\"'
say '\"status\":\"complete\",\"result\":{}'
";
    machine.agent("steered", "writer", agent, &["write"]);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/steered");
    caller.works(&id);
    let send = |message_id: &str, parts: Value| {
        json!({"message": {"messageId": message_id, "role": "ROLE_USER", "taskId": id, "parts": parts},
               "configuration": {"returnImmediately": true}})
    };
    for _ in 0..2 {
        let task =
            &caller.ok("SendMessage", &send("guide 1", json!([{"text": "Write it in French."}])))["task"];
        assert_eq!(
            (&task["id"], &task["status"]["state"]),
            (&id.as_str().into(), &"TASK_STATE_WORKING".into())
        );
    }
    let task = caller.task(&id);
    let history: Vec<&Value> = task["history"].as_array().unwrap().iter().map(|m| &m["messageId"]).collect();
    assert_eq!(history, ["m1", "guide 1"], "{task}");
    let for_phase = json!([{"text": "Only one page."}, {"data": {"phase": "write"}}]);
    caller.ok("SendMessage", &send("guide-2", for_phase));
    for parts in [
        json!([{"text": "x"}, {"data": {"phase": "none"}}]),
        json!([{"text": "x"}, {"data": {"phase": "build"}}]),
        json!([{"text": " "}]),
        json!([{"data": {"verdict": "approve"}}]),
    ] {
        caller.error("SendMessage", &send("bad", parts));
    }
    let workspace = fs::read_dir(machine.home.join("workspaces"))
        .into_iter()
        .flatten()
        .chain(fs::read_dir(machine.home.join("tasks")).into_iter().flatten());
    let workspace = workspace.filter_map(Result::ok).map(|e| e.path()).find(|path| path.ends_with(&id));
    let workspace = workspace.expect("the workspace of the task");
    fs::write(workspace.join("go"), "").unwrap();
    // The workspace goes with the task.
    let text = wait_for("the agent's message", || fs::read_to_string(workspace.join("dispatched.json")).ok());
    fs::write(workspace.join("seen"), "").unwrap();
    let task = caller.ended(&id);
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    let message: Value = serde_json::from_str(&text).unwrap();
    let texts: Vec<&str> =
        message["steering"].as_array().unwrap().iter().map(|m| m["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Write it in French.", "Only one page."]);
    caller.error("SendMessage", &send("late", json!([{"text": "late"}])));
}
