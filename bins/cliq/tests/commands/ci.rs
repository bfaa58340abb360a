//! `cliq ci`: the report of a run in markdown.

use cliq_testkit::env::Env;
use regex::Regex;

const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: x}
    - {name: check, type: gate, agent: rules, depends_on: [work], max_iterations: 2, commands: [{name: links, run: 'printf \"3 links are\\033[2Jbroken \\140\\140\\140 @ada\\n\"; test -f fine'}]}
    - {name: end, type: exec, depends_on: [check], commands: [{name: t, run: echo end}]}
";
const ONE: &str = "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n";
const AGENT: &str = "ok\ncomplete\n";

/// The report without what differs between runs.
fn report(env: &Env, arguments: &[&str]) -> String {
    let all = ["ci"].iter().chain(arguments).copied();
    let shown = env.cliq(all).expect(0).stdout.clone();
    let times = Regex::new(r"\b[0-9.]+(ms|s)\b").unwrap();
    times.replace_all(&shown.replace(&env.run_id(), "RUN"), "TIME").into_owned()
}

#[test]
fn escalation_is_reported_with_its_reason() {
    let env = Env::new(TEAM, &[("x", AGENT)]);
    env.cliq(["ci"]).expect(1).says("nothing has run yet");
    env.cliq(["req", "-m", "Mend <b>all</b> links | for @ada\n\nPlease."]).expect(0);
    env.cliq(["run", "--headless"]).expect(3);
    insta::assert_snapshot!("escalated", report(&env, &["--link", "https://ci.example/runs/1"]));
    env.write("fine", "");
    env.cliq(["run", "--headless", "-f"]).expect(0);
    insta::assert_snapshot!("completed", report(&env, &[]));
}

#[test]
fn run_is_chosen_by_its_id() {
    let env = Env::new(ONE, &[]);
    env.cliq(["run", "--headless"]).expect(0);
    let first = env.run_id();
    env.cliq(["run", "--headless", "-f"]).expect(0);
    env.cliq(["ci", &first]).expect(0).says(&first).says("COMPLETED");
    env.cliq(["ci", "nonsense"]).expect(2).says("there is no run nonsense");
}
