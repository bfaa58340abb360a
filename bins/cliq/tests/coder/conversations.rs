//! Conversations that continue after a route back, with each kind of model agent.

use std::process::Command;

use cliq_scripted_model::{Behavior, ScriptedModel};
use cliq_testkit::env::{Env, done};
use serde_json::{Value, json};

use crate::coder::world::{APIS, World, call, calls, says, script};

/// A phase whose work is sent back until it hands over the word `Mended`.
pub(crate) const ROUTED: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: AGENT, conversation: MODE}
    - {name: check, type: gate, agent: rules, depends_on: [work], max_iterations: 5, commands: [{name: mended, run: grep -q Mended .cliq/channels/work--check/handoff.json}]}
";
/// Start of a message that sends work back.
pub(crate) const FEEDBACK: &str = "`check` sent your work back.";
/// Vendors' programs.
pub(crate) const PROGRAMS: [&str; 4] = ["claude-code", "cursor", "gemini", "codex"];

fn team(mode: &str) -> String {
    ROUTED.replace("MODE", mode)
}

/// A repository, so that changed files are known.
fn make_repository(env: &Env) {
    for arguments in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "first"]] {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"]).args(arguments);
        done(&git.current_dir(env.work()).output().expect("git")).expect(0);
    }
}

/// Work in several turns with a large file, and a short mend.
fn session() -> Value {
    script(&[
        calls("I look.", &[call("read_file", json!({"path": "large.txt"}))]),
        calls("I write.", &[call("write_file", json!({"path": "notes.md", "content": "# Notes\n"}))]),
        says("First answer."),
        calls("I mend.", &[call("write_file", json!({"path": "notes.md", "content": "# Better notes\n"}))]),
        says("Mended."),
    ])
}

/// Usage of the first reply in a transcript: input and its cached share in percent.
fn first_usage(entries: &[Value]) -> (u64, u64) {
    let usage = entries.iter().find(|entry| entry["type"] == "usage").expect("a reply")["usage"].clone();
    let tokens = usage["tokens_in"].as_u64().expect("tokens");
    (tokens, usage["tokens_cached"].as_u64().unwrap_or(0) * 100 / tokens)
}

#[test]
fn each_api_continues_the_conversation_with_the_feedback_alone() {
    for (agent, _) in APIS {
        let behavior = Behavior { binds_thinking: true, ..Behavior::default() };
        let world = World::new(agent, &team("continue"), &session(), behavior);
        make_repository(&world.env);
        world.env.write("large.txt", &"a line of a large file\n".repeat(600));
        world.env.cliq(["run", "--headless"]).expect(0);
        assert_eq!(world.env.read("notes.md"), "# Better notes\n", "{agent}");
        let entries = world.transcript("work.2");
        assert_eq!(entries[0]["continued_from"], 1, "{agent}: {}", entries[0]);
        let (feedback, origin) = (entries[1]["text"].as_str().expect("text"), &entries[1]["origin"]);
        assert!(feedback.starts_with(FEEDBACK) && feedback.contains("### From check"), "{feedback}");
        assert!(!feedback.contains("Write the greeting.") && origin == "feedback", "{feedback}");
        let (tokens, share) = first_usage(&entries);
        println!("{agent}: continued, {share} % of {tokens} tokens in the cached prefix");
        assert!(share >= 85, "{agent}: {share} % of {tokens}");
        // One conversation: the task and the feedback occur once.
        let last = world.model.requests().last().expect("requests").body.to_string();
        assert_eq!((last.matches("Write the greeting.").count(), last.matches(FEEDBACK).count()), (1, 1));
        world.env.cliq(["explain"]).expect(0).says("conversation: continued from activation 1");
        world
            .env
            .cliq(["logs", "work", "--transcript"])
            .expect(0)
            .says("conversation: continued from activation 1");
        let record = world.env.read_json(".cliq/conversations/work.2.json");
        assert_eq!((&record["kind"], &record["continued_from"]), (&json!("loop"), &json!(1)), "{record}");
        // The usage of the run is that of all requests, once.
        let usage = world.env.cliq(["status", "--json"]).expect(0).json()["usage"].clone();
        let asked: u64 = world.model.requests().iter().map(|request| request.tokens_in).sum();
        assert_eq!(usage["tokens_in"], asked, "{agent}: {usage}");
    }
}

#[test]
fn fresh_prompt_has_the_last_answer_and_the_changed_files() {
    let world = World::new("claude-api", &team("fresh"), &session(), Behavior::default());
    make_repository(&world.env);
    world.env.write("large.txt", &"a line of a large file\n".repeat(600));
    // A fresh conversation plays the same script again: the gate is never content.
    world.env.cliq(["run", "--headless"]).expect(3);
    let entries = world.transcript("work.2");
    let prompt = entries[2]["text"].as_str().expect("text");
    assert!(entries[0]["continued_from"].is_null() && prompt.contains("Write the greeting."), "{prompt}");
    let section = "## Your Earlier Work\n\nYour last answer was:\n\n```answer\nFirst answer.\n```\n\nYou changed these files:\n\n- notes.md\n";
    assert!(prompt.contains(section), "{prompt}");
    let (tokens, share) = first_usage(&entries);
    println!("claude-api: fresh, {share} % of {tokens} tokens in the cached prefix");
    assert!(share < 60, "{share}");
}

