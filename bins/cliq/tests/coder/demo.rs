//! `cliq demo --model`: a whole feature by `@cliq/code`, with each API.

use cliq_project::internals::MODEL_DEMO_SCRIPT;
use cliq_scripted_model::{Behavior, ScriptedModel};
use cliq_testkit::env::Env;

use crate::coder::world::{APIS, define};

#[test]
fn demo_carries_a_feature_through_a_failing_test() {
    for api in ["anthropic", "openai", "gemini"] {
        let env = Env::bare();
        let said = env.cliq(["demo", "demo", &format!("--model={api}")]).expect(0);
        let said = said.says("The model is a script").says("ROUTE to developer").says("COMPLETED");
        assert!(said.stdout.contains("PASS: small, right, and tested"), "{}", said.stdout);
        assert!(env.read("demo/greet.sh").contains("exit 2"));
        let second = env.read("demo/.cliq/transcripts/developer.2.jsonl");
        assert!(second.contains("all tests pass\\n[exit status 0"), "{second}");
        let results = env.read_json("demo/.cliq/signals/tester_command_results.json");
        assert!(results.to_string().contains("\"pass\":true"), "{results}");
    }
}

#[test]
fn code_team_works_with_servers_that_do_not_stream() {
    for (agent, api) in APIS {
        let script = serde_json::from_str(MODEL_DEMO_SCRIPT).unwrap();
        let model = ScriptedModel::start(script, Behavior { is_whole: true, ..Behavior::default() }).unwrap();
        let env = Env::bare();
        for (path, text) in cliq_project::internals::MODEL_DEMO_FILES {
            env.write(path, text);
        }
        define(&env, agent);
        env.cliq(["init"]).expect(0);
        env.cliq(["assemble", "@cliq/code"]).expect(0);
        env.cliq(["req", "-m", "greet.sh --polite NAME"]).expect(0);
        for (key, value) in
            [("default_agent", agent), (&format!("agents.{agent}.base_url"), &model.base(api))]
        {
            env.cliq(["settings", "set", key, value]).expect(0);
        }
        env.cliq(["run", "--headless", "--input", "check=sh test.sh"]).expect(0).says("ROUTE to developer");
        assert!(env.read("greet.sh").contains("exit 2"), "{agent}");
    }
}

#[test]
fn code_team_skips_its_check_if_there_is_nothing_to_run() {
    let script = serde_json::json!({"scenes": [{"replies": [{"text": "PASS: fine"}]}]});
    let model = ScriptedModel::start(serde_json::from_value(script).unwrap(), Behavior::default()).unwrap();
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "@cliq/code"]).expect(0);
    env.cliq(["req", "-m", "Nothing much."]).expect(0);
    for (key, value) in
        [("default_agent", "openai-api"), ("agents.openai-api.base_url", &model.base("openai"))]
    {
        env.cliq(["settings", "set", key, value]).expect(0);
    }
    env.cliq(["run", "--headless"]).expect(0);
    let results = env.read_json(".cliq/signals/tester_command_results.json");
    assert!(results.to_string().contains("\"skipped\":true"), "{results}");
    let gate = model
        .requests()
        .into_iter()
        .find(|request| request.body.to_string().contains("You are the tester agent"))
        .unwrap();
    assert!(gate.body.to_string().contains("- check: skipped"), "{}", gate.body);
}
