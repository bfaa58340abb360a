//! Usage, cost and budgets (docs/team-yml.md): what agents report, what people and programs are shown, and what a budget does.

use cliq_testkit::env::{Env, PRELUDE};
use serde_json::{Value, json};

use crate::commands::models::anthropic;
use crate::commands::server::Server;

/// `spend TOKENS_IN TOKENS_OUT [MORE]` reports usage so far; `done_with` completes with usage.
const SPEND: &str = r#"
usage() { printf '{"provider":"p","model":"m","tokens_in":%s,"tokens_out":%s%s}' "$1" "$2" "$3"; }
spend() { say '"status":"progress","usage":'"$(usage "$@")"; }
done_with() { say '"status":"complete","result":{"usage":'"$(usage "$@")"'}'; }
"#;

fn agent(script: &str) -> String {
    format!("{SPEND}\nok\n{script}\n")
}

fn env(phases: &str, agents: &[(&str, &str)]) -> Env {
    let scripts: Vec<(&str, String)> = agents.iter().map(|(name, script)| (*name, agent(script))).collect();
    let scripts: Vec<(&str, &str)> = scripts.iter().map(|(name, script)| (*name, script.as_str())).collect();
    Env::new(&format!("workflow:\n  phases:\n{phases}"), &scripts)
}

fn used(env: &Env) -> Value {
    env.cliq(["status", "--json"]).expect(0).json()["usage"].clone()
}

#[test]
fn usage_is_shown_and_summed() {
    let env = env(
        "    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: y, depends_on: [a]}\n",
        // Reports replace one another within an activation, and what comes with the end counts.
        &[
            ("x", "spend 10 1; spend 100 20; done_with 1000 200 ',\"tokens_cached\":400,\"cost_usd\":0.5'"),
            ("y", "spend 5 5 ',\"cost_usd\":0.25'; complete"),
        ],
    );
    env.cliq(["run", "--headless"]).expect(0).says("TOKENS").says("1200").says("$0.7500");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    let usage = &status["usage"];
    assert_eq!(
        (&usage["tokens_in"], &usage["tokens_out"], &usage["tokens_cached"], &usage["cost_usd"]),
        (&json!(1005), &json!(205), &json!(400), &json!(0.75))
    );
    assert_eq!(usage["models"][0]["model"], "m");
    assert_eq!(status["phases"][0]["usage"]["tokens_in"], 1000);
    env.cliq(["status"]).expect(0).says("usage: 1005 tokens in (400 from a cache), 205 out, $0.7500");
    env.cliq(["explain"]).expect(0).says("m: 1210 tokens, $0.7500").says("a: completed (worked");
    assert_eq!(env.cliq(["explain", "--json"]).expect(0).json()["usage"]["tokens_out"], 205);
    let events = env.cliq(["run", "-f", "--json"]).expect(0).events();
    let reports: Vec<&Value> = events.iter().filter(|event| event["event"] == "usage_reported").collect();
    assert_eq!(reports.len(), 4);
    assert_eq!((&reports[2]["final"], &reports[2]["usage"]["cost_usd"]), (&json!(true), &json!(0.5)));
    assert!(env.read(".cliq/journal.jsonl").contains("usage_reported"));
}

#[test]
fn a_cost_is_the_agents_else_by_price_else_unknown() {
    let phases = "    - {name: a, type: standard, agent: x}\n";
    let env = env(phases, &[("x", "done_with 1000000 100000 ',\"tokens_cached\":500000'")]);
    env.cliq(["run", "--headless"]).expect(0).says("unknown").says("prices.MODEL");
    assert_eq!(used(&env)["cost_usd"], Value::Null);
    for (key, value) in [("in", "2"), ("out", "10"), ("cached", "0.5")] {
        env.cliq(["settings", "set", &format!("prices.m.{key}"), value]).expect(0);
    }
    env.cliq(["run", "-f", "--headless"]).expect(0).says("$2.25");
    assert_eq!(used(&env)["cost_usd"], 2.25);
    // Names of models contain dots.
    env.cliq(["settings", "set", "prices.gpt-4.1.in", "2"]).expect(0);
    env.cliq(["settings", "get", "prices.gpt-4.1.in"]).expect(0).says("2");
    env.cliq(["settings", "list"]).expect(0).says("prices.gpt-4.1.in");
    env.cliq(["settings", "unset", "prices.gpt-4.1.in"]).expect(0);
    env.cliq(["settings", "set", "prices.m.in", "-1"]).expect(2).says("a number, 0 or more");
}

