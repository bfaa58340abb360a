//! Human gates: permission requests, forms, and answers from elsewhere.

use serde_json::json;

use super::editor::{Editor, TEAM, project, selected};

#[test]
fn approval_publishes_the_result() {
    let env = project(TEAM);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    let options: Vec<_> = permission["params"]["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|option| (option["optionId"].as_str().unwrap().to_owned(), option["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(options[0], ("approve".to_owned(), "allow_once"));
    assert_eq!(options.last().unwrap(), &("reject".to_owned(), "reject_once"));
    assert!(!env.exists("published.txt"));
    editor.respond(&permission, selected("approve"));
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
    assert!(env.exists("published.txt"));
    let review = env.cliq(["review", "list", "--all", "--json"]).expect(0).json();
    assert_eq!(review["reviews"][0]["answers"][0]["via"], "editor");
}

#[test]
fn rejection_ends_the_run() {
    let env = project(TEAM);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    editor.respond(&permission, selected("reject"));
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "escalated");
    assert!(!env.exists("published.txt"));
}

#[test]
fn requested_changes_take_the_next_message_as_words() {
    let env = project(TEAM);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let first = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    editor.respond(&permission, selected("changes:build"));
    assert_eq!(editor.response(first)["result"]["stopReason"], "end_turn");
    assert!(editor.text().contains("Write the changes that build is to make"), "{}", editor.text());
    let second = editor.prompt(&session, "Use fewer words.");
    let again = editor.permission();
    let handoff = env.read_json(".cliq/channels/approval--build/handoff.json");
    assert_eq!(handoff["data"]["verdict"]["reason"], "Use fewer words.");
    editor.respond(&again, selected("approve"));
    assert_eq!(editor.response(second)["result"]["_meta"]["cliq"]["status"], "completed");
}

#[test]
fn a_client_with_forms_is_asked_for_words_and_inputs() {
    let team = TEAM.replace(
        "timeout: 1h}",
        "timeout: 1h, inputs: [{name: version, label: Version, type: text, required: true}, {name: loud, label: Loud, type: boolean}]}",
    );
    let env = project(&team);
    env.write("go", "");
    let mut editor = Editor::start(&env, json!({ "elicitation": { "form": {} } }));
    let session = editor.call("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let prompt = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    editor.respond(&permission, selected("changes:build"));
    let is_form = |message: &serde_json::Value| message["method"] == "elicitation/create";
    let form = editor.wait("form", is_form);
    editor.respond(&form, json!({ "action": "accept", "content": { "changes": "Shorter." } }));
    let permission = editor.permission();
    editor.respond(&permission, selected("approve"));
    let form = editor.wait("form", is_form);
    let schema = &form["params"]["requestedSchema"];
    assert_eq!(schema["required"], json!(["version"]));
    assert_eq!(schema["properties"]["loud"]["type"], "boolean");
    editor.respond(&form, json!({ "action": "accept", "content": { "version": "1.2", "loud": true } }));
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
    let review = env.cliq(["review", "list", "--all", "--json"]).expect(0).json();
    assert_eq!(review["reviews"][0]["answers"][0]["inputs"], json!({ "version": "1.2", "loud": true }));
}

#[test]
fn nothing_unclear_approves() {
    let env = project(TEAM);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    let call = permission["params"]["toolCall"]["toolCallId"].clone();
    editor.respond(&permission, json!({ "outcome": { "outcome": "cancelled" } }));
    let update = editor.update("tool_call_update", |update| {
        update["toolCallId"] == call && update.to_string().contains("was not answered here")
    });
    assert!(update.to_string().contains("cliq review approve"), "{update}");
    // The review still waits, and is answered elsewhere.
    env.cliq(["review", "approve"]).expect(0);
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
}

#[test]
fn an_answer_from_elsewhere_withdraws_the_request() {
    let env = project(TEAM);
    env.write("go", "");
    let (mut editor, session) = Editor::with_session(&env);
    let prompt = editor.prompt(&session, "Build it.");
    let permission = editor.permission();
    env.cliq(["review", "approve"]).expect(0);
    let withdrawn = editor.wait("withdrawal", |message| message["method"] == "$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], permission["id"]);
    // A late answer is no answer.
    editor.respond(&permission, selected("reject"));
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
}
