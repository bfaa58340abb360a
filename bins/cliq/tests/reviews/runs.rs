//! Human gates in runs of all kinds: panes, sub-teams, cancellations, draining, starting afresh.

use std::process::Command;

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::Value;

use crate::reviews::waiting::{Waiting, team};

#[test]
fn displays_say_who_is_waited_for() {
    let waiting = Waiting::new("reviewer: [ann, bob]\ntimeout: 3h");
    waiting.start(&[]);
    let review = waiting.review();
    let (id, link) = (review["id"].as_str().unwrap(), review["links"]["bob"].as_str().unwrap());
    wait_for("the run says so", || waiting.output().contains(link).then_some(()));
    let deadline = review["deadline"].as_str().unwrap();
    for text in [waiting.output(), waiting.ok(&["status"])] {
        assert!(text.contains("ann, bob") && text.contains(deadline) && text.contains(link), "{text}");
        assert!(text.contains(&format!("cliq review approve {}", &id[..8])), "{text}");
    }
    let status = waiting.status();
    assert_eq!(status["phases"][1]["review"]["id"], id);
    assert!(waiting.ok(&["explain"]).contains("waits for a review by ann, bob"));
    // What is kept of the run has no right to decide in it.
    let token = link.rsplit('/').next().unwrap();
    for name in [".cliq/journal.jsonl", ".cliq/orchestrator.log", ".cliq/logs/approval.log"] {
        assert!(!waiting.read(name).contains(token), "{name}");
    }
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
    assert!(waiting.status()["phases"][1].get("review").is_none());
}

#[test]
fn a_headless_run_prints_no_link() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let link = waiting.link("ann");
    wait_for("the run says so", || waiting.output().contains("waits for a review by ann").then_some(()));
    assert!(!waiting.output().contains(link.rsplit('/').next().unwrap()));
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn in_a_pane() {
    if !Command::new("tmux").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return cliq_testkit::not_run("tmux is not installed");
    }
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--launcher", "tmux"]);
    waiting.review();
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn in_a_team_within_a_team() {
    let machine = Machine::new();
    machine.team("inner", &team("        reviewer: ann\n"));
    let outer = "workflow:
  phases:
    - {name: sub, type: team, team: \"@local/inner\"}
    - {name: last, type: exec, depends_on: [sub], commands: [{name: c, run: touch last.txt}]}
";
    let waiting = Waiting::with(machine, outer);
    waiting.start(&[]);
    let review = waiting.review();
    assert_eq!(review["phase"], "approval");
    wait_for("the outer run says so", || waiting.output().contains("waits for ann").then_some(()));
    let link = review["links"]["ann"].as_str().unwrap();
    let status = waiting.ok(&["status"]);
    assert!(status.contains(link), "{status}");
    // The whole run dies, and goes on with the same review.
    waiting.kill();
    waiting.start(&["--resume", "--headless"]);
    let again = wait_for("the review has a page again", || {
        Some(waiting.review()).filter(|again| again["links"]["ann"].as_str() != Some(link))
    });
    assert_eq!(again["id"], review["id"]);
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
    assert!(waiting.project.join("last.txt").exists());
    assert_eq!(waiting.reviews().len(), 1);
    assert!(waiting.project.join(".cliq/teams/sub/reviews/approval.1.json").exists());
}

#[test]
fn a_run_that_is_cancelled_needs_no_review() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let review = waiting.review();
    waiting.ok(&["cancel"]);
    assert_eq!(waiting.end(), 130);
    let over = &waiting.reviews()[0];
    assert_eq!(over["state"], "cancelled");
    let said = waiting.fails(4, &["review", "approve", review["id"].as_str().unwrap()]);
    assert!(said.contains("was cancelled"), "{said}");
    // Going on asks anew.
    waiting.start(&["--resume", "--headless"]);
    let again = waiting.review();
    assert_ne!(again["id"], review["id"]);
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn an_interrupt_cancels_the_review_too() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    waiting.review();
    Command::new("kill").args(["-INT", &waiting.pid().to_string()]).status().unwrap();
    assert_eq!(waiting.end(), 130);
    assert_eq!(waiting.reviews()[0]["state"], "cancelled");
}

