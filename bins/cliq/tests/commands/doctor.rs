//! `cliq doctor`: servers of models.

use std::net::TcpListener;

use cliq_testkit::env::{CommandOutput, Env, done};
use serde_json::Value;

use crate::commands::server::{Server, status};

fn check(output: &CommandOutput, name: &str) -> (String, String) {
    let checks = output.json()["checks"].clone();
    let found = checks.as_array().and_then(|checks| checks.iter().find(|check| check["name"] == name));
    let text = |field: &str| found.and_then(|check| check[field].as_str()).unwrap_or_default().to_owned();
    (text("status"), text("detail"))
}

fn doctor(agent: &str, base: &str, model: &str) -> (CommandOutput, (String, String)) {
    doctor_with(agent, base, model, &[])
}

fn doctor_with(
    agent: &str,
    base: &str,
    model: &str,
    variables: &[(&str, &str)],
) -> (CommandOutput, (String, String)) {
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    env.cliq(["settings", "set", &format!("agents.{agent}.base_url"), base]).expect(0);
    env.cliq(["settings", "set", &format!("agents.{agent}.model"), model]).expect(0);
    let mut command = env.command(["doctor", "--json"]);
    let output = done(&command.envs(variables.iter().copied()).output().expect("cliq starts"));
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

#[test]
fn servers_on_this_machine_are_reached_without_the_proxy() {
    // Nothing listens there.
    let proxy = [("HTTP_PROXY", "http://user:secret@127.0.0.1:9"), ("NO_PROXY", "")];
    let list = serde_json::json!({"data": [{"id": "m"}]}).to_string();
    let server = Server::start(vec![status("200 OK", "", &list)]);
    let port = server.base.rsplit(':').next().expect("a port");
    for host in ["127.0.0.1", "localhost", "127.8.8.8"] {
        let (_, (state, detail)) = doctor_with("openai-api", &format!("http://{host}:{port}"), "m", &proxy);
        let is_reached = host != "127.8.8.8";
        assert_eq!(state == "ok", is_reached, "{host}: {detail}");
        assert!(!detail.contains("proxy"), "{host}: {detail}");
    }
    let (_, (_, detail)) = doctor_with("openai-api", "http://models.invalid", "m", &proxy);
    assert!(detail.contains("through the proxy 127.0.0.1:9,") && !detail.contains("secret"), "{detail}");
}

#[test]
fn servers_of_local_models_are_asked_what_they_have() {
    let list = r#"{"data": [{"id": "qwen3"}]}"#;
    let props = r#"{"default_generation_settings": {"n_ctx": 4096}, "total_slots": 1, "chat_template_caps": {"supports_tools": false}}"#;
    let server = Server::start(vec![status("200 OK", "", list), status("200 OK", "", props)]);
    let (_, (state, detail)) = doctor("openai-api", &server.base, "qwen3");
    assert_eq!(state, "note", "{detail}");
    for part in [
        "the server answers (context 4096 tokens, 1 slot, no tools)",
        "`agents.openai-api.context_tokens` is 32768",
        "cliq settings set agents.openai-api.context_tokens 4096",
        "cliq settings set agents.openai-api.tools none",
        "`max_parallel 1` runs them in turn",
    ] {
        assert!(detail.contains(part), "{part}: {detail}");
    }
    let server = Server::start(vec![status("200 OK", "", list), status("200 OK", "", props)]);
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    for (key, value) in [("base_url", server.base.as_str()), ("model", "qwen3")] {
        env.cliq(["settings", "set", &format!("agents.openai-api.{key}"), value]).expect(0);
    }
    let said = env.cliq(["agent", "check", "openai-api", "--json"]).expect(0).json();
    assert_eq!(said["server"], "context 4096 tokens, 1 slot, no tools", "{said}");
    assert_eq!(said["warnings"].as_array().map(Vec::len), Some(3), "{said}");
}
