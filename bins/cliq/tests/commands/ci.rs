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
    // Both ids begin with the time.
    env.cliq(["ci", &first[..6]]).expect(2).says("several runs begin with").says(&first);
    env.cliq(["explain", &env.run_id()]).expect(0);
    for link in ["not a url", "javascript:alert(1)", "", "https://"] {
        env.cliq(["ci", "--link", link]).expect(2).says("https://");
    }
    env.cliq(["ci", "nonsense"]).expect(2).says("there is no run nonsense");
}

#[test]
fn failure_that_was_tolerated_is_no_plain_success() {
    let team = "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'exit 3', escalate_on_fail: false}]}\n";
    let env = Env::new(team, &[]);
    env.cliq(["run", "--headless"]).expect(0);
    let report = report(&env, &[]);
    assert!(report.contains("### ⚠️") && report.contains("failing: `t`"), "{report}");
    assert!(report.contains("**commands failed:** `a` completed without `t`."), "{report}");
}

#[test]
fn output_of_a_team_within_is_quoted() {
    let env = Env::bare();
    env.write(
        "team/team.yml",
        "name: \"@local/outer\"\nphases:\n  - {name: sub, type: team, team: ./inner}\n",
    );
    env.write(
        "team/inner/team.yml",
        "name: \"@local/inner\"\nphases:\n  - {name: b, type: exec, commands: [{name: t, run: 'echo INNER BROKEN; exit 4'}]}\n",
    );
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "team"]).expect(0);
    env.cliq(["req", "-m", "Break"]).expect(0);
    env.cliq(["run", "--headless"]).expect(3);
    let report = report(&env, &[]);
    assert!(report.contains("INNER BROKEN") && report.contains("`sub`"), "{report}");
}

#[test]
fn people_who_are_waited_for_are_named() {
    let env = Env::bare();
    env.write(
        "team/team.yml",
        "name: \"@local/asks\"\nphases:\n  - {name: approval, type: hug, review: {reviewer: ann}}\n",
    );
    let reviewers = r#"[{"name": "ann", "channels": ["webhook:missing"]}]"#;
    env.cliq(["settings", "set", "-g", "hug.reviewers", reviewers]).expect(0);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "team"]).expect(0);
    env.cliq(["req", "-m", "Ask"]).expect(0);
    env.cliq(["run", "--headless", "--park"]).expect(6);
    let report = report(&env, &[]);
    assert!(report.contains("### ⏸️ Ask") && report.contains("| waits |"), "{report}");
    assert!(report.contains("waits for ann until"), "{report}");
}