/// A review may take days: a run that escalates elsewhere ends, and its review stays.
#[test]
fn a_run_that_escalates_does_not_wait_for_people() {
    let workflow = "workflow:
  phases:
    - {name: writer, type: exec, commands: [{name: c, run: touch notes.md}]}
    - name: approval
      type: hug
      depends_on: [writer]
      commands: [{name: c, run: test -f notes.md}]
      review: {reviewer: ann}
    - {name: other, type: exec, commands: [{name: c, run: 'until test -e ../go; do sleep 0.05; done; test -e ../fine'}]}
";
    let waiting = Waiting::with(Machine::new(), workflow);
    waiting.start(&["--headless"]);
    let review = waiting.review();
    std::fs::write(waiting.machine.path("go"), "").unwrap();
    assert_eq!(waiting.end(), 3);
    assert_eq!(waiting.reviews()[0]["state"], "pending");
    // It is answered while nothing runs, and the run goes on with the answer.
    let said = waiting.cliq(&["review", "approve", "-m", "good"]);
    assert!(String::from_utf8_lossy(&said.stderr).contains("cliq run --resume"), "{said:?}");
    std::fs::write(waiting.machine.path("fine"), "").unwrap();
    waiting.start(&["--resume", "--headless"]);
    assert_eq!(waiting.end(), 0);
    let reviews: Vec<Value> = waiting.reviews();
    assert_eq!((reviews.len(), &reviews[0]["id"]), (1, &review["id"]));
}

#[test]
fn a_run_that_starts_afresh_leaves_no_review_behind() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let first = waiting.review();
    waiting.kill();
    waiting.start(&["--headless", "-f"]);
    let second = waiting.review_after(first["id"].as_str());
    let state = |id: &Value| {
        waiting.reviews().into_iter().find(|review| review["id"] == *id).unwrap()["state"].clone()
    };
    assert_eq!(state(&first["id"]), "cancelled");
    waiting.ok(&["review", "approve", second["id"].as_str().unwrap()]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn going_on_from_an_earlier_phase_asks_about_the_new_work() {
    let waiting = Waiting::new("reviewer: ann");
    waiting.start(&["--headless"]);
    let first = waiting.review();
    waiting.kill();
    waiting.start(&["--headless", "--from", "writer"]);
    let second = waiting.review_after(first["id"].as_str());
    assert_eq!(second["evaluation"], 2);
    wait_for("the first is not needed any more", || {
        waiting
            .reviews()
            .iter()
            .any(|review| review["id"] == first["id"] && review["state"] == "cancelled")
            .then_some(())
    });
    waiting.ok(&["review", "approve"]);
    assert_eq!(waiting.end(), 0);
}

#[test]
fn review_must_be_named_if_ambiguous() {
    let gate = |name: &str| {
        format!(
            "    - {{name: {name}, type: hug, depends_on: [writer], commands: [{{name: c, run: 'true'}}], review: {{reviewer: ann}}}}\n"
        )
    };
    let workflow = format!(
        "workflow:\n  phases:\n    - {{name: writer, type: exec, commands: [{{name: c, run: 'true'}}]}}\n{}{}",
        gate("one"),
        gate("two")
    );
    let waiting = Waiting::with(Machine::new(), &workflow);
    assert!(waiting.fails(4, &["review", "approve"]).contains("no review waits"));
    waiting.start(&["--headless"]);
    let two = wait_for("two wait", || Some(waiting.reviews()).filter(|reviews| reviews.len() == 2));
    let said = waiting.fails(2, &["review", "approve"]);
    assert!(said.contains("2 reviews wait in this project"), "{said}");
    assert!(waiting.fails(2, &["review", "approve", "zzz"]).contains("no review whose id begins"));
    for review in two {
        waiting.ok(&["review", "approve", &review["id"].as_str().unwrap()[..10]]);
    }
    assert_eq!(waiting.end(), 0);
}
