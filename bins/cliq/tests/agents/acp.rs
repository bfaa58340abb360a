//! Agents that speak the Agent Client Protocol: whole runs with `fixtures/acp/persistent.py`.

use std::fs;
use std::path::PathBuf;

use cliq_testkit::env::{CommandOutput, Env, has_program};
use serde_json::Value;

pub(super) const FIXTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/acp/persistent.py");

pub(super) struct World {
    pub(super) env: Env,
    pub(super) state: PathBuf,
}

/// A project whose phases are done by the fixture, or `None` without Python.
pub(super) fn world(workflow: &str, options: &[&str], settings: &[(&str, &str)]) -> Option<World> {
    if !has_program("python3") {
        return None;
    }
    let env = Env::bare();
    env.without_models();
    env.cliq(["init"]).expect(0);
    let state = env.home().join("acp-state");
    let args = [&[FIXTURE, state.to_str().unwrap()], options].concat().join(",");
    for (key, value) in [("kind", "acp"), ("command", "python3"), ("args", &args)].iter().chain(settings) {
        env.cliq(["settings", "set", "-g", &format!("agents.mine.{key}"), value]).expect(0);
    }
    env.team(workflow, &[]);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["req", "-m", "Write the greeting."]).expect(0);
    Some(World { env, state })
}

impl World {
    pub(super) fn run(&self) -> CommandOutput {
        self.env.cliq(["run", "--headless"])
    }

