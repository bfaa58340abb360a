//! A task of A2A that waits for a review is `input-required`, and a message of its caller decides it.

use cliq_testkit::machine::{Machine, Running, is_final, wait_for};
use serde_json::{Value, json};

use crate::reviews::waiting::team;

fn call(server: &Running, version: &str, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let bearer = format!("Bearer {}", server.token);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("a2a-version", version)];
    server.send("POST", "/a2a/jsonrpc", &headers, Some(&body)).expect(200).json()
}

fn machine() -> (Machine, Running) {
    let settings = json!({"server": {"a2a": {"advertise": ["@local"]}}});
    let machine = Machine::new().settings(&settings).arguments(&["--a2a"]);
    machine
        .team("review", &team("        reviewer: ann\n        inputs: [{name: version, required: true}]\n"));
    let server = machine.serve();
    (machine, server)
}

fn message(id: &str, data: &Value) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": "Write notes."}, {"data": data}]})
}

#[test]
fn a_caller_decides() {
    let (_machine, server) = machine();
    // The call waits until the task is over or asks.
    let sent = call(
        &server,
        "1.0",
        "SendMessage",
        &json!({"message": message("m1", &json!({"team": "@local/review"}))}),
    );
    let task = &sent["result"]["task"];
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{sent}");
    let asked = task["status"]["message"]["parts"].to_string();
    assert!(asked.contains("hug_review") && asked.contains("writer") && asked.contains("version"), "{asked}");
    let (id, context) = (task["id"].as_str().unwrap(), task["contextId"].as_str().unwrap());
    let listed = call(&server, "1.0", "ListTasks", &json!({"status": "TASK_STATE_INPUT_REQUIRED"}));
    assert_eq!(listed["result"]["tasks"][0]["id"], id, "{listed}");
    let answer = |n: &str, data: Value| {
        let message = json!({"messageId": n, "taskId": id, "contextId": context, "role": "ROLE_USER", "parts": [{"data": data}]});
        call(&server, "1.0", "SendMessage", &json!({"message": message}))
    };
    for (n, wrong) in [
        json!({}),
        json!({"verdict": "maybe"}),
        json!({"verdict": "approve"}),
        json!({"verdict": "request-changes", "target": "nowhere", "reason": "x"}),
        json!({"verdict": "request-changes", "target": "writer"}),
        json!({"verdict": "approve", "reviewer": "eve", "inputs": {"version": "1"}}),
    ]
    .into_iter()
    .enumerate()
    {
        let said = answer(&format!("w{n}"), wrong.clone());
        assert_eq!(said["error"]["code"], -32602, "{wrong}: {said}");
    }
    let again = answer("a1", json!({"verdict": "ROUTE:writer", "reason": "more"}));
    assert_eq!(again["result"]["task"]["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{again}");
    assert_eq!(again["result"]["task"]["id"], id);
    let done = answer("a2", json!({"verdict": "approve", "inputs": {"version": "7"}}));
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
    let late = answer("a3", json!({"verdict": "approve", "inputs": {"version": "7"}}));
    assert_eq!(late["error"]["code"], -32004, "{late}");
}

#[test]
fn a_stream_says_that_input_is_required() {
    let (_machine, server) = machine();
    let sent = call(
        &server,
        "1.0",
        "SendMessage",
        &json!({"message": message("m1", &json!({"team": "@local/review"})), "configuration": {"returnImmediately": true}}),
    );
    let id = sent["result"]["task"]["id"].as_str().unwrap().to_owned();
    let state = || {
        let got = call(&server, "0.3", "tasks/get", &json!({"id": id}));
        got["result"]["status"]["state"].as_str().unwrap_or_default().to_owned()
    };
    wait_for("it asks", || (state() == "input-required").then_some(()));
    // In 0.3 a stream closes where the caller is asked.
    let bearer = format!("Bearer {}", server.token);
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("last-event-id", "0.0")];
    let body =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tasks/resubscribe", "params": {"id": id}}).to_string();
    let stream = server.send("POST", "/a2a/jsonrpc", &headers, Some(&body)).expect(200).body;
    let last = stream.lines().filter_map(|line| line.strip_prefix("data:")).next_back().unwrap().to_owned();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["result"]["status"]["state"], "input-required", "{last}");
    assert_eq!(last["result"]["final"], true);
    let decide = json!({"messageId": "d", "taskId": id, "role": "user", "kind": "message",
        "parts": [{"kind": "data", "data": {"verdict": "reject", "reason": "no"}}]});
    call(&server, "0.3", "message/send", &json!({"message": decide}));
    wait_for("it is over", || (state() == "failed").then_some(()));
}

