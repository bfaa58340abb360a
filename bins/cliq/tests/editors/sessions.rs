//! Sessions: they outlive their process, and have options.

use cliq_testkit::env::Env;
use serde_json::{Value, json};

use super::editor::{Editor, PLAIN, TEAM, project, selected};

#[test]
fn a_killed_agent_leaves_the_run_and_a_new_one_continues_it() {
    let env = project(TEAM);
    let (mut editor, session) = Editor::with_session(&env);
    editor.prompt(&session, "Build it.");
    env.wait_for("the builder", || env.exists("started"));
    editor.kill();
    let run = env.run_id();
    let mut editor = Editor::start(&env, json!({}));
    let listed = editor.call("session/list", json!({ "cwd": env.work() }));
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str());
    assert_eq!(listed["sessions"][0]["title"], "Build it.");
    let load = json!({ "sessionId": session, "cwd": env.work(), "mcpServers": [] });
    editor.call("session/load", load.clone());
    let prompt = editor.update("user_message_chunk", |_| true);
    assert_eq!(prompt["content"]["text"], "Build it.");
    editor.update("tool_call", |update| update["title"] == "build" && update["status"] == "in_progress");
    assert!(editor.text().contains("The run is at work"), "{}", editor.text());
    editor.prompt(&session, "Keep the old API.");
    env.wait_for("the message", || env.read(".cliq/journal.jsonl").contains("Keep the old API."));
    env.write("go", "");
    let permission = editor.permission();
    editor.kill();
    // The review stays open, and another process asks again.
    let mut editor = Editor::start(&env, json!({}));
    editor.call("session/load", load);
    let prompt = editor.prompt(&session, "/follow");
    let again = editor.permission();
    assert_eq!(again["params"]["toolCall"], permission["params"]["toolCall"]);
    editor.respond(&again, selected("approve"));
    let answer = editor.response(prompt);
    assert_eq!(
        answer["result"]["_meta"]["cliq"],
        json!({ "run": run, "status": "completed", "caveats": [] })
    );
    assert!(env.exists("published.txt"));
}

#[test]
fn the_end_of_the_input_leaves_the_run() {
    let env = project(PLAIN);
    let (mut editor, session) = Editor::with_session(&env);
    editor.prompt(&session, "Build it.");
    // The prompt may still be starting its run.
    assert!(editor.close());
    env.wait_for("the builder", || env.exists("started"));
    env.write("go", "");
    env.wait_for("the end", || env.cliq(["status", "--json"]).expect(0).json()["state"] == "completed");
    let mut editor = Editor::start(&env, json!({}));
    let resume = json!({ "sessionId": session, "cwd": env.work(), "mcpServers": [] });
    editor.call("session/resume", resume.clone());
    assert!(!editor.seen.iter().any(|message| message.to_string().contains("tool_call")), "no replay");
    editor.call("session/load", resume);
    assert!(editor.text().contains("**COMPLETED**"), "{}", editor.text());
    // An unknown session is named.
    let unknown = json!({ "sessionId": "../../x", "cwd": env.work(), "mcpServers": [] });
    assert_eq!(editor.fails("session/load", unknown)["code"], -32002);
}

#[test]
fn a_run_of_somebody_else_is_not_guided() {
    let env = project(PLAIN);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the builder", || env.exists("started"));
    let (mut editor, session) = Editor::with_session(&env);
    let error = editor.prompt(&session, "Build another.");
    let error = editor.response(error);
    assert!(error["error"]["message"].as_str().unwrap().contains("`/follow` follows it"), "{error}");
    let follow = editor.prompt(&session, "/follow");
    editor.update("tool_call", |update| update["title"] == "build");
    env.write("go", "");
    assert_eq!(editor.response(follow)["result"]["_meta"]["cliq"]["status"], "completed");
    assert!(run.wait().unwrap().success());
}

fn option<'a>(options: &'a Value, id: &str) -> &'a Value {
    let all = options["configOptions"].as_array().unwrap();
    all.iter().find(|option| option["id"] == id).unwrap_or_else(|| panic!("{options:#}"))
}

#[test]
fn options_count_for_the_next_run() {
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    let text = "name: \"@local/other\"\nworkflow:\n  phases:\n    - {name: only, type: exec, commands: [{name: c, run: 'touch other.txt'}]}\n";
    env.write("other/team.yml", text);
    let mut editor = Editor::start(&env, json!({}));
    let opened = editor.call("session/new", json!({ "cwd": env.work(), "mcpServers": [] }));
    let session = opened["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(option(&opened, "team")["currentValue"], "default");
    let teams = option(&opened, "team")["options"].as_array().unwrap();
    let other = teams.iter().find(|team| team["name"] == "@local/other").unwrap()["value"].clone();
    let mut set = |id: &str, value: &Value| {
        let request = editor.send(
            "session/set_config_option",
            json!({ "sessionId": session, "configId": id, "value": value }),
        );
        editor.response(request)
    };
    for (id, value) in [("team", "@local/none"), ("agent", "nobody"), ("sandbox", "loose"), ("theme", "dark")]
    {
        let error = set(id, &value.into());
        assert_eq!(error["error"]["code"], -32602, "{error}");
    }
    let answer = set("team", &other)["result"].clone();
    assert_eq!(option(&answer, "team")["currentValue"], other);
    set("sandbox", &"off".into());
    let prompt = editor.prompt(&session, "Do it.");
    assert_eq!(editor.response(prompt)["result"]["_meta"]["cliq"]["status"], "completed");
    assert!(env.exists("other.txt"));
    // Options are part of the session.
    let mut editor = Editor::start(&env, json!({}));
    let load = json!({ "sessionId": session, "cwd": env.work(), "mcpServers": [] });
    assert_eq!(option(&editor.call("session/load", load), "sandbox")["currentValue"], "off");
}
