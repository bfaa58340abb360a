//! The built-in agents, answering real messages.

use camino::Utf8Path;
use serde_json::{Value, json};

fn answer(dir: &Utf8Path, change: impl FnOnce(&mut Value)) -> Value {
    let signal_file = dir.join("signals.jsonl");
    let mut message = json!({
        "version": 1, "type": "phase", "run_id": "r", "workspace": dir, "cliq_dir": dir.join(".cliq"),
        "phase": {"name": "quality", "type": "gate", "agent": "rules", "iteration": 1},
        "inputs": {}, "incoming": [], "outgoing": [], "signal_file": signal_file, "files_dir": dir,
        "gate": {"iteration": 1, "max_iterations": 3, "checks": [{"name": "lint", "pass": true}, {"name": "tests", "pass": false}],
                 "route_targets": ["developer", "fixer"], "history": [], "context_file": "/x"},
    });
    change(&mut message);
    let message = cliq_protocol::AgentMessage::decode(message.to_string().as_bytes()).expect("a message");
    let _ = std::fs::remove_file(&signal_file);
    cliq_agents::agent(cliq_agents::Environment::of_process()).answer(message).expect("answered");
    let text = std::fs::read_to_string(&signal_file).expect("signals");
    serde_json::from_str(text.lines().last().expect("a line")).expect("json")
}

fn dir() -> (tempfile::TempDir, camino::Utf8PathBuf) {
    let guard = tempfile::tempdir().expect("a directory");
    let path = Utf8Path::from_path(guard.path()).expect("utf-8").to_owned();
    (guard, path)
}

#[test]
fn rules_decide_from_the_checks_alone() {
    let (_guard, dir) = dir();
    let verdict = |change: &dyn Fn(&mut Value)| answer(&dir, |m| change(m))["result"]["verdict"].clone();
    assert_eq!(verdict(&|_| ())["target"], "developer");
    assert_eq!(verdict(&|m| m["gate"]["checks"] = json!([]))["outcome"], "PASS");
    assert_eq!(verdict(&|m| m["phase"]["config"] = json!({"rules": {"tests": "fixer"}}))["target"], "fixer");
    assert_eq!(
        verdict(&|m| m["phase"]["config"] = json!({"rules": {"lint": "fixer"}}))["target"],
        "developer"
    );
    assert_eq!(
        verdict(&|m| m["phase"]["config"] = json!({"rules": {"tests": "ESCALATE"}}))["outcome"],
        "ESCALATE"
    );
    assert_eq!(verdict(&|m| m["gate"]["route_targets"] = json!([]))["outcome"], "ESCALATE");
}

#[test]
fn exec_runs_the_commands_of_the_message() {
    let (_guard, dir) = dir();
    let run = |commands: Value| {
        answer(&dir, |m| {
            m["phase"] = json!({"name": "build", "type": "exec", "agent": "exec", "iteration": 1, "commands": commands});
            m["gate"] = Value::Null;
        })
    };
    let end = run(
        json!([{"name": "a", "run": "touch made"}, {"name": "b", "run": "exit 3", "escalate_on_fail": false}, {"name": "c", "run": "x", "if": "false"}]),
    );
    assert_eq!(
        (&end["status"], &end["result"]["failed"], &end["result"]["total"]),
        (&json!("complete"), &json!(1), &json!(3))
    );
    assert!(dir.join("made").exists());
    let end = run(json!([{"name": "a", "run": "exit 3"}, {"name": "b", "run": "touch never"}]));
    assert_eq!(end["error"], "command `a` failed (exit status: 3)");
    assert!(!dir.join("never").exists());
}

#[test]
fn an_agent_that_is_not_there_is_an_error_that_names_those_that_are() {
    let (_guard, dir) = dir();
    let end = answer(&dir, |m| m["phase"]["agent"] = json!("jira"));
    let error = end["error"].as_str().expect("a text");
    assert!(
        error.starts_with(
            "this version of cliq has no built-in agent `jira` for phases of type `gate`; it has: a2a, builder, email, exec"
        ),
        "{error}"
    );
}
