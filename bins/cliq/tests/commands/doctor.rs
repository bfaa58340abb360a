//! `cliq doctor`: servers of models.

use std::net::TcpListener;

use cliq_testkit::env::{CommandOutput, Env};
use serde_json::Value;

use crate::commands::server::{Server, status};

fn check(output: &CommandOutput, name: &str) -> (String, String) {
    let checks = output.json()["checks"].clone();
    let found = checks.as_array().and_then(|checks| checks.iter().find(|check| check["name"] == name));
    let text = |field: &str| found.and_then(|check| check[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("detail"))
}

fn doctor(agent: &str, base: &str, model: &str) -> (CommandOutput, (String, String)) {
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    env.cliq(["settings", "set", &format!("agents.{agent}.base_url"), base]).expect(0);
    env.cliq(["settings", "set", &format!("agents.{agent}.model"), model]).expect(0);
    let output = env.cliq(["doctor", "--json"]);
    let found = check(&output, agent);
    (output, found)
}

#[test]
fn servers_whose_address_is_set_are_asked_without_a_key() {
    let list = serde_json::json!({"data": [{"id": "qwen3"}, {"id": "gemma"}]}).to_string();
    for (agent, path) in
        [("openai-api", "/models"), ("claude-api", "/v1/models"), ("gemini-api", "/v1beta/models")]
    {
        let server = Server::start(vec![status("200 OK", "", &list)]);
        let (output, (state, detail)) = doctor(agent, &server.base, "qwen3");
        assert_eq!((output.code, state.as_str()), (0, "ok"), "{detail}");
        assert!(detail.ends_with("the server answers") && !detail.contains("key"), "{detail}");
        let (_, (state, detail)) =
            doctor(agent, &format!("{}{}", server.base, path.trim_end_matches("/models")), "other");
        assert!(detail.contains("does not list the model `other`, but qwen3, gemma"), "{state} {detail}");
        assert_eq!(state, "note");
    }
}

#[test]
fn servers_that_cannot_be_used_are_named() {
    for (answer, says) in [
        (status("500 Internal Server Error", "", "{\"error\": \"no memory\"}"), "answers with an error"),
        (
            status("401 Unauthorized", "", "{}"),
            "asks for a key; `cliq settings set -g agents.openai-api.api_key -`",
        ),
        // It accepts, and closes the connection.
        (String::new(), "does not answer"),
    ] {
        let server = Server::start(vec![answer]);
        let (output, (state, detail)) = doctor("openai-api", &server.base, "m");
        assert_eq!((output.code, state.as_str()), (1, "missing"), "{detail}");
        assert!(detail.contains(says) && detail.contains(&server.base), "{detail}");
        assert_eq!(output.json()["healthy"], Value::Bool(false));
    }
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("its address"));
    // It accepts and is silent.
    let (output, (_, detail)) = doctor("openai-api", &base, "m");
    assert!(output.code == 1 && detail.contains("does not answer"), "{detail}");
    drop(listener);
    let (output, (_, detail)) = doctor("openai-api", &base, "m");
    assert!(output.code == 1 && detail.contains("does not answer"), "{detail}");
}
