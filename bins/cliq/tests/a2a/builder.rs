//! Capabilities of the builder: with a scripted model behind the real client of its API.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use cliq_testkit::agent::{Caller, machine, machine_with};
use cliq_testkit::machine::Machine;
use serde_json::{Value, json};

/// A model that gives these answers, one after the other, over the API of Anthropic. Keeps the questions.
fn model(answers: Vec<String>) -> (String, Arc<Mutex<Vec<Value>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let asked: Arc<Mutex<Vec<Value>>> = Arc::default();
    let questions = Arc::clone(&asked);
    std::thread::spawn(move || {
        for (stream, answer) in listener.incoming().zip(answers) {
            let stream = stream.unwrap();
            let (mut reader, mut length) = (BufReader::new(&stream), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                match line.trim().to_ascii_lowercase().strip_prefix("content-length: ") {
                    Some(value) => length = value.parse().unwrap(),
                    None if line.trim().is_empty() => break,
                    None => {}
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            questions.lock().unwrap().push(serde_json::from_slice(&body).unwrap());
            let events = [
                json!({"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}),
                json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": answer}}),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
                json!({"type": "message_stop"}),
            ];
            let text: String = events
                .iter()
                .map(|e| format!("event: {}\ndata: {e}\n\n", e["type"].as_str().unwrap()))
                .collect();
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n",
                text.len()
            );
            let _ = (&stream).write_all((head + &text).as_bytes());
        }
    });
    (url, asked)
}

fn with_model(url: &str) -> Machine {
    let machine = machine_with(&json!({"enable_builder": true}));
    let file = machine.home.join("settings.json");
    let mut settings: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    settings["builder"] = json!({"provider": "anthropic", "api_key": "sk-hush-hush", "base_url": url, "model": "builder-model"});
    std::fs::write(file, settings.to_string()).unwrap();
    machine
}

fn call(caller: &Caller<'_>, id: &str, data: &Value) -> Value {
    let message = json!({"messageId": id, "role": "ROLE_USER", "parts": [{"data": data}]});
    caller.ok("SendMessage", &json!({"message": message}))["task"].clone()
}

fn result(task: &Value) -> &Value {
    assert_eq!(task["status"]["state"], "TASK_STATE_COMPLETED", "{task}");
    &task["artifacts"][0]["parts"][0]["data"]
}

const TEAM: &str = "name: \"@local/reports\"\ndescription: Writes reports\nuse_when: [a report is needed]\nworkflow:\n  phases:\n    - {name: write, type: exec, commands: [{name: w, run: \"echo x > report.md\"}]}\n    - {name: check, type: gate, agent: rules, depends_on: [write], commands: [{name: there, run: \"test -s report.md\"}]}\n";

fn answer(team_yml: &str, roles: &Value) -> String {
    format!("Here it is.\n\n```json\n{}\n```\n", json!({"team_yml": team_yml, "roles": roles}))
}

#[test]
fn a_team_is_built_mended_installed_and_runs() {
    let broken = TEAM.replace("depends_on: [write]", "depends_on: [nosuch]");
    let (url, asked) = model(vec![answer(&broken, &json!([])), answer(TEAM, &json!([]))]);
    let machine = with_model(&url);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let task = call(
        &caller,
        "m1",
        &json!({"skill": "build_team", "intent": "Write a report", "auto_install": true}),
    );
    let built = result(&task);
    assert_eq!((&built["name"], &built["installed"]), (&json!("@local/reports"), &json!(true)), "{built}");
    assert_eq!(built["phases"][1]["commands"][0]["name"], "there");
    assert_eq!(built["use_when"][0], "a report is needed");
    {
        let asked = asked.lock().unwrap();
        assert_eq!(asked.len(), 2, "the model is asked once to mend");
        assert_eq!(asked[0]["model"], "builder-model");
        assert!(
            asked[0].to_string().contains("Write a report") && asked[1].to_string().contains("nosuch"),
            "{asked:?}"
        );
    }
    // It is offered at once, and works.
    cliq_testkit::machine::wait_for("it is offered", || {
        let message = cliq_testkit::agent::message("m2", "@local/reports");
        let sent = caller.call("1.0", "SendMessage", &json!({"message": message}));
        (sent["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED").then_some(())
    });
    let text = task.to_string() + &std::fs::read_to_string(machine.path("log")).unwrap();
    assert!(!text.contains("sk-hush-hush"));
}

#[test]
fn nothing_broken_is_installed() {
    let good_role = json!([{"name": "write", "content": "Write."}]);
    for (n, answers) in [
        // Broken twice.
        vec![answer("name: x", &json!([])), answer("workflow: [", &json!([]))],
        // Names that leave the folder.
        vec![answer(&TEAM.replace("@local/reports", "@local/../../../evil"), &json!([])); 2],
        vec![answer(TEAM, &json!([{"name": "../../evil", "content": "x"}])); 2],
        vec![answer(&TEAM.replace("@local/", "@cliq/"), &good_role); 2],
        // Programs of its own.
        vec![
            answer(
                &TEAM.replace("workflow:", "agents:\n  evil: {entry: ../../../bin/sh}\nworkflow:"),
                &json!([])
            );
            2
        ],
        vec!["I will not.".to_owned(), "No.".to_owned()],
    ]
    .into_iter()
    .enumerate()
    {
        let (url, _) = model(answers);
        let machine = with_model(&url);
        let server = machine.serve();
        let caller = Caller::new(&machine, &server);
        let task = call(&caller, "m1", &json!({"skill": "build_team", "intent": "x", "auto_install": true}));
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{n}: {task}");
        let names: Vec<_> = std::fs::read_dir(machine.home.join("teams/@local"))
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{n}: {names:?}");
        assert!(!machine.home.join("evil").exists() && !machine.path("evil").exists());
    }
    // One that exists is not replaced.
    let (url, _) = model(vec![answer(&TEAM.replace("@local/reports", "@local/steps"), &json!([]))]);
    let machine = with_model(&url);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let before = std::fs::read(machine.home.join("teams/@local/steps/team.yml")).unwrap();
    let task = call(&caller, "m1", &json!({"skill": "build_team", "intent": "x", "auto_install": true}));
    assert!(task["status"].to_string().contains("exists"), "{task}");
    assert_eq!(std::fs::read(machine.home.join("teams/@local/steps/team.yml")).unwrap(), before);
}

#[test]
fn a_role_is_improved() {
    let better =
        "You write reports. You get a topic and hand on a page of text. You are done when it has a title.";
    let short = format!("```json\n{}\n```", json!({"role_content": "Too short"}));
    let (url, asked) = model(vec![short, format!("```json\n{}\n```", json!({"role_content": better}))]);
    let machine = with_model(&url);
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let data = json!({"skill": "improve_role", "role_name": "writer", "role_content": "Write.", "team_name": "@local/reports", "instruction": "Be precise"});
    let task = call(&caller, "m1", &data);
    assert_eq!(result(&task)["role_content"], better);
    assert!(asked.lock().unwrap()[0].to_string().contains("Be precise"));
    for (n, (key, value)) in
        [("role_name", "../x"), ("team_name", "x"), ("team_name", "@a/../b")].into_iter().enumerate()
    {
        let mut data = json!({"skill": "improve_role", "role_name": "writer", "role_content": "Write.", "team_name": "@local/r"});
        data[key] = value.into();
        let task = call(&caller, &format!("w{n}"), &data);
        assert_eq!(task["status"]["state"], "TASK_STATE_FAILED", "{key}: {value}");
    }
}

#[test]
fn a_team_is_validated_without_a_model() {
    let machine = machine_with(&json!({"enable_builder": true}));
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let good = json!({"name": "@local/x", "workflow": {"phases": [{"name": "a", "type": "exec", "commands": [{"name": "c", "run": "true"}]}]}});
    let task = call(&caller, "m1", &json!({"skill": "validate_team", "team_json": good.to_string()}));
    assert_eq!(*result(&task), json!({"valid": true, "errors": [], "warnings": []}));
    let mut bad = good;
    bad["workflow"]["phases"][0]["depends_on"] = json!(["nosuch"]);
    let task = call(&caller, "m2", &json!({"skill": "validate_team", "team_json": bad}));
    let found = result(&task);
    assert_eq!(found["valid"], false);
    assert!(found["errors"].to_string().contains("nosuch"), "{found}");
    for (n, team) in [json!("not JSON {"), json!("[1]"), json!(""), json!(7)].into_iter().enumerate() {
        let task = call(&caller, &format!("x{n}"), &json!({"skill": "validate_team", "team_json": team}));
        let found = result(&task);
        assert_eq!(found["valid"], false, "{team}: {found}");
        assert!(found["errors"][0].as_str().unwrap().contains("team_json"), "{team}: {found}");
    }
    let message =
        json!({"messageId": "m3", "role": "ROLE_USER", "parts": [{"data": {"skill": "validate_team"}}]});
    let error = caller.error("SendMessage", &json!({"message": message}));
    assert!(error["code"] == -32602 && error.to_string().contains("team_json"), "{error}");
}

#[test]
fn without_the_setting_there_is_no_builder() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let message = json!({"messageId": "m", "role": "ROLE_USER", "parts": [{"data": {"skill": "validate_team", "team_json": "{}"}}]});
    assert_eq!(caller.error("SendMessage", &json!({"message": message}))["code"], -32602);
    let message = cliq_testkit::agent::message("m", "@builder/validate-team");
    assert_eq!(caller.error("SendMessage", &json!({"message": message}))["code"], -32602);
    server.post("/api/v1/runs", &json!({"team": "@builder/build-team", "requirement": "{}"})).expect(422);
    assert!(!server.get("/api/v1/teams").expect(200).body.contains("@builder"));
}
