//! `cliq team generate` and `cliq team improve`, with a scripted model behind the real client of its API.

use cliq_testkit::env::Env;
use serde_json::{Value, json};

use crate::commands::server::{Server, status};

const TEAM: &str = "name: \"@local/reports\"
description: Writes reports
workflow:
  phases:
    - {name: writer, type: standard, agent: claude-api}
    - {name: check, type: gate, agent: rules, depends_on: [writer], commands: [{name: there, run: \"test -s report.md\"}], rules: {there: writer}}
";

fn role(text: &str) -> Value {
    json!([{"name": "writer", "content": text}])
}

/// A reply of the model: a definition in a fenced block.
fn reply(team_yml: &str, roles: &Value) -> String {
    text(&format!("Here it is.\n\n```json\n{}\n```\n", json!({"team_yml": team_yml, "roles": roles})))
}

fn text(text: &str) -> String {
    let body = json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7, "completion_tokens": 5}});
    status("200 OK", "", &body.to_string())
}

/// An environment whose builder is a model with these replies.
fn env(replies: Vec<String>) -> (Env, Server) {
    let (env, server) = (Env::bare(), Server::start(replies));
    for (key, value) in [
        ("builder.provider", "openai"),
        ("builder.base_url", server.base.as_str()),
        ("builder.model", "m"),
        ("builder.api_key", "sk-hush-hush"),
    ] {
        env.cliq(["settings", "set", "-g", key, value]).expect(0);
    }
    (env, server)
}

fn asked(server: &Server) -> Vec<String> {
    server.asked().iter().map(|asked| asked.body.to_string()).collect()
}

#[test]
fn a_team_is_generated() {
    let (env, server) = env(vec![reply(TEAM, &role("Write the report."))]);
    let made = env.cliq(["team", "generate", "Write weekly reports"]).expect(0);
    let made =
        made.says("@local/reports may:").says("runs the command there in check").says("written to reports/");
    assert_eq!(env.read("reports/team.yml"), TEAM);
    assert_eq!(env.read("reports/roles/writer.md"), "Write the report.");
    env.cliq(["team", "validate", "reports"]).expect(0);
    assert!(asked(&server)[0].contains("Write weekly reports"));
    assert!(!made.stdout.contains("sk-hush") && !made.stderr.contains("sk-hush"));
}

#[test]
fn a_wrong_team_is_mended_once() {
    let broken = TEAM.replace("depends_on: [writer]", "depends_on: [nosuch]");
    let (env, server) = env(vec![reply(&broken, &role("Write.")), reply(TEAM, &role("Write."))]);
    let made = env.cliq(["team", "generate", "-", "--to", "mine", "--json"]);
    assert_eq!(made.expect(2).says("the description of the team is empty").stdout, "");
    let made = env.cliq(["team", "generate", "Reports", "--to", "mine", "--json"]).expect(0).json();
    assert_eq!((&made["name"], &made["written"]), (&"@local/reports".into(), &"mine".into()), "{made:#}");
    assert_eq!(made["roles"]["writer"], "Write.");
    let asked = asked(&server);
    assert_eq!(asked.len(), 2);
    assert!(asked[1].contains("nosuch") && asked[1].contains("is not valid"), "{}", asked[1]);
}

#[test]
fn a_team_that_cannot_be_mended_is_not_written() {
    let broken = TEAM.replace("depends_on: [writer]", "depends_on: [nosuch]");
    let foreign = TEAM.replace("@local/reports", "@cliq/code");
    let (env, _server) = env(vec![
        reply(&broken, &role("Write.")),
        reply(&broken, &role("Write.")),
        reply(&foreign, &role("Write.")),
        text("I would rather not."),
    ]);
    let failed = env.cliq(["team", "generate", "Reports"]).expect(1);
    failed.says("asked twice").says("nosuch");
    env.cliq(["team", "generate", "Reports"]).expect(1).says("there is no fenced block of JSON");
    assert!(!env.exists("reports") && !env.exists("code"));
}

#[test]
fn without_a_model_it_says_how_to_get_one() {
    let env = Env::bare();
    env.without_models();
    env.cliq(["team", "generate", "Reports"]).expect(1).says("set `builder.provider` and `builder.api_key`");
}

