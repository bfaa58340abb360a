//! Parked runs whose sub-teams wait for people.

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::reviews::waiting::{Waiting, team};

/// A project whose team has a phase `sub`, which runs a team with a review.
fn nested(depth: usize) -> Waiting {
    let machine = Machine::new();
    machine.team("inner", &team("        reviewer: ann\n        remind_every: 1h\n"));
    let mut inside = "inner".to_owned();
    for n in 1..depth {
        let name = format!("level-{n}");
        machine.team(&name, &level(&inside));
        inside = name;
    }
    Waiting::with(machine, &level(&inside))
}

fn level(inside: &str) -> String {
    format!(
        "workflow:
  phases:
    - {{name: sub, type: team, team: \"@local/{inside}\"}}
    - {{name: last, type: exec, depends_on: [sub], commands: [{{name: c, run: 'echo last >> last.txt'}}]}}
"
    )
}

#[track_caller]
fn run(waiting: &Waiting, arguments: &[&str]) -> i32 {
    waiting.start(&[arguments, &["--park", "--headless"]].concat());
    waiting.end()
}

fn events(waiting: &Waiting, dir: &str, name: &str) -> Vec<Value> {
    let journal = waiting.read(&format!(".cliq/{dir}journal.jsonl"));
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == name).collect()
}

#[test]
fn run_parks_with_its_sub_teams() {
    for depth in 1..=3 {
        let waiting = nested(depth);
        let inner = "teams/sub/".repeat(depth);
        assert_eq!(run(&waiting, &[]), 6, "{}", waiting.output());
        let review = waiting.reviews()[0]["id"].clone();
        for dir in ["", &inner] {
            assert_eq!(events(&waiting, dir, "run_parked")[0]["on"], json!([review]), "{dir}");
        }
        let status = waiting.status();
        assert_eq!((&status["state"], &status["waiting"]["on"]), (&json!("waiting"), &json!([review])));
        assert!(waiting.ok(&["explain"]).contains("WAITING"));
        // Without an answer it parks again.
        assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
        waiting.ok(&["review", "approve", "-m", "fine"]);
        assert_eq!(run(&waiting, &["--resume"]), 0, "{}", waiting.output());
        assert_eq!(
            (waiting.read("after.txt"), waiting.read("notes.md")),
            ("passed\n".into(), "round 0\n".into())
        );
        assert_eq!(waiting.read("last.txt"), "last\n".repeat(depth));
        assert_eq!(waiting.reviews().len(), 1);
        assert_eq!(events(&waiting, "", "phase_started").len(), 2, "each phase is activated once");
        assert_eq!(events(&waiting, &inner, "phase_started").len(), 3, "each phase of the team too");
        assert_eq!(events(&waiting, &inner, "run_interrupted").len(), 0);
        assert_eq!(events(&waiting, &inner, "cancel_requested").len(), 0);
    }
}

#[test]
fn requested_changes_in_a_sub_team_park_again() {
    let waiting = nested(1);
    assert_eq!(run(&waiting, &[]), 6);
    waiting.ok(&["review", "request-changes", "-m", "more"]);
    assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
    assert_eq!(waiting.reviews().len(), 2);
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0, "{}", waiting.output());
    assert_eq!(waiting.read("notes.md").lines().count(), 2, "the writer worked twice");
}

/// An answer to any review of a sub-team wakes the run.
#[test]
fn two_reviews_in_a_sub_team_and_one_beside_it() {
    let machine = Machine::new();
    let hug = |name: &str| format!("    - {{name: {name}, type: hug, review: {{reviewer: ann}}}}\n");
    machine.team("inner", &format!("workflow:\n  phases:\n{}{}", hug("one"), hug("two")));
    let outer = format!(
        "workflow:\n  phases:\n    - {{name: sub, type: team, team: \"@local/inner\"}}\n{}",
        hug("beside")
    );
    let waiting = Waiting::with(machine, &outer);
    assert_eq!(run(&waiting, &[]), 6, "{}", waiting.output());
    let mut open: Vec<String> =
        waiting.reviews().iter().map(|review| review["id"].as_str().unwrap().to_owned()).collect();
    open.sort();
    let waits_for = |n: usize| {
        let parked = events(&waiting, "", "run_parked");
        assert_eq!(parked.len(), n + 1);
        let mut on: Vec<String> = serde_json::from_value(parked[n]["on"].clone()).unwrap();
        on.sort();
        on
    };
    assert_eq!(waits_for(0), open);
    for n in 1..=2 {
        let answered = open.pop().unwrap();
        waiting.ok(&["review", "approve", &answered]);
        assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
        assert_eq!(waits_for(n), open);
    }
    waiting.ok(&["review", "approve", &open[0]]);
    assert_eq!(run(&waiting, &["--resume"]), 0, "{}", waiting.output());
}

/// The run around a sub-team that waits goes on; while it works the sub-team wakes by itself.
#[test]
fn sub_team_is_answered_while_another_phase_works() {
    let machine = Machine::new();
    machine.team("inner", &team("        reviewer: ann\n"));
    let outer = "workflow:
  phases:
    - {name: sub, type: team, team: \"@local/inner\"}
    - {name: slow, type: exec, commands: [{name: c, run: 'until test -e after.txt; do sleep 0.05; done'}]}
    - {name: ask, type: hug, depends_on: [sub, slow], review: {reviewer: ann}}
";
    let waiting = Waiting::with(machine, outer);
    waiting.start(&["--park", "--headless"]);
    wait_for("the sub-team is idle", || (!events(&waiting, "", "review_idle").is_empty()).then_some(()));
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 6, "{}", waiting.output());
    assert_eq!(events(&waiting, "teams/sub/", "run_parked").len(), 0);
    let status = waiting.status();
    assert_eq!(status["phases"][0]["status"], "completed", "{status}");
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
}

#[test]
fn parked_run_with_a_sub_team_is_cancelled_and_steered() {
    let waiting = nested(1);
    assert_eq!(run(&waiting, &[]), 6);
    waiting.ok(&["steer", "Use short words.", "--id", "m1"]);
    assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
    let received = events(&waiting, "teams/sub/", "steering_received");
    assert_eq!((received.len(), &received[0]["id"]), (1, &json!("m1")));
    assert!(waiting.ok(&["cancel"]).contains("cancelled"));
    assert_eq!(waiting.status()["state"], "cancelled");
    assert_eq!(waiting.reviews()[0]["state"], "cancelled");
    assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0, "{}", waiting.output());
    assert_eq!(events(&waiting, "teams/sub/", "steering_received").len(), 1);
}

#[test]
fn run_with_a_sub_team_is_killed_around_parking() {
    let waiting = nested(2);
    assert_eq!(run(&waiting, &[]), 6);
    let review = waiting.reviews()[0]["id"].clone();
    for n in 0..20 {
        waiting.start(&["--resume", "--park", "--headless"]);
        std::thread::sleep(std::time::Duration::from_millis(n * 20));
        waiting.kill();
    }
    assert_eq!(run(&waiting, &["--resume"]), 6, "{}", waiting.output());
    assert_eq!((waiting.reviews().len(), &waiting.reviews()[0]["id"]), (1, &review));
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0, "{}", waiting.output());
    assert_eq!(
        (waiting.read("after.txt"), waiting.read("last.txt")),
        ("passed\n".into(), "last\nlast\n".into())
    );
    assert_eq!(waiting.read("notes.md"), "round 0\n", "the writer's work was done");
}
