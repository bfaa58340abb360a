//! Runs of prompts: from the prompt to the result, guidance, cancellation, failure.

use cliq_testkit::env::Env;
use serde_json::json;

use super::editor::{BUILDER, Editor, PLAIN, project};

#[test]
fn a_prompt_is_a_run_with_plan_tool_calls_and_result() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "# Build it\n\nNow.");
    let title = editor.update("session_info_update", |_| true);
    assert_eq!(title["title"], "Build it");
    let call = editor.update("tool_call", |update| update["title"] == "build");
    assert_eq!(call["status"], "in_progress");
    editor.update("agent_thought_chunk", |update| update["content"]["text"] == "build: at work\n");
    env.write("go", "");
    let answer = editor.response(prompt);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert_eq!(answer["result"]["_meta"]["cliq"]["status"], "completed");
    assert_eq!(answer["result"]["_meta"]["cliq"]["run"], env.run_id());
    let id = call["toolCallId"].clone();
    let done = editor
        .update("tool_call_update", |update| update["toolCallId"] == id && update["status"] == "completed");
    assert_eq!(done["content"][0]["content"]["text"], "built it");
    let plan = editor.update("plan", |update| {
        update["entries"].as_array().unwrap().iter().all(|entry| entry["status"] == "completed")
    });
    assert_eq!(plan["entries"].as_array().unwrap().len(), 2);
    assert!(editor.text().contains("- ✓ **build**: built it\n"), "{}", editor.text());
    assert!(env.exists("published.txt"));
    assert!(env.read(".cliq/requirement.md").starts_with("# Build it"));
    // The next prompt is a new run.
    let prompt = editor.prompt(&session, "Again.");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    assert_eq!(env.read(".cliq/requirement.md"), "Again.\n");
    assert!(editor.close());
}

#[test]
fn a_prompt_during_a_run_is_guidance() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    let first = editor.prompt(&session, "Build it.");
    env.wait_for("the builder", || env.exists("started"));
    let second = editor.prompt(&session, "Keep the old API.");
    assert_eq!(editor.response(second)["result"]["stopReason"], "end_turn");
    assert!(env.read(".cliq/journal.jsonl").contains("Keep the old API."));
    let third = editor.prompt(&session, " ");
    assert_eq!(editor.response(third)["error"]["code"], -32602);
    env.write("go", "");
    assert_eq!(editor.response(first)["result"]["stopReason"], "end_turn");
}

#[test]
fn cancel_ends_the_run_and_the_prompt() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    env.wait_for("the builder", || env.exists("started"));
    editor.notify("session/cancel", json!({ "sessionId": session }));
    let answer = editor.response(prompt);
    assert_eq!(answer["result"]["stopReason"], "cancelled", "{answer}");
    assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["state"], "cancelled");
    assert_eq!(env.left_over(), Vec::<String>::new());
    // A cancelled run can be continued.
    env.write("go", "");
    let prompt = editor.prompt(&session, "/resume");
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
}

#[test]
fn a_run_that_does_not_complete_is_told_with_its_reason() {
    let team = "workflow:\n  phases:\n    - {name: t, type: exec, commands: [{name: c, run: 'echo broken; exit 3'}]}\n";
    let env = Env::new(team, &[]);
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Try.");
    let answer = editor.response(prompt);
    assert_eq!(answer["result"]["_meta"]["cliq"]["status"], "escalated", "{answer}");
    let text = editor.text();
    assert!(text.contains("**ESCALATED**") && text.contains("Reason: t: "), "{text}");
    editor.update("tool_call_update", |update| update["status"] == "failed");
}

#[test]
fn a_run_whose_orchestrator_dies_is_an_error_and_can_be_continued() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    env.wait_for("the builder", || env.exists("started"));
    let lock = env.read(".cliq/lock");
    let pid = lock.split_whitespace().next().unwrap().to_owned();
    assert!(std::process::Command::new("kill").args(["-9", &pid]).status().unwrap().success());
    let answer = editor.response(prompt);
    assert!(answer["error"]["message"].as_str().unwrap().contains("interrupted"), "{answer}");
    env.write("go", "");
    let prompt = editor.prompt(&session, "Be quick.");
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
    assert!(env.read("dispatch.json").contains("Be quick."), "the message guides the continued run");
}

#[test]
fn diffs_of_a_repository_are_shown() {
    let env = Env::new(PLAIN, &[("builder", BUILDER)]);
    let git = |args: &[&str]| {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let output =
            std::process::Command::new("git").args(identity).args(args).current_dir(env.work()).output();
        assert!(output.unwrap().status.success(), "{args:?}");
    };
    env.write("built.txt", "old\n");
    git(&["init", "-q"]);
    git(&["add", "built.txt"]);
    git(&["commit", "-qm", "first"]);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    assert_eq!(editor.response(prompt)["result"]["stopReason"], "end_turn");
    let update = editor.update("tool_call_update", |update| update["locations"].is_array());
    let diff = update["content"].as_array().unwrap().iter().find(|content| {
        content["type"] == "diff" && content["path"].as_str().unwrap().ends_with("/built.txt")
    });
    let diff = diff.unwrap_or_else(|| panic!("{update:#}"));
    assert_eq!(diff["oldText"], "old\n");
    assert_eq!(diff["newText"], env.read("built.txt"));
}
