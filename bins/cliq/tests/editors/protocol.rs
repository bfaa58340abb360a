//! Lines, methods and parameters.

use cliq_testkit::env::Env;
use serde_json::{Value, json};

use super::editor::{Editor, PLAIN, project};

#[test]
fn initialize_offers_what_the_agent_does() {
    let env = Env::bare();
    let mut editor = Editor::bare(&env);
    let early = editor.fails("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
    assert_eq!(early["code"], -32600, "{early}");
    let mut answer = editor.call("initialize", json!({ "protocolVersion": 7 }));
    assert_eq!(answer["agentInfo"]["version"], env!("CARGO_PKG_VERSION"));
    answer["agentInfo"]["version"] = "VERSION".into();
    insta::assert_json_snapshot!("initialize", answer);
    let terminal = json!({ "protocolVersion": 1, "clientCapabilities": { "auth": { "terminal": true } } });
    let answer = editor.call("initialize", terminal);
    assert_eq!(answer["authMethods"][1]["args"], json!(["--setup"]));
    assert!(editor.close());
}

#[test]
fn authenticate_checks_the_agents_of_the_machine() {
    let env = Env::bare();
    env.without_models();
    let mut editor = Editor::start(&env, json!({}));
    let error = editor.fails("authenticate", json!({ "methodId": "machine-agents" }));
    assert_eq!(error["code"], -32000, "{error}");
    assert!(error["message"].as_str().unwrap().contains("cliq doctor"), "{error}");
    env.cliq(["settings", "set", "-g", "default_agent", "mock"]).expect(0);
    editor.call("authenticate", json!({ "methodId": "machine-agents" }));
    assert_eq!(editor.fails("authenticate", json!({ "methodId": "other" }))["code"], -32602);
}

#[test]
fn unclear_lines_and_requests_get_one_error_each() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    let null = |message: &Value| message["id"].is_null() && message.get("error").is_some();
    for (line, code) in
        [("{", -32700), ("[]", -32600), ("3", -32600), (r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#, -32600)]
    {
        editor.write(line);
        assert_eq!(editor.wait("an error", null)["error"]["code"], code, "{line}");
    }
    editor.write(&"x".repeat(17 << 20));
    let error = editor.wait("an error", null);
    assert!(error["error"]["message"].as_str().unwrap().contains("the limit is"), "{error}");
    assert_eq!(editor.fails("session/unknown", json!({}))["code"], -32601);
    assert_eq!(editor.fails("session/prompt", json!({ "sessionId": session }))["code"], -32602);
    assert_eq!(editor.fails("session/new", json!({ "cwd": "relative", "mcpServers": [] }))["code"], -32602);
    let image = json!([{ "type": "image", "data": "", "mimeType": "image/png" }]);
    let error = editor.fails("session/prompt", json!({ "sessionId": session, "prompt": image }));
    assert!(error["message"].as_str().unwrap().contains("an image"), "{error}");
    let error = editor.fails("session/prompt", json!({ "sessionId": "none", "prompt": [] }));
    assert_eq!(error["code"], -32002, "{error}");
    // Notifications have no answer, and the agent goes on.
    editor.notify("session/cancel", json!({ "sessionId": session }));
    editor.notify("unknown", json!({}));
    editor.call("session/list", json!({}));
    assert!(editor.close());
}

#[test]
fn errors_name_file_line_and_remedy() {
    let env = Env::bare();
    let mut editor = Editor::start(&env, json!({}));
    let error = editor.fails("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
    assert!(error["message"].as_str().unwrap().contains("`cliq init`"), "{error}");
    env.cliq(["init"]).expect(0);
    let session = editor.call("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
    let session = session["sessionId"].as_str().unwrap().to_owned();
    let say = |editor: &mut Editor| {
        let prompt = json!([{ "type": "text", "text": "x" }]);
        let error = editor.fails("session/prompt", json!({ "sessionId": session, "prompt": prompt }));
        error["message"].as_str().unwrap().to_owned()
    };
    let error = say(&mut editor);
    assert!(error.contains("cliq assemble"), "{error}");
    env.write(".cliq/team.yml", "name: \"@local/x\"\nworkflow:\n  phases:\n    - {name: a, typ: exec}\n");
    let error = say(&mut editor);
    assert!(error.contains(".cliq/team.yml:4:"), "{error}");
    assert!(!env.exists(".cliq/requirement.md"), "the requirement of a run that cannot start is not set");
}