#[test]
fn another_caller_decides_nothing() {
    let (machine, server) = machine();
    let sent = call(
        &server,
        "1.0",
        "SendMessage",
        &json!({"message": message("m1", &json!({"team": "@local/review"}))}),
    );
    let id = sent["result"]["task"]["id"].as_str().unwrap().to_owned();
    let made = machine.ok(&["server", "token", "create", "--label", "other", "--scope", "run"]);
    let token = made.split_whitespace().find(|word| word.starts_with("cliq_")).unwrap().to_owned();
    let bearer = format!("Bearer {token}");
    let headers =
        [("authorization", bearer.as_str()), ("content-type", "application/json"), ("a2a-version", "1.0")];
    let message = json!({"messageId": "x", "taskId": id, "role": "ROLE_USER", "parts": [{"data": {"verdict": "reject"}}]});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}})
        .to_string();
    let said = server.send("POST", "/a2a/jsonrpc", &headers, Some(&body)).expect(200).json();
    assert_eq!(said["error"]["code"], -32001, "{said}");
}

/// A client that only sends text: it needs no team, its words reach the reviewers, and what it repeats counts once.
#[test]
fn client_that_only_sends_text() {
    let (machine, server) = machine();
    let send = |id: &str, task: Option<&str>, text: &str| {
        let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]});
        task.into_iter().for_each(|task| message["taskId"] = task.into());
        call(&server, "1.0", "SendMessage", &json!({"message": message}))["result"]["task"].clone()
    };
    let task = send("m1", None, "Write notes.");
    assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "the only team: {task}");
    let id = task["id"].as_str().unwrap();
    // The call returns at once, as the task asks already.
    assert_eq!(send("m1", None, "Write notes.")["id"], id);
    for _ in 0..2 {
        let task = send("m2", Some(id), "Please mention <b>the moon</b>.");
        assert_eq!(task["status"]["state"], "TASK_STATE_INPUT_REQUIRED", "{task}");
        assert!(task["status"]["message"]["parts"].to_string().contains("Answer with data"), "{task}");
    }
    let reviews = server.get("/api/v1/reviews?pending=true").expect(200).json();
    let review = &reviews["reviews"][0];
    assert_eq!(review["comments"].as_array().unwrap().len(), 1, "{review}");
    assert_eq!(review["comments"][0]["text"], "Please mention <b>the moon</b>.");
    assert_eq!(review["answers"], json!([]));
    let shown = machine.ok(&["review", "show", review["id"].as_str().unwrap()]);
    assert!(shown.contains("Please mention <b>the moon</b>."), "{shown}");
    // Without words and without a verdict there is nothing to do.
    let empty = json!({"messageId": "m3", "taskId": id, "role": "ROLE_USER", "parts": [{"data": {}}]});
    assert_eq!(call(&server, "1.0", "SendMessage", &json!({"message": empty}))["error"]["code"], -32602);
    let decide = json!({"messageId": "m4", "taskId": id, "role": "ROLE_USER",
        "parts": [{"data": {"verdict": "approve", "inputs": {"version": "7"}}}]});
    let done = call(&server, "1.0", "SendMessage", &json!({"message": decide}));
    assert_eq!(done["result"]["task"]["status"]["state"], "TASK_STATE_COMPLETED", "{done}");
}

/// Output of other phases, which a stream shows, does not take the place of the question.
#[test]
fn question_stays_the_message_of_a_task_while_outputs_are_streamed() {
    let settings = json!({"server": {"a2a": {"advertise": ["@local"]}, "workflow_streaming": true}});
    let machine = Machine::new().settings(&settings).arguments(&["--a2a"]);
    let workflow = team("        reviewer: ann\n")
        + "    - {name: talk, type: standard, agent: talker, depends_on: [writer]}\n";
    machine.team("review", &format!("agents: {{talker: {{entry: agents/talker}}}}\n{workflow}"));
    let agent = r#"#!/bin/sh
cat > /dev/null
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
say '"status":"ok"'
until [ -e stop ]; do echo "a later output"; sleep 0.05; done
say '"status":"complete","result":{}'
"#;
    machine.agent("review", "talker", agent, &["talk"]);
    let server = machine.serve();
    let sent = call(
        &server,
        "1.0",
        "SendMessage",
        &json!({"message": message("m1", &json!({"team": "@local/review"})), "configuration": {"returnImmediately": true}}),
    );
    let id = sent["result"]["task"]["id"].as_str().unwrap().to_owned();
    let get =
        |version: &str, method: &str| call(&server, version, method, &json!({"id": id}))["result"].clone();
    let asks = || {
        let task = get("1.0", "GetTask");
        (task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED").then_some(task)
    };
    wait_for("the question", asks);
    // Outputs that were printed after the question.
    wait_for("later outputs", || {
        let events = server.events(&id);
        let asked = events.iter().rposition(|(_, event)| event["event"] == "review_waits")?;
        (events.len() - asked > 3).then_some(())
    });
    let task = asks().expect("it still asks");
    let asked = task["status"]["message"]["parts"].to_string();
    assert!(asked.contains("hug_review") && !asked.contains("a later output"), "{task}");
    let old = get("0.3", "tasks/get");
    assert_eq!(old["status"]["state"], "input-required", "{old}");
    assert!(old["status"]["message"]["parts"].to_string().contains("hug_review"), "{old}");
    call(&server, "1.0", "CancelTask", &json!({"id": id}));
    wait_for("its end", || is_final(&server.run(&id)).then_some(()));
}
