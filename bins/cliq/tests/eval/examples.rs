//! The bundled suites, run as their readers do: without a model, and with one that is a script.

use cliq_scripted_model::{Behavior, ScriptedModel};
use cliq_testkit::env::Env;
use serde_json::{Value, json};

fn with_model(script: Value) -> (Env, ScriptedModel) {
    let model = ScriptedModel::start(serde_json::from_value(script).unwrap(), Behavior::default()).unwrap();
    let env = Env::bare();
    for (key, value) in
        [("default_agent", "openai-api"), ("agents.openai-api.base_url", &model.base("openai"))]
    {
        env.cliq(["settings", "set", "-g", key, value]).expect(0);
    }
    (env, model)
}

fn writes(path: &str, content: &str) -> Value {
    json!({"text": "", "calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]})
}

#[test]
fn demo_needs_no_model() {
    let env = Env::bare();
    let shown = env.cliq(["demo", "demo", "--eval"]).expect(0);
    shown.says("of 80 trials passed").says("hasty").says("steady").says("demo/report.html");
    assert!(env.read("demo/report.html").contains("Evaluation simulated"));
    env.cliq(["eval", "new", "simulated", "demo"]).expect(4).says("is not empty");
}

#[test]
fn code_suite_runs_with_any_model() {
    let greeting = "#!/bin/sh\n[ -n \"$1\" ] || { echo usage >&2; exit 2; }\necho \"Hello, $1!\"\n";
    let average = "#!/bin/sh\n[ $# -gt 0 ] || { echo none; exit; }\necho \"$@\" | awk '{ for (i = 1; i <= NF; i++) s += $i; print s / NF }'\n";
    let done = json!({"text": "Mended.\n\n```json\n{\"files\": []}\n```"});
    let (env, _model) = with_model(json!({"scenes": [
        {"contains": ["You are the architect agent."], "replies": [{"text": "Change one file."}]},
        {"contains": ["You are the tester agent."], "replies": [{"text": "PASS: fine"}]},
        {"contains": ["You are the reviewer agent."], "replies": [{"text": "PASS: fine"}]},
        {"contains": ["You are the developer agent.", "greet.sh"], "replies": [writes("greet.sh", greeting), done]},
        {"contains": ["You are the developer agent.", "average.sh"], "replies": [writes("average.sh", average), done]},
    ]}));
    env.cliq(["eval", "new", "code"]).expect(0).says("code/suite.yml");
    let report = env.cliq(["eval", "code/suite.yml", "--repeats", "1", "--json"]).expect(0).json();
    assert_eq!(report["counts"]["passed"], 4, "{:#}", report["trials"]);
}

#[test]
fn documents_suite_runs_with_any_model() {
    let page = |text: &str| writes("page.md", text);
    let (env, _model) = with_model(json!({"scenes": [
        {"contains": ["You judge work"], "replies": [{"text": "PASS: all criteria are met"}]},
        {"contains": ["You edit the page"], "replies": [{"text": "PASS: as the notes say"}]},
        {"contains": ["release.txt"], "replies": [page("# Release 4.2\n\nFrom 1 March search is three times faster.\n"), {"text": "Done."}]},
        {"contains": ["incident.txt"], "replies": [page("# Uploads\n\nOn 12 May uploads failed for 40 minutes. Nothing was lost.\n"), {"text": "Done."}]},
    ]}));
    env.cliq(["eval", "new", "documents"]).expect(0);
    let report = env.cliq(["eval", "documents/suite.yml", "--repeats", "1", "--json"]).expect(0).json();
    assert_eq!(report["counts"]["passed"], 4, "{:#}", report["trials"]);
    assert!(report["judge_usage"]["tokens_in"].as_u64().unwrap() > 0);
}
