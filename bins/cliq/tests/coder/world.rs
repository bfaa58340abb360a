//! A project whose phases are done by a scripted model.

use cliq_scripted_model::{Behavior, ScriptedModel};
use cliq_testkit::env::Env;
use serde_json::{Value, json};

/// Agent, name of its API, and path of its requests.
pub(crate) const APIS: [(&str, &str); 4] = [
    ("claude-api", "anthropic"),
    ("openai-api", "openai"),
    ("responses", "openai-responses"),
    ("gemini-api", "gemini"),
];

pub(crate) struct World {
    pub(crate) env: Env,
    pub(crate) model: ScriptedModel,
}

/// One phase of a model, and one after it that checks what it made.
pub(crate) const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: AGENT}
    - {name: after, type: exec, depends_on: [work], commands: [{name: c, run: 'true'}]}
";

/// Defines the agent for an API that has no built-in one. Returns the API.
pub(crate) fn define(env: &Env, agent: &str) -> &'static str {
    let api = APIS.iter().find(|(name, _)| *name == agent).unwrap().1;
    if api == "openai-responses" {
        env.cliq(["settings", "set", "-g", &format!("agents.{agent}.kind"), api]).expect(0);
        env.cliq(["settings", "set", "-g", &format!("agents.{agent}.model"), "scripted"]).expect(0);
    }
    api
}

impl World {
    /// A project with a team, in which `AGENT` is replaced, and a server with a script.
    pub(crate) fn new(agent: &str, workflow: &str, script: &Value, behavior: Behavior) -> Self {
        let model = ScriptedModel::start(serde_json::from_value(script.clone()).unwrap(), behavior).unwrap();
        let env = Env::named("work");
        env.team(&workflow.replace("AGENT", agent), &[]);
        let api = define(&env, agent);
        env.cliq(["init"]).expect(0);
        env.cliq(["assemble", "../team"]).expect(0);
        env.cliq(["settings", "set", &format!("agents.{agent}.base_url"), &model.base(api)]).expect(0);
        env.cliq(["settings", "set", &format!("agents.{agent}.api_key"), "sk-test-secret"]).expect(0);
        env.cliq(["req", "-m", "Write the greeting."]).expect(0);
        Self { env, model }
    }

    /// Entries of a transcript.
    pub(crate) fn transcript(&self, name: &str) -> Vec<Value> {
        let text = self.env.read(&format!(".cliq/transcripts/{name}.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Results of the tools in a transcript: text, and whether the tool failed.
    pub(crate) fn results(&self, name: &str) -> Vec<(String, bool)> {
        let entries = self.transcript(name);
        let results = entries.iter().filter(|entry| entry["type"] == "tool_result");
        results.map(|entry| (entry["text"].as_str().unwrap().to_owned(), entry["is_error"] == true)).collect()
    }
}

/// A tool call of a script.
#[expect(clippy::needless_pass_by_value, reason = "arguments are written in place")]
pub(crate) fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

/// A reply that calls tools.
pub(crate) fn calls(text: &str, calls: &[Value]) -> Value {
    json!({"text": text, "calls": calls})
}

/// A reply without calls.
pub(crate) fn says(text: &str) -> Value {
    json!({ "text": text })
}

/// A script with one scene.
pub(crate) fn script(replies: &[Value]) -> Value {
    json!({"scenes": [{"replies": replies}]})
}
