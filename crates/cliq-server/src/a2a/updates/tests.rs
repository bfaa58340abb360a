//! Updates of events, for a caller of the agent.
#![allow(clippy::wildcard_enum_match_arm, reason = "tests look for one kind of update")]

use cliq_a2a::{Content, StreamItem};
use proptest::prelude::*;

use super::*;

fn context() -> TaskContext {
    TaskContext {
        task_id: "task-1".into(),
        context_id: "context-1".into(),
        team: "@local/blog".into(),
        instance_id: "cliq-test".into(),
    }
}

fn updates(event: &Value) -> Vec<Update> {
    updates_of(&context(), 7, event)
}

fn states(event: &Value) -> Vec<TaskState> {
    let state = |update: Update| match update.item {
        StreamItem::Status { status, .. } => Some(status.state),
        _ => None,
    };
    updates(event).into_iter().filter_map(state).collect()
}

/// The data parts of the updates of an event.
fn data(event: &Value) -> Vec<Value> {
    let of = |update: Update| match update.item {
        StreamItem::Status { status, .. } => status.message.map(|message| message.parts),
        _ => None,
    };
    let parts = updates(event).into_iter().filter_map(of).flatten();
    parts
        .filter_map(|part| match part.content {
            Content::Data(value) => Some(value),
            _ => None,
        })
        .collect()
}

#[test]
fn review_asks_the_caller() {
    let review = json!({"id": "r", "reviewers": ["ann", "bob"], "since": "s", "until": "u"});
    let event = json!({"event": "review_waits", "ts": "t", "phase": "p", "iteration": 2, "review": review});
    assert_eq!(states(&event), [TaskState::InputRequired]);
    let [data] = &data(&event)[..] else { panic!("one part") };
    assert_eq!(
        (&data["event"], &data["review"], &data["reviewers"]),
        (&json!("hug_review"), &json!("r"), &json!(["ann", "bob"]))
    );
    // Meanwhile other phases do not take that back.
    for (input_required, state) in
        [(json!(true), TaskState::InputRequired), (json!(false), TaskState::Working)]
    {
        let started = json!({"event": "phase_started", "phase": "q", "kind": "standard", "iteration": 1, "input_required": input_required});
        assert_eq!(states(&started), [state]);
    }
    let ended = json!({"event": "task_finished", "status": "completed", "input_required": true});
    assert_eq!(states(&ended), [TaskState::Completed]);
}

#[test]
fn interrupted_run_works_unless_it_failed() {
    let died =
        |state: &str| states(&json!({"event": "orchestrator_died", "state": state, "reason": "killed"}));
    assert_eq!((died("starting"), died("failed")), (vec![TaskState::Working], vec![]));
    assert_eq!(states(&json!({"event": "run_waiting"})), []);
}

#[test]
fn summary_of_commands_says_whether_the_gate_continues() {
    let summary = |passes: &[bool], iteration: u64, limit: Option<u64>| {
        let results: Vec<Value> = passes.iter().map(|pass| json!({"name": "c", "pass": pass})).collect();
        let event = json!({"event": "commands_finished", "phase": "g", "iteration": iteration, "max_iterations": limit, "results": results});
        let all = data(&event);
        assert_eq!(all.len(), passes.len() * 2 + 1, "started and completed for each");
        let last = all.last().unwrap();
        assert_eq!(last["passed"], passes.iter().filter(|pass| **pass).count());
        last["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(summary(&[true, true], 1, Some(3)), "PASS");
    assert_eq!(summary(&[true, false], 1, Some(3)), "CONTINUE");
    assert_eq!(summary(&[true, false], 2, Some(3)), "CONTINUE");
    assert_eq!(summary(&[true, false], 3, Some(3)), "ESCALATE");
    assert_eq!(summary(&[false], 1, None), "ESCALATE");
    assert_eq!(summary(&[true], 3, Some(3)), "PASS");
}

#[test]
fn each_command_is_reported_when_it_begins_and_ends() {
    let started = data(&json!({"event": "command_started", "ts": "t1", "phase": "g", "command": "tests"}));
    assert_eq!(started, [json!({"type": "cliq:command_started", "command": "tests", "phase": "g"})]);
    let result = |skipped: bool| json!({"name": "tests", "pass": true, "skipped": skipped});
    let ended = data(&json!({"event": "command_finished", "phase": "g", "result": result(false)}));
    assert_eq!((&ended[0]["type"], &ended[0]["pass"]), (&json!("cliq:command_completed"), &json!(true)));
    // Commands that were reported are not reported again.
    let all = data(
        &json!({"event": "commands_finished", "phase": "g", "iteration": 1, "reported": true, "results": [result(false)]}),
    );
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0]["type"], &all[0]["verdict"]), (&json!("cliq:commands_summary"), &json!("PASS")));
}

