//! Diagnostics for developers and operators (docs/diagnostics.md): log lines on standard error.

use cliq_testkit::env::{Env, done};
use serde_json::Value;

const TEAM: &str = "workflow:
  phases:
    - {name: build, type: exec, commands: [{name: compile, run: 'true'}, {name: lint, run: 'true'}]}
    - {name: work, type: standard, agent: x, model: big, depends_on: [build]}
    - {name: check, type: gate, agent: rules, depends_on: [work], commands: [{name: tests, run: 'test -f fine || { touch fine; false; }'}]}
";
const AGENT: &str = "ok\nsay '\"status\":\"progress\",\"usage\":{\"tokens_in\":10,\"tokens_out\":2,\"cost_usd\":0.5}'\ncomplete\n";

fn env() -> Env {
    Env::new(TEAM, &[("x", AGENT)])
}

#[test]
fn nothing_is_said_unless_asked_for() {
    let env = env();
    let quiet = env.cliq(["run", "--headless"]).expect(0);
    assert!(!quiet.stderr.contains("INFO") && !quiet.stdout.contains("INFO"), "{}", quiet.stderr);
    let loud = env.cliq(["run", "-f", "--headless", "-v"]).expect(0);
    assert!(loud.stderr.contains("INFO") && loud.stderr.contains("phase work ended"), "{}", loud.stderr);
    assert!(!loud.stdout.contains("INFO"), "{}", loud.stdout);
    assert!(!loud.stderr.contains('\u{1b}'), "no colour where there is no terminal");
}

#[test]
fn log_lines_by_filter_and_as_json() {
    let env = env();
    let run = |variables: &[(&str, &str)]| {
        let mut command = env.command(["run", "-f", "--headless"]);
        done(&command.envs(variables.iter().copied()).output().expect("it starts"))
    };
    let lines = run(&[("CLIQ_LOG", "info"), ("CLIQ_LOG_FORMAT", "json")]).expect(0).stderr;
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ended = lines.iter().find(|line| line["message"] == "phase work ended").expect("a line");
    assert_eq!((&ended["level"], &ended["outcome"]), (&"INFO".into(), &"completed".into()));
    assert_eq!(ended["span"]["phase"], "work");
    assert!(!run(&[("CLIQ_LOG", "error")]).expect(0).stderr.contains("INFO"));
    assert!(run(&[("CLIQ_LOG", "cliq_orchestrator=trace")]).expect(0).stderr.contains("effect"));
    run(&[("CLIQ_LOG", "cliq=loud")]).expect(2).says("CLIQ_LOG").says("is not a filter");
}
