//! A run explains itself, however it ended.

use cliq_testkit::env::{Env, done};

const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: x}
    - {name: check, type: gate, agent: rules, depends_on: [work], max_iterations: 2, commands: [{name: links, run: 'printf \"3 links are\\033[2Jbroken\\n\"; test -f fine'}]}
    - {name: end, type: exec, depends_on: [check], commands: [{name: t, run: echo end}]}
";
const AGENT: &str = "ok\ncomplete\n";

#[test]
fn an_escalation() {
    let env = Env::new(TEAM, &[("x", AGENT)]);
    env.cliq(["explain"]).expect(1).says("nothing has run yet");
    env.cliq(["run", "--headless"]).expect(3).says("cliq explain");
    let told = env.cliq(["explain"]).expect(0);
    let mut rest = told.stdout.as_str();
    for part in [
        "ESCALATED",
        "the run began",
        "work: started",
        "work: completed",
        "check: 1 of 1 commands failed: links",
        "ROUTE to work",
        "work: started (standard, sent back by check)",
        "check: escalated",
        "the run ended: ESCALATED",
        "why:",
        "the budget of 2 iterations is spent",
        "command `links`, which ended with exit status 1",
        "3 links are·[2Jbroken",
        "look at:",
        ".cliq/logs/check.1.1-links.log",
        "next:",
        "cliq run --resume",
    ] {
        let at = rest.find(part).unwrap_or_else(|| panic!("{part:?} does not follow in\n{}", told.stdout));
        rest = &rest[at..];
    }
    assert!(!told.stdout.contains('\u{1b}'), "no colour in a pipe, no escapes of others");
    for path in
        told.stdout.lines().filter_map(|line| line.trim().strip_prefix(".cliq/")?.split_whitespace().next())
    {
        assert!(env.exists(&format!(".cliq/{path}")), "{path} is not there");
    }
    let json = env.cliq(["explain", "--json"]).expect(0).json();
    assert_eq!((&json["status"], &json["phase"]), (&"ESCALATED".into(), &"check".into()));
    assert!(json["steps"].as_array().unwrap().len() > 8);
}

#[test]
fn earlier_runs_by_their_ids() {
    let env = Env::new(TEAM, &[("x", AGENT)]);
    env.cliq(["run", "--headless"]).expect(3);
    let first = env.run_id();
    env.write("fine", "");
    env.cliq(["run", "-f"]).expect(0);
    env.cliq(["explain"]).expect(0).says("COMPLETED");
    env.cliq(["explain", &first])
        .expect(0)
        .says("ESCALATED")
        .says(&format!(".cliq/history/{first}/logs/check.1.1-links.log"));
    env.cliq(["explain", "nonsense"]).expect(2).says("there is no run nonsense").says(&first);
}

#[test]
fn a_cancellation_and_a_death() {
    let workflow = "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'touch at; sleep 1000'}]}\n    - {name: b, type: exec, depends_on: [a], commands: [{name: t, run: 'true'}]}\n";
    let env = Env::new(workflow, &[]);
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("a", || env.exists("at"));
    env.cliq(["explain"]).expect(0).says("RUNNING").says("at work then: a");
    env.cliq(["cancel"]).expect(0);
    done(&run.wait_with_output().unwrap()).expect(130);
    env.cliq(["explain"])
        .expect(0)
        .says("CANCELLED")
        .says("it was cancelled by cliq cancel")
        .says("at work then: a");
    std::fs::remove_file(env.path("at")).unwrap();
    let mut run = env.spawn(["run", "--headless", "-f"]);
    env.wait_for("a", || env.exists("at"));
    run.kill().unwrap();
    run.wait().unwrap();
    env.cliq(["explain"])
        .expect(0)
        .says("INTERRUPTED")
        .says("it was killed, or the machine went down")
        .says("cliq run --resume");
    let resumed = env.spawn(["run", "--headless", "--resume"]);
    env.wait_for("the resumption", || env.read(".cliq/orchestrator.log").contains("taken up again"));
    env.cliq(["cancel"]).expect(0);
    done(&resumed.wait_with_output().unwrap()).expect(130);
    env.cliq(["explain"]).expect(0).says("the orchestrator had died").says("run taken up again");
}

#[test]
fn a_team_that_has_changed_since() {
    let env = Env::new(TEAM, &[("x", AGENT)]);
    env.cliq(["run", "--headless"]).expect(3);
    env.team(
        "workflow:\n  phases:\n    - {name: other, type: exec, commands: [{name: t, run: 'true'}]}\n",
        &[],
    );
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["explain"]).expect(0).says("work: completed").says("check: escalated");
}

#[test]
fn runs_have_titles() {
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n",
        &[],
    );
    env.cliq(["run", "--headless"]).expect(0);
    assert!(env.cliq(["status", "--json"]).expect(0).json()["title"].is_null(), "no requirement, no title");
    env.cliq(["req", "-m", "\n# Mend the login\n\nof all users"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0).says("started: Mend the login");
    assert_eq!(env.cliq(["status", "--json"]).expect(0).json()["title"], "Mend the login");
    env.cliq(["status"]).expect(0).says("Mend the login\n");
    env.cliq(["run", "-f", "--headless", "--title", "-by hand"]).expect(2);
    env.cliq(["run", "-f", "--headless", "--title=-by \u{1b}[31mhand"]).expect(0);
    env.cliq(["explain"]).expect(0).says("-by  [31mhand\n");
    env.cliq(["run", "--resume", "--title", "x"]).expect(2).says("cannot be used with");
}
