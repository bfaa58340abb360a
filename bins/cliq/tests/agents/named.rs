//! Agents that the settings define.

use cliq_testkit::env::{Env, done};

use crate::commands::models::{anthropic, openai};
use crate::commands::server::Server;

const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: local}
    - {name: check, type: standard, depends_on: [work], agent: other}
";

fn define(env: &Env, scope: &[&str], name: &str, values: &[(&str, &str)]) {
    for (key, value) in values {
        let key = format!("agents.{name}.{key}");
        let args = [&["settings", "set"], scope, &[key.as_str(), value]].concat();
        env.cliq(args).expect(0);
    }
}

#[test]
fn two_agents_of_one_kind_do_their_phases() {
    let first = Server::start(vec![openai("From the first.")]);
    let second = Server::start(vec![anthropic("From the second.")]);
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    define(&env, &["-g"], "local", &[("kind", "openai"), ("base_url", &first.base), ("model", "small")]);
    define(
        &env,
        &[],
        "other",
        &[("kind", "anthropic"), ("base_url", &second.base), ("api_key", "sk-own-key")],
    );
    env.team(TEAM, &[]);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["req", "-m", "Do it."]).expect(0);
    let mut command = env.command(["run", "--headless"]);
    command.env("OPENAI_API_KEY", "sk-of-the-vendor").env("ANTHROPIC_API_KEY", "sk-of-the-vendor");
    done(&command.output().unwrap()).expect(0);
    let handoffs = env.read(".cliq/channels/work--check/handoff.md");
    assert!(handoffs.contains("From the first."), "{handoffs}");
    let (to_first, to_second) = (first.asked(), second.asked());
    assert_eq!(to_first[0].body["model"], "small");
    // A key of the environment is for the vendor, not for an address of the settings.
    assert!(!to_first[0].headers.join("\n").contains("sk-of-the-vendor"), "{:?}", to_first[0].headers);
    assert!(to_second[0].headers.join("\n").contains("sk-own-key"), "{:?}", to_second[0].headers);
    let list = env.cliq(["agent", "list"]).expect(0);
    list.says("local            openai")
        .says("small at http://")
        .says("settings.json")
        .says("other            anthropic");
    env.cliq(["team", "validate", "../team"]).expect(0);
    env.cliq(["settings", "unset", "agents.other.kind"]).expect(0);
    env.cliq(["team", "validate", "../team"]).expect(2).says("there is no agent `other`");
}

#[test]
fn a_kind_changes_the_way_of_a_known_name_and_no_other() {
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    env.cliq(["settings", "unset", "-g", "agents.codex.command"]).expect(0);
    define(&env, &["-g"], "codex", &[("kind", "acp")]);
    define(&env, &["-g"], "rules", &[("kind", "acp")]);
    define(&env, &["-g"], "odd", &[("kind", "acp")]);
    define(&env, &["-g"], "later", &[("kind", "openai-responses"), ("api_key", "sk-test")]);
    define(&env, &["-g"], "wrong", &[("kind", "acp"), ("preset", "opencod")]);
    let list = env.cliq(["agent", "list"]).expect(0);
    list.says("codex            acp (codex)")
        .says("`codex-acp` is not on the PATH: install it (@agentclientprotocol/codex-acp (npm))")
        .says("set `agents.odd.command` to its program")
        .says("at https://api.openai.com/v1")
        .says("there is no preset `opencod`")
        .says("`agents.rules.kind` has no effect");
    env.cliq(["settings", "set", "agents.x.kind", "acpp"]).expect(2).says("one of acp, anthropic");
    env.cliq(["settings", "set", "-g", "agents.codex.env.TOKEN", "hush-hush"]).expect(0);
    let listed = env.cliq(["settings", "list"]).expect(0);
    assert!(listed.stdout.contains("agents.codex.env.TOKEN") && !listed.stdout.contains("hush-hush"));
    env.cliq(["agent", "check", "codex"]).expect(1).says("is not on the PATH");
    env.cliq(["agent", "check", "codx"]).expect(2).says("did you mean `codex`?");
}

#[test]
fn permissions_are_checked_with_the_team() {
    let env = Env::bare();
    env.without_models();
    let validate = |value: &str| {
        let phases = format!(
            "workflow:\n  phases:\n    - {{name: work, type: standard, agent: gemini, permissions: {value}}}\n"
        );
        env.team(&phases, &[]);
        env.cliq(["team", "validate", "../team"])
    };
    for value in ["allow", "edits", "ask", "deny", "[read, edit, search=ask, execute=deny]"] {
        validate(value).expect(0);
    }
    validate("[write]").expect(2).says("`write` is not a kind of tool call with a rule");
    validate("maybe").expect(2).says("permissions");
}