/// A project whose agent is a program with sessions.
pub(crate) fn program(agent: &str, workflow: &str, replies: &[Value]) -> (Env, ScriptedModel) {
    let script = serde_json::from_value(script(replies)).expect("a script");
    let model = ScriptedModel::start(script, Behavior::default()).expect("a server");
    let env = Env::new(&workflow.replace("AGENT", agent), &[]);
    env.write("../store/usage.jsonl", "");
    let (double, store) = (env.path("../bin/vendor.py"), env.path("../store"));
    env.write("../bin/vendor.py", include_str!("vendor.py"));
    let (double, store, base) = (double.display(), store.display(), model.base("anthropic"));
    env.write_executable(
        "../bin/vendor",
        &format!("#!/bin/sh\nexec python3 {double} {agent} {base} {store} \"$@\"\n"),
    );
    let vendor = env.path("../bin/vendor").canonicalize().expect("it is there");
    let command = format!("agents.{agent}.command");
    env.cliq(["settings", "set", &command, vendor.to_str().expect("text")]).expect(0);
    env.cliq(["req", "-m", &format!("Write the greeting. {}", "Mind the rules. ".repeat(600))]).expect(0);
    (env, model)
}

fn transcript(env: &Env, name: &str) -> Vec<Value> {
    let text = env.read(&format!(".cliq/transcripts/{name}.jsonl"));
    text.lines().map(|line| serde_json::from_str(line).expect("an entry")).collect()
}

#[test]
fn each_program_continues_its_session_with_the_feedback_alone() {
    for agent in PROGRAMS {
        let (env, model) = program(agent, &team("continue"), &[says("First."), says("Mended.")]);
        env.cliq(["run", "--headless"]).expect(0);
        let entries = transcript(&env, "work.2");
        assert_eq!(entries[0]["continued_from"], 1, "{agent}: {}", entries[0]);
        assert!(entries[1]["text"].as_str().is_some_and(|text| text.starts_with(FEEDBACK)), "{entries:?}");
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "{agent}");
        let last = requests[1].body.to_string();
        assert_eq!((last.matches("Write the greeting.").count(), last.matches(FEEDBACK).count()), (1, 1));
        let (tokens, cached) = (requests[1].tokens_in, requests[1].tokens_cached);
        println!("{agent}: continued, {} % of {tokens} tokens in the cached prefix", cached * 100 / tokens);
        assert!(cached * 100 / tokens >= 85, "{agent}: {cached} of {tokens}");
        // What a program counts for its whole session is not counted twice.
        let reported: u64 = env
            .read("../store/usage.jsonl")
            .lines()
            .map(|line| serde_json::from_str::<Vec<u64>>(line).expect("tokens")[0])
            .sum();
        let usage = env.cliq(["status", "--json"]).expect(0).json()["usage"].clone();
        assert_eq!(usage["tokens_in"], reported, "{agent}: {usage}");
        let record = env.read_json(".cliq/conversations/work.2.json");
        assert_eq!((&record["kind"], &record["state"]), (&json!("program"), &json!("answered")), "{record}");
        env.cliq(["explain"]).expect(0).says("conversation: continued from activation 1");
    }
}

#[test]
fn program_that_does_not_find_its_session_starts_anew_with_a_notice() {
    for agent in PROGRAMS {
        // The gate removes the sessions before it sends the work back.
        let workflow = team("continue").replace("run: grep -q Mended .cliq/channels/work--check/handoff.json", "run: 'rm -f ../store/*-*.json; test -f again || { touch again; exit 1; }; grep -q Mended .cliq/channels/work--check/handoff.json'");
        let (env, model) = program(agent, &workflow, &[says("Mended."), says("Never.")]);
        env.cliq(["run", "--headless"]).expect(0);
        let requests = model.requests();
        assert_eq!(requests.len(), 2, "{agent}");
        let last = requests[1].body.to_string();
        assert!(
            last.contains("Write the greeting.") && last.contains("Your Earlier Work"),
            "{agent}: {last}"
        );
        let entries = transcript(&env, "work.2");
        let notice = entries.iter().find(|entry| entry["type"] == "notice").expect("a notice");
        let text = notice["text"].as_str().expect("text");
        assert!(
            text.starts_with("a new conversation was started: the program does not find"),
            "{agent}: {text}"
        );
        env.cliq(["explain"]).expect(0).says("conversation: new, the program does not find the conversation");
        let record = env.read_json(".cliq/conversations/work.2.json");
        assert!(record["continued_from"].is_null() && record["state"] == "answered", "{record}");
    }
}

#[test]
fn agent_without_conversation_is_refused() {
    let env = Env::bare();
    env.team(&team("continue").replace("AGENT", "mine"), &[("mine", "complete\n")]);
    env.cliq(["team", "validate", "../team"])
        .expect(2)
        .says("agent `mine` of phase `work` has no conversation");
}