#[test]
fn folders_in_use_are_kept() {
    let (env, server) = env(vec![reply(TEAM, &role("Write."))]);
    env.write("mine/notes.md", "Ours.");
    env.cliq(["team", "generate", "Reports", "--to", "mine"]).expect(4).says("mine is not empty");
    assert!(asked(&server).is_empty(), "no model is paid for it");
    env.cliq(["team", "generate", "Reports", "--to", ""]).expect(2).says("names no folder");
    // The name of a team is known when it is there.
    env.write("reports/notes.md", "Ours.");
    env.cliq(["team", "generate", "Reports"]).expect(0).says("the team was written to reports-2");
    assert_eq!(env.read("reports-2/team.yml"), TEAM);
    assert!(!env.exists("reports/team.yml"));
}

fn written(env: &Env) {
    env.write("t/team.yml", TEAM);
    env.write("t/roles/writer.md", "Write the report.\n");
    env.write("t/tests/a.yml", "tests: [{name: a}]\n");
}

#[test]
fn a_change_is_shown_before_it_is_written() {
    let better = TEAM.replace("test -s report.md", "grep -q Summary report.md");
    let (env, server) =
        env(vec![reply(&better, &json!([])), reply(&better, &role("Write the report with a summary.\n"))]);
    written(&env);
    let shown = env.cliq(["team", "improve", "t", "Ask for a summary"]).expect(4);
    let shown = shown
        .says("+")
        .says("grep -q Summary")
        .says("new: it runs the command there in check: grep -q Summary report.md");
    shown.says("nothing was written");
    assert_eq!(env.read("t/team.yml"), TEAM);
    let asked_for = &asked(&server)[0];
    assert!(
        asked_for.contains("Write the report.") && asked_for.contains("Ask for a summary"),
        "{asked_for}"
    );
    env.cliq(["team", "improve", "t", "Ask for a summary", "--yes"]).expect(0).says("2 files written");
    assert_eq!(env.read("t/team.yml"), better);
    assert_eq!(env.read("t/roles/writer.md"), "Write the report with a summary.\n");
}

#[test]
fn a_change_goes_into_a_new_folder() {
    let better = TEAM.replace("Writes reports", "Writes good reports");
    let (env, _server) = env(vec![reply(&better, &json!([])), reply(TEAM, &json!([]))]);
    written(&env);
    let json = env.cliq(["team", "improve", "t", "Better", "--to", "u", "--yes", "--json"]).expect(0).json();
    assert_eq!((&json["written"], &json["files"][0]["path"]), (&"u".into(), &"team.yml".into()), "{json:#}");
    assert_eq!((env.read("t/team.yml"), env.read("u/team.yml")), (TEAM.to_owned(), better));
    assert_eq!(env.read("u/tests/a.yml"), env.read("t/tests/a.yml"));
    env.cliq(["team", "improve", "t", "Nothing"]).expect(0).says("the model changed nothing");
    env.cliq(["team", "improve", "@cliq/code", "Better"]).expect(2).says("is an installed team");
}

#[test]
fn one_role_is_improved() {
    let better = "You write the weekly report. Read the tickets, and say what was done and what was not.\n";
    let answer = format!("```json\n{}\n```", json!({"role_content": better}));
    let (env, server) = env(vec![text(&answer)]);
    written(&env);
    env.cliq(["team", "improve", "t", "x", "--role", "writr"]).expect(2).says("did you mean `writer`?");
    env.cliq(["team", "improve", "t", "Say what is to be read", "--role", "writer", "-y"]).expect(0);
    assert_eq!((env.read("t/roles/writer.md"), env.read("t/team.yml")), (better.to_owned(), TEAM.to_owned()));
    assert!(asked(&server)[0].contains("Say what is to be read"));
}

#[test]
fn programs_and_name_of_a_team_stay() {
    let team = TEAM
        .replace("workflow:", "agents: {own: {entry: agents/own.sh}}\nworkflow:")
        .replace("claude-api", "own");
    let evil = team.replace("agents/own.sh", "agents/other.sh");
    let renamed = team.replace("@local/reports", "@local/others");
    let better = team.replace("Writes reports", "Writes good reports");
    let (env, server) =
        env(vec![reply(&evil, &json!([])), reply(&renamed, &json!([])), reply(&better, &json!([]))]);
    env.write("t/team.yml", &team);
    env.write_executable("t/agents/own.sh", "#!/bin/sh\n");
    env.write("t/roles/writer.md", "Write the report.\n");
    env.cliq(["team", "improve", "t", "x", "-y"]).expect(1).says("`name` must stay \"@local/reports\"");
    assert!(asked(&server)[1].contains("the programs of the team are not yours"));
    assert_eq!(env.read("t/team.yml"), team);
    env.cliq(["team", "improve", "t", "x", "-y"]).expect(0);
    assert_eq!(env.read("t/team.yml"), better);
}