#[test]
fn skipped_command_is_neither_started_nor_passed() {
    let results = json!([{"name": "a", "pass": true}, {"name": "b", "pass": true, "skipped": true}]);
    let all = data(&json!({"event": "commands_finished", "phase": "g", "iteration": 1, "results": results}));
    let types: Vec<&str> = all.iter().map(|data| data["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        ["cliq:command_started", "cliq:command_completed", "cliq:command_completed", "cliq:commands_summary"]
    );
    assert_eq!(all[2]["skipped"], true);
    let last = &all[3];
    assert_eq!((&last["passed"], &last["total"], &last["skipped"]), (&json!(1), &json!(2), &json!(1)));
    assert_eq!(last["verdict"], "PASS");
}

/// Events of the table in docs/a2a.md, from the line of the journal or the event of the server that each comes from.
fn events() -> Vec<Value> {
    vec![
        json!({"event": "run_queued", "ts": "2026-01-01T00:00:00.000Z"}),
        json!({"event": "run_dispatched", "ts": "2026-01-01T00:00:01.000Z", "workspace": "/w"}),
        json!({"event": "workspace_prepared", "ts": "t", "req_key": "abc", "tools": [{"tool": "git", "available": true}, {"tool": "node", "available": false}]}),
        json!({"event": "phase_started", "ts": "t", "phase": "writer", "kind": "standard", "iteration": 1}),
        json!({"event": "phase_output", "ts": "t", "phase": "writer", "activation": 1, "offset": 10, "bytes": 4, "lines": ["a", "b"]}),
        json!({"event": "phase_completed", "ts": "t", "phase": "writer", "phase_type": "standard", "iteration": 1, "outcome": "done"}),
        json!({"event": "commands_finished", "ts": "t", "phase": "gate", "iteration": 1, "max_iterations": 2, "results": [
            {"name": "output-exists", "pass": true, "exit_code": 0, "duration_ms": 50}, {"name": "words", "pass": false, "exit_code": 1, "duration_ms": 3}]}),
        json!({"event": "verdict", "ts": "t", "gate": "gate", "iteration": 1, "max_iterations": 2, "verdict": {"outcome": "ROUTE", "target": "writer", "reason": "too short"}, "commands": []}),
        json!({"event": "phase_escalated", "ts": "t", "phase": "gate", "reason": "exhausted"}),
        json!({"event": "orchestrator_died", "ts": "t", "state": "queued", "reason": "killed"}),
        json!({"event": "run_resumed", "ts": "t", "cliq_version": "1.2.3", "pid": 7}),
        json!({"event": "task_finished", "ts": "t", "status": "completed", "artifacts": [{"artifactId": "pipeline_result", "parts": [{"data": {"status": "completed"}}]}]}),
        json!({"event": "task_finished", "ts": "t", "status": "cancelled", "reason": "by a caller", "artifacts": []}),
        json!({"event": "task_finished", "ts": "t", "status": "failed", "reason": "exhausted", "phase": "gate", "artifacts": []}),
        json!({"event": "something_new", "ts": "t"}),
        json!({"event": "phase_skipped", "ts": "t", "phase": "docs", "kind": "exec", "reason": "condition"}),
        json!({"event": "items_started", "ts": "t", "phase": "fix", "items": 4, "starting": 3}),
        json!({"event": "item_failed", "ts": "t", "phase": "fix.2", "reason": "command `t` failed"}),
        json!({"event": "retry_scheduled", "ts": "t", "phase": "fetch", "attempt": 2, "attempts": 3, "delay_ms": 500, "reason": "exit"}),
        json!({"event": "merge_conflict", "ts": "t", "phase": "fix", "item": 1, "files": ["a", "b"]}),
        json!({"event": "verdict", "ts": "t", "gate": "gate", "iteration": 1, "max_iterations": 2, "verdict": {"outcome": "PASS"}, "failing": ["lint"]}),
    ]
}

#[test]
fn updates_are_pinned() {
    let updates: Vec<Value> = (1..)
        .zip(&events())
        .map(|(number, event)| {
            let list = updates_of(&context(), number, event);
            let items: Vec<Value> = list
                .iter()
                .map(|update| {
                    let status = wire::write_stream_item(Version::V0_3, &update.item);
                    let parts: Vec<Value> =
                        status["status"]["message"]["parts"].as_array().into_iter().flatten().cloned().collect();
                    json!({"id": update.number.to_string(), "state": status["status"]["state"], "final": status["final"],
                        "parts": parts, "artifact": status["artifact"]["artifactId"]})
                })
                .collect();
            json!({"event": event["event"], "updates": items})
        })
        .collect();
    insta::assert_json_snapshot!("updates", updates);
}

proptest! {
    /// A field of an event may be anything: other programs write journals, and databases are old.
    #[test]
    fn no_event_makes_it_panic(at in 0..21_usize, field in 0..8_usize, value in prop::sample::select(vec![
        Value::Null, json!(true), json!(-1), json!(1e300), json!("x"), json!(["x"]), json!({"outcome": "ROUTE"}), json!([{"name": "c"}]),
    ])) {
        let mut event = events().remove(at);
        let fields = event.as_object_mut().unwrap();
        let name = fields.keys().nth(field % fields.len()).unwrap().clone();
        fields.insert(name, value);
        for update in updates(&event) {
            prop_assert_eq!(update.number.event, 7);
        }
    }
}