#[test]
fn models_of_vendors_have_built_in_prices() {
    let phases = "    - {name: a, type: standard, agent: x}\n";
    let env = env(phases, &[("x", "done_with 1000000 100000 ',\"tokens_cached\":500000'")]);
    let agent = env.read("../team/agents/x").replace("\"m\"", "\"claude-sonnet-5-5-20260929\"");
    assert!(agent.contains("sonnet"), "{agent}");
    env.write_executable("../team/agents/x", &agent);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0).says("$2.05");
    env.cliq(["settings", "list", "prices"]).expect(0).says("claude-sonnet-5-5").says("2026-11-27");
    env.cliq(["settings", "set", "prices.claude-sonnet-5-5.out", "20"]).expect(0);
    let listed = env.cliq(["settings", "list", "prices", "--json"]).expect(0).json();
    let of = |model: &str| {
        let all = listed["prices"].as_array().unwrap().iter();
        all.filter(|price| price["model"] == model).cloned().collect::<Vec<_>>()
    };
    let own =
        json!({"model": "claude-sonnet-5-5", "in": 2.0, "cached": 0.1, "out": 20.0, "source": "settings"});
    assert_eq!(of("claude-sonnet-5-5"), [own]);
    assert_eq!(
        (&of("gpt-5")[0]["source"], &listed["built_in_date"]),
        (&json!("built in"), &json!("2026-11-27"))
    );
    env.cliq(["run", "-f", "--headless"]).expect(0).says("$3.05");
    // Other words show the settings that begin with them.
    let some = env.cliq(["settings", "list", "sandbox"]).expect(0);
    assert!(
        some.stdout.lines().filter(|line| line.contains(" = ")).all(|line| line.starts_with("sandbox")),
        "{}",
        some.stdout
    );
    env.cliq(["settings", "list", "nothing"]).expect(2).says("no setting begins with `nothing`");
}

#[test]
fn an_agent_that_exceeds_the_budget_is_ended_and_a_larger_one_goes_on() {
    let phases = "    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: y, depends_on: [a]}\n";
    let spender =
        "n=0; while test $n -lt 1000; do n=$((n+100)); spend $n 0; sleep 0.05; done; done_with 1000 0";
    let env = env(phases, &[("x", spender), ("y", "complete")]);
    env.cliq(["run", "--headless", "--budget-tokens", "450"])
        .expect(3)
        .says("the run's budget of 450 tokens is spent, 500 were used")
        .says("--budget-tokens");
    assert_eq!(env.left_over(), Vec::<String>::new());
    assert_eq!(used(&env)["tokens_in"], 500, "no more than one reply over");
    assert_eq!(env.read(".cliq/signals/_pipeline_status"), "ESCALATED");
    // The same budget again, which holds on, is spent before the agent starts.
    env.cliq(["run", "--headless", "--resume"]).expect(3).says("500 were used");
    assert_eq!(env.phases()["a"].1, 1, "it did not start");
    env.cliq(["run", "--headless", "--resume", "--budget-tokens", "5000"]).expect(0);
    assert_eq!(used(&env)["tokens_in"], 1500, "both activations count");
    let error = env.cliq(["run", "-f", "--budget-tokens", "0"]).expect(2);
    assert!(error.stderr.contains("budget-tokens"), "{}", error.stderr);
    env.cliq(["run", "-f", "--budget-usd", "-3"]).expect(2);
}

#[test]
fn all_model_agents_end_when_the_run_has_spent_its_budget() {
    let phases = "    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: y}\n    - {name: c, type: standard, agent: z}\n";
    let env = env(
        phases,
        &[
            ("x", "spend 10 0; while ! test -e b; do sleep 0.02; done; spend 200 0; sleep 1000"),
            ("y", "spend 20 0; touch b; sleep 1000"),
            // This one uses no model: it may finish.
            ("z", "while ! test -e b; do sleep 0.02; done; sleep 0.5; complete"),
        ],
    );
    env.cliq(["run", "--headless", "--budget-tokens", "100"]).expect(3);
    let phases = env.phases();
    let states: Vec<&str> = phases.values().map(|(state, _)| state.as_str()).collect();
    assert_eq!(states, ["escalated", "escalated", "completed"]);
    assert_eq!(used(&env)["tokens_in"], 220);
}

