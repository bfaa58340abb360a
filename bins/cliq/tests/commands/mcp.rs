//! `cliq mcp`, spoken to by the official client of another language.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cliq_testkit::daemon::project;
use cliq_testkit::env::{Env, done, python_with};
use serde_json::{Value, json};

fn call(env: &Env, python: &PathBuf, calls: &Value) -> Value {
    let program = env.command(["mcp"]);
    let set = program.get_envs().filter_map(|(key, value)| Some((key, value?)));
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/commands/mcp_client.py");
    let mut child = Command::new(python)
        .arg(script)
        .arg(program.get_program())
        .current_dir(env.work())
        .envs(set)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python");
    child.stdin.take().expect("piped").write_all(calls.to_string().as_bytes()).expect("written");
    done(&child.wait_with_output().expect("it ends")).expect(0).json()
}

#[test]
fn an_agent_emits_signals_and_looks_at_plans() {
    let Some(python) = python_with("mcp") else { return };
    let env = project();
    env.write("ship.md", "Goal.\n\n## Wave 1\n\n### Task 1: a\nDo a.\n");
    env.cliq(["plan", "add", "ship.md"]).expect(0);
    let said = call(
        &env,
        &python,
        &json!([
            {"tool": "signal_create", "arguments": {"signal_type": "implement-task-finished", "plan": "ship", "payload": {"wave_number": 1, "task_number": 1}}},
            {"tool": "signal_create", "arguments": {"signal_type": "review_changes", "plan": "ship", "payload": "name it better"}},
            {"tool": "signal_create", "arguments": {"signal_type": "implement_wave", "plan": "ship"}},
            {"tool": "signal_create", "arguments": {"signal_type": "cancel", "plan": "ship"}},
            {"tool": "signal_create", "arguments": {"signal_type": "plan_start"}},
            {"tool": "signal_list", "arguments": {"status": "pending", "plan": "ship"}},
            {"tool": "signal_list", "arguments": {"status": "lost"}},
            {"tool": "plan_status", "arguments": {"plan": "ship"}},
            {"tool": "plan_status", "arguments": {}},
            {"tool": "plan_status", "arguments": {"plan": "nobody"}},
            {"tool": "run_status"}
        ]),
    );
    let tools: Vec<&str> = said["tools"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(tools, ["plan_status", "run_status", "signal_create", "signal_list"]);
    assert_eq!(said["tools"]["signal_create"]["required"], json!(["signal_type"]));
    let results = said["results"].as_array().unwrap();
    let fine = |n: usize| -> Value {
        assert_eq!(results[n]["error"], false, "{:#}", results[n]);
        serde_json::from_str(results[n]["text"].as_str().unwrap()).unwrap()
    };
    let refused = |n: usize, says: &str| {
        assert_eq!(results[n]["error"], true, "{:#}", results[n]);
        assert!(results[n]["text"].as_str().unwrap().contains(says), "{:#}", results[n]);
    };
    assert_eq!(
        (&fine(0)["type"], &fine(0)["payload"]["task_number"]),
        (&json!("implement_task_finished"), &json!(1))
    );
    assert_eq!(
        (&fine(1)["type"], &fine(1)["payload"]),
        (&json!("review_changes_requested"), &json!({"body": "name it better"}))
    );
    refused(2, "`wave_number`, a whole number");
    refused(3, "cliq plan cancel PLAN");
    refused(4, "name the plan");
    assert_eq!(fine(5)["signals"].as_array().unwrap().len(), 2, "what is refused is not there");
    refused(6, "pending, processing, done, failed");
    assert_eq!((&fine(7)["state"], &fine(7)["tasks"][0]["title"]), (&json!("ready"), &json!("a")));
    assert_eq!(fine(8)["plans"][0]["name"], "ship");
    refused(9, "there is no plan `nobody`");
    refused(10, "no team is assembled");
}

#[test]
fn a_client_that_goes_away_is_no_failure() {
    let env = project();
    let output = env.command(["mcp"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(done(&output).expect(0).stdout, "");
}