    pub(super) fn transcript(&self, name: &str) -> Vec<Value> {
        let text = self.env.read(&format!(".cliq/transcripts/{name}.jsonl"));
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Prompts of a conversation of the agent.
    pub(super) fn prompts(&self, session: &str) -> Vec<String> {
        let text = fs::read_to_string(self.state.join(format!("{session}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn wait_for_turn(&self) {
        self.env.wait_for("the agent works", || {
            let log = self.env.path(".cliq/logs/work.1.log");
            fs::read_to_string(log).is_ok_and(|log| log.contains("I look at it."))
        });
    }
}

pub(super) fn of_type<'a>(lines: &'a [Value], kind: &str) -> Vec<&'a Value> {
    lines.iter().filter(|line| line["type"] == kind).collect()
}

pub(super) const WORK: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: mine}
    - {name: check, type: exec, depends_on: [work], commands: [{name: turn, run: 'test \"$(handoff.work.turn)\" = 1'}]}
";

#[test]
fn an_agent_works_asks_and_reports() {
    let Some(world) = world(WORK, &[], &[("mode", "ask")]) else { return };
    world.run().expect(0);
    assert!(world.env.exists("turn-1.txt"));
    let lines = world.transcript("work.1");
    let (asked, calls) = (of_type(&lines, "permission"), of_type(&lines, "tool_call"));
    assert_eq!((asked.len(), calls.len(), of_type(&lines, "tool_result").len()), (1, 1, 1), "{lines:?}");
    assert_eq!((&asked[0]["decision"], &asked[0]["kind"]), (&"allowed".into(), &"edit".into()));
    assert_eq!(asked[0]["reason"], "permissions: edits, inside the workspace");
    let status = world.env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!((&status["usage"]["tokens_in"], &status["usage"]["tokens_out"]), (&100.into(), &10.into()));
    world.env.cliq(["logs", "work", "--transcript"]).expect(0).says("allowed edit: Write turn-1.txt");
    assert_eq!(world.env.left_over(), Vec::<String>::new());
}

#[test]
fn a_refused_permission_is_recorded_and_the_work_goes_on() {
    for options in [&["outside"][..], &["outside", "ends-on-refusal"]] {
        let Some(world) = world(WORK, options, &[]) else { return };
        let output = world.run();
        assert!(!world.env.exists("../turn-1.txt"));
        let lines = world.transcript("work.1");
        let asked = of_type(&lines, "permission");
        assert_eq!(asked[0]["decision"], "refused");
        assert_eq!(asked[0]["reason"], "permissions: edits, and a file is outside of the workspace");
        if options.len() == 1 {
            output.expect(0);
        } else {
            // The first prompt, and two requests to go on without the call.
            assert_eq!(asked.len(), 3, "{lines:?}");
            assert_ne!(output.code, 0);
            assert!(
                output.stderr.contains("a permission was refused")
                    || output.stdout.contains("a permission was refused")
            );
        }
    }
}

#[test]
fn text_before_the_last_call_is_no_answer() {
    let second = WORK.replace("= 1", "= 2");
    let Some(world) = world(&second, &["late-answer"], &[]) else { return };
    world.run().expect(0);
    let prompts = world.prompts("session-1");
    assert_eq!(prompts.len(), 2);
    assert!(prompts[1].contains("without an answer"), "{}", prompts[1]);
}

#[test]
fn agent_without_an_answer_fails() {
    let Some(world) = world(WORK, &["no-answer"], &[]) else { return };
    let output = world.run();
    assert_eq!(output.code, 3, "{}", output.stdout);
    output.says("mine answered with nothing, twice");
    assert_eq!(world.prompts("session-1").len(), 2);
}

#[test]
fn work_that_is_sent_back_continues_the_conversation() {
    let team = "workflow:
  phases:
    - {name: work, type: standard, agent: mine, conversation: continue}
    - name: review
      type: gate
      depends_on: [work]
      agent: rules
      commands: [{name: second, run: test -f turn-2.txt}]
      rules: {second: work}
";
    let Some(world) = world(team, &[], &[]) else { return };
    world.run().expect(0);
    let prompts = world.prompts("session-1");
    assert_eq!(prompts.len(), 2);
    assert!(
        prompts[0].contains("Write the greeting.") && !prompts[1].contains("Write the greeting."),
        "{prompts:?}"
    );
    assert!(prompts[1].contains("`review` sent your work back"), "{}", prompts[1]);
}

#[test]
fn a_killed_run_continues_the_conversation() {
    for (options, expected) in [(&[][..], 2), (&["forgetful"][..], 1)] {
        let preset: &[(&str, &str)] = if options.is_empty() { &[] } else { &[("preset", "fast-agent")] };
        let team = WORK.split("    - {name: check").next().unwrap();
        let Some(world) = world(team, options, preset) else { return };
        world.env.write("hold", "");
        let mut run = world.env.spawn(["run", "--headless"]);
        world.wait_for_turn();
        run.kill().unwrap();
        run.wait().unwrap();
        world.env.wait_for("nothing is left", || world.env.left_over().is_empty());
        fs::remove_file(world.env.path("hold")).unwrap();
        world.env.cliq(["run", "--headless", "--resume"]).expect(0);
        let prompts = world.prompts("session-1");
        assert_eq!(prompts.len(), expected, "{prompts:?}");
        assert!(prompts[0].contains("Write the greeting."));
        assert_eq!(
            prompts.last().unwrap().contains("Your work was interrupted"),
            expected == 2,
            "{prompts:?}"
        );
        assert!(!world.state.join("session-2.json").exists());
    }
}

#[test]
fn a_cancelled_run_leaves_no_process() {
    let Some(world) = world(WORK, &[], &[]) else { return };
    world.env.write("hold", "");
    let mut run = world.env.spawn(["run", "--headless"]);
    world.wait_for_turn();
    world.env.cliq(["cancel"]).expect(0);
    assert!(!run.wait().unwrap().success());
    world.env.wait_for("nothing is left", || world.env.left_over().is_empty());
    let mark = format!("CLIQ_HOME={}", world.env.home().display());
    world.env.wait_for("the agent has ended", || {
        world.env.marked(&mark).iter().all(|process| !process.contains("persistent.py"))
    });
}

#[test]
fn guidance_reaches_a_turn_that_is_under_way() {
    let Some(world) = world(WORK, &[], &[]) else { return };
    world.env.write("hold", "");
    let mut run = world.env.spawn(["run", "--headless"]);
    world.wait_for_turn();
    world.env.cliq(["steer", "Speak softly."]).expect(0);
    world.env.wait_for("it is delivered", || world.env.cliq(["status"]).stdout.contains("delivered"));
    world.env.wait_for("the agent has it", || world.state.join("steered").exists());
    fs::remove_file(world.env.path("hold")).unwrap();
    assert!(run.wait().unwrap().success());
    assert_eq!(world.prompts("session-1").len(), 1, "no further prompt was needed");
    let answer = world.transcript("work.1");
    assert!(of_type(&answer, "end")[0]["text"].as_str().unwrap().contains("I heard you."));
}

#[test]
fn servers_of_settings_reach_the_agent() {
    let Some(world) = world(WORK, &[], &[]) else { return };
    for (key, value) in [
        ("docs.command", "python3"),
        ("docs.args", "-c,pass"),
        ("web.url", "https://example.com/mcp"),
        ("web.token", "hush-hush"),
    ] {
        world.env.cliq(["settings", "set", "-g", &format!("mcp.{key}"), value]).expect(0);
    }
    world.run().expect(0);
    let text = fs::read_to_string(world.state.join("new.json")).unwrap();
    let request: Value = serde_json::from_str(&text).unwrap();
    let servers = request["mcpServers"].as_array().unwrap();
    assert_eq!((&servers[0]["name"], &servers[0]["args"][0]), (&"docs".into(), &"-c".into()));
    assert_eq!(servers[1]["headers"][0]["value"], "Bearer hush-hush");
    assert!(!world.env.read(".cliq/logs/work.1.log").contains("hush-hush"));
}

#[test]
fn check_shows_what_an_agent_can_do_and_which_sign_in_it_wants() {
    let Some(ready) = world(WORK, &[], &[]) else { return };
    let report = ready.env.cliq(["agent", "check", "mine", "--json"]).expect(0).json();
    assert_eq!(
        (&report["works"], &report["kind"], &report["agent"]["name"]),
        (&true.into(), &"acp".into(), &"persistent.py".into())
    );
    assert_eq!(
        (&report["can"]["resume"], &report["can"]["steering"], &report["modes"][0]),
        (&true.into(), &true.into(), &"ask".into())
    );
    ready
        .env
        .cliq(["agent", "check", "mine"])
        .expect(0)
        .says("resume, load, MCP over HTTP, steering")
        .says("ask, plan");
    ready.env.cliq(["doctor"]).says("persistent.py 1");
    let wants = world(WORK, &["sign-in"], &[]).unwrap();
    let report = wants.env.cliq(["agent", "check", "mine", "--json"]).expect(1).json();
    assert_eq!((&report["works"], &report["sign_in"][0]), (&false.into(), &"Log in with a key".into()));
    wants.env.cliq(["doctor"]).expect(1).says("the agent requires a sign-in");
    let output = wants.run();
    assert_ne!(output.code, 0);
    let started = |world: &World| fs::read_to_string(world.state.join("started")).unwrap().lines().count();
    // What a project chooses is not started by a look at the system.
    let before = started(&ready);
    ready.env.cliq(["settings", "set", "agents.mine.preset", "opencode"]).expect(0);
    ready.env.cliq(["doctor"]).says("not started, as a project's settings choose its program");
    ready.env.cliq(["agent", "list"]).expect(0);
    assert_eq!(started(&ready), before);
}