#[test]
fn budgets_of_team_and_phase() {
    let phases = "    - {name: a, type: standard, agent: x, budget: {tokens: 50}}\n";
    let env = env(phases, &[("x", "spend 60 0 ',\"cost_usd\":0.1'; sleep 1000")]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("its budget of 50 tokens is spent, 60 were used")
        .says("team.yml");
    // The journal still fits the team: a budget is not part of its shape.
    let team = env.read("../team/team.yml").replace("tokens: 50", "usd: 0.5, tokens: 500");
    env.write("../team/team.yml", &team);
    let script = format!("{PRELUDE}{}", agent("spend 100 0 ',\"cost_usd\":0.75'; sleep 1000"));
    env.write_executable("../team/agents/x", &script);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless", "--resume"])
        .expect(3)
        .says("its budget of 0.5 USD is spent, 0.8500 were used");

    for (budget, says) in [
        ("budget: {}", "a budget needs a limit"),
        ("budget: {tokens: 0}", "at least 1"),
        ("budget: {usd: -2}", "a number above 0"),
        ("budget: {usd: much}", "is a number"),
        ("budget: {dollars: 3}", "no field `dollars`"),
    ] {
        env.write("../team/team.yml", &team.replace("budget: {usd: 0.5, tokens: 500}", budget));
        env.cliq(["team", "validate", "../team"]).expect(2).says(says);
    }
    let top = team.replace("workflow:", "budget: {tokens: 70}\nworkflow:").replace(", tokens: 500", "");
    env.write("../team/team.yml", &top);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "-f", "--headless"]).expect(3).says("the run's budget of 70 tokens is spent");
    env.cliq(["run", "-f", "--headless", "--budget-tokens", "90"]).expect(3).says("budget of 90 tokens");
}

#[test]
fn a_dollar_budget_needs_known_costs() {
    let phases = "    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: x, depends_on: [a]}\n";
    let env = env(phases, &[("x", "done_with 10 10")]);
    env.write("../team/roles/b.md", "You are b.\n");
    // A custom agent counts as one that uses a model from its first report on. Then it is refused, in any phase.
    let done = env.cliq(["run", "--headless", "--budget-usd", "1"]).expect(3);
    done.says("a: completed").says("b: escalated").says("no known cost").says("prices.MODEL");
    for (key, value) in [("in", "1"), ("out", "1")] {
        env.cliq(["settings", "set", &format!("prices.m.{key}"), value]).expect(0);
    }
    // With the prices, what was used before has a cost too.
    env.cliq(["run", "--headless", "--resume"]).expect(0);
}

#[test]
fn no_further_model_agent_starts_once_the_budget_is_spent() {
    let server = Server::start(vec![anthropic("I did it.")]);
    let phases = "    - {name: a, type: standard, agent: claude-api}\n    - {name: b, type: standard, agent: claude-api, depends_on: [a]}\n";
    let env = env(phases, &[]);
    env.cliq(["settings", "set", "agents.claude-api.base_url", &server.base]).expect(0);
    env.cliq(["settings", "set", "agents.claude-api.api_key", "sk-test-secret"]).expect(0);
    // The answer costs 40 tokens. It is there, so the phase is complete; the next one does not begin.
    env.cliq(["run", "--headless", "--budget-tokens", "40"])
        .expect(3)
        .says("budget of 40 tokens is spent, 40 were used");
    assert_eq!((env.phases()["a"].0.as_str(), env.phases()["b"].0.as_str()), ("completed", "escalated"));
    assert_eq!(server.asked().len(), 1);
    env.cliq(["run", "--headless", "--resume", "--budget-tokens", "100"]).expect(0);
    assert_eq!((server.asked().len(), &used(&env)["tokens_in"]), (2, &json!(50)));
}

#[test]
fn a_gate_counts_each_time_it_asks() {
    let server = Server::start(vec![anthropic("Well."), anthropic("```json\n{\"verdict\": \"PASS\"}\n```")]);
    let phases = "    - {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n    - {name: g, type: gate, agent: claude-api, depends_on: [a]}\n";
    let env = env(phases, &[]);
    env.cliq(["settings", "set", "agents.claude-api.base_url", &server.base]).expect(0);
    env.cliq(["settings", "set", "agents.claude-api.api_key", "sk-test-secret"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    let usage = used(&env);
    assert_eq!((&usage["tokens_in"], &usage["tokens_out"]), (&json!(50), &json!(30)));
    // A gate that may not ask any more calls a person.
    let done = env.cliq(["run", "--headless", "--from", "g", "--budget-tokens", "60"]).expect(3);
    assert_eq!(server.asked().len(), 2);
    done.says("g: escalated: the run's budget of 60 tokens is spent, 80 were used");
}

#[test]
fn the_team_of_a_team_phase_counts_and_is_held() {
    let env = Env::bare();
    env.team(
        "workflow:\n  phases:\n    - {name: build, type: team, team: ./inner}\n    - {name: after, type: exec, depends_on: [build], commands: [{name: t, run: 'true'}]}\n",
        &[],
    );
    env.write("../team/inner/team.yml", "name: \"@local/inner\"\nagents: {x: {entry: agents/x}, y: {entry: agents/y}}\nphases:\n  - {name: one, type: standard, agent: x}\n  - {name: two, type: standard, agent: y, depends_on: [one]}\n");
    for role in ["one", "two"] {
        env.write(&format!("../team/inner/roles/{role}.md"), "You work.\n");
    }
    let script = |script: &str| format!("{PRELUDE}{}", agent(script));
    env.write_executable("../team/inner/agents/x", &script("spend 30 0 ',\"cost_usd\":0.1'; complete"));
    env.write_executable(
        "../team/inner/agents/y",
        &script("spend 30 0 ',\"cost_usd\":0.1'; test -e go || sleep 1000; complete"),
    );
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless", "--budget-tokens", "50"])
        .expect(3)
        .says("budget of 50 tokens is spent, 60 were used");
    assert_eq!(env.left_over(), Vec::<String>::new());
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(
        (&status["usage"]["tokens_in"], &status["phases"][0]["usage"]["cost_usd"]),
        (&json!(60), &json!(0.2))
    );
    assert_eq!(status["phases"][0]["run"]["usage"]["tokens_in"], 60);
    env.write("go", "");
    env.cliq(["run", "--headless", "--resume", "--budget-tokens", "500"]).expect(0);
    // The team went on where it stood: `two` ran again, `one` did not.
    assert_eq!(used(&env)["tokens_in"], 90);
}

#[test]
fn usage_that_is_wrong_does_no_harm() {
    let phases = "    - {name: a, type: standard, agent: x}\n";
    let env = env(
        phases,
        &[(
            "x",
            "say '\"status\":\"progress\",\"usage\":{\"tokens_in\":\"many\"}'\nsay '\"status\":\"complete\",\"result\":{\"usage\":[1]}'",
        )],
    );
    env.cliq(["run", "--headless"])
        .expect(0)
        .says("usage.tokens_in")
        .says("the usage that agent x reports is wrong");
    assert_eq!(used(&env), Value::Null);
}

#[test]
fn estimated_usage_is_marked() {
    let env = env(
        "    - {name: a, type: standard, agent: x}\n    - {name: b, type: standard, agent: y, depends_on: [a]}\n",
        &[("x", "done_with 20000 200"), ("y", "done_with 30000 300 ',\"estimated\":true'")],
    );
    let ended = env.cliq(["run", "--headless"]).expect(0);
    assert!(ended.stdout.contains(" 20.2k ") && ended.stdout.contains("≈30.3k"), "{}", ended.stdout);
    env.cliq(["status"]).expect(0).says("≈30.3k").says("500 out, cost unknown").says(", estimated\n");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    let marks: Vec<&Value> =
        [&status, &status["phases"][0], &status["phases"][1]].map(|of| &of["usage"]["estimated"]).into();
    assert_eq!(marks, [&json!(true), &Value::Null, &json!(true)], "{status}");
    env.cliq(["explain"]).expect(0).says("30300 estimated tokens").says("tokens, cost unknown, estimated");
    assert_eq!(env.cliq(["explain", "--json"]).expect(0).json()["usage"]["estimated"], true);
}
