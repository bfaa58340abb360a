//! Runs that park while they wait for people (docs/reviews.md): `cliq run --park`.

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::{Value, json};

use crate::reviews::notices::Receiver;
use crate::reviews::waiting::Waiting;

/// Starts or continues a run that parks. Gives its exit status.
#[track_caller]
fn run(waiting: &Waiting, arguments: &[&str]) -> i32 {
    waiting.start(&[arguments, &["--park", "--headless"]].concat());
    waiting.end()
}

fn pending(waiting: &Waiting) -> Value {
    waiting.reviews().into_iter().find(|review| review["state"] == "pending").expect("a review is open")
}

fn events(waiting: &Waiting, name: &str) -> Vec<Value> {
    let journal = waiting.read(".cliq/journal.jsonl");
    let events = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    events.filter(|event| event["event"] == name).collect()
}

#[test]
fn run_parks_and_continues_after_the_answer() {
    let waiting = Waiting::new("reviewer: ann\nremind_every: 1h");
    assert_eq!(run(&waiting, &[]), 6);
    let out = waiting.output();
    assert!(out.contains("WAITING") && out.contains("cliq run --resume"), "{out}");
    let review = pending(&waiting);
    let parked = &events(&waiting, "run_parked")[0];
    assert_eq!(parked["on"], json!([review["id"]]));
    assert!(parked["until"].as_str() < review["deadline"].as_str(), "the reminder comes first: {parked}");
    let status = waiting.status();
    assert_eq!((&status["state"], &status["waiting"]["on"]), (&json!("waiting"), &json!([review["id"]])));
    assert!(waiting.ok(&["status"]).contains("parked until"));
    let explained = waiting.ok(&["explain"]);
    assert!(explained.contains("run parked") && explained.contains("WAITING"), "{explained}");
    assert!(!explained.contains("was killed"), "{explained}");
    // Without an answer it parks again, with the same review.
    assert_eq!(run(&waiting, &["--resume"]), 6);
    waiting.ok(&["review", "approve", "-m", "fine"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
    assert_eq!(waiting.reviews().len(), 1);
    assert_eq!(waiting.read("after.txt"), "passed\n");
    let of_gate = |event: &&Value| event["phase"] == "approval";
    assert_eq!(
        events(&waiting, "commands_finished").iter().filter(of_gate).count(),
        1,
        "the gate's commands run once"
    );
    assert_eq!(events(&waiting, "phase_started").iter().filter(of_gate).count(), 1);
    assert_eq!(waiting.status()["phases"][1]["iterations"], 1);
    assert!(waiting.status().get("waiting").is_none());
}

#[test]
fn requested_changes_run_the_writer_and_park_again() {
    let waiting = Waiting::new("reviewer: ann");
    assert_eq!(run(&waiting, &[]), 6);
    let first = pending(&waiting)["id"].clone();
    waiting.ok(&["review", "request-changes", "-m", "more"]);
    assert_eq!(run(&waiting, &["--resume"]), 6);
    assert_eq!(waiting.read("notes.md"), "round 0\nround 1\n");
    assert_ne!(pending(&waiting)["id"], first);
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
}

#[test]
fn parked_run_can_be_cancelled() {
    let waiting = Waiting::new("reviewer: ann");
    assert_eq!(run(&waiting, &[]), 6);
    assert!(waiting.ok(&["cancel"]).contains("cancelled"));
    assert_eq!(waiting.status()["state"], "cancelled");
    assert_eq!(waiting.reviews()[0]["state"], "cancelled");
    assert!(waiting.fails(1, &["cancel"]).contains("nothing is running"));
    // A cancelled run continues with a review of its own.
    assert_eq!(run(&waiting, &["--resume"]), 6);
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
}

#[test]
fn work_beside_a_review_is_done_before_the_run_parks() {
    let workflow = "workflow:
  phases:
    - {name: approval, type: hug, review: {reviewer: ann}}
    - {name: slow, type: exec, commands: [{name: c, run: 'sleep 0.5; echo done > slow.txt'}]}
    - {name: last, type: exec, depends_on: [approval, slow], commands: [{name: c, run: 'echo last > last.txt'}]}
";
    let waiting = Waiting::with(Machine::new(), workflow);
    // A review takes no place of `--max-parallel`.
    assert_eq!(run(&waiting, &["--max-parallel", "1"]), 6);
    assert_eq!(waiting.read("slow.txt"), "done\n");
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
    assert_eq!(waiting.read("last.txt"), "last\n");
}

#[test]
fn notices_are_sent_before_the_run_parks_and_reminders_after_it_wakes() {
    let receiver = Receiver::start();
    let settings = json!({
        "agents": {"webhook": {"channels": {"team": {"url": receiver.url}}}},
        "hug": {"reviewers": [{"name": "ann", "channels": ["webhook:team"]}]},
    });
    let machine = Machine::new().settings(&settings);
    let block = "        reviewer: ann\n        remind_every: 2s\n";
    let waiting = Waiting::with(machine, &crate::reviews::waiting::team(block));
    assert_eq!(run(&waiting, &[]), 6);
    let sent = || {
        receiver
            .bodies()
            .iter()
            .map(|body| body["event"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(sent(), ["hug_review"], "{:?}", receiver.bodies());
    let until = events(&waiting, "run_parked")[0]["until"].as_str().unwrap().to_owned();
    wait_for("the reminder is due", || (now() > until).then_some(()));
    assert_eq!(run(&waiting, &["--resume"]), 6);
    assert_eq!(sent(), ["hug_review", "hug_reminder"]);
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
    assert_eq!(sent().len(), 3, "{:?}", receiver.bodies());
}

/// The present time in the format of the journal.
fn now() -> String {
    std::thread::sleep(std::time::Duration::from_millis(50));
    cliq_fs::now().to_string()
}

#[test]
fn run_that_is_killed_around_parking_keeps_its_review() {
    let waiting = Waiting::new("reviewer: ann");
    assert_eq!(run(&waiting, &[]), 6);
    let review = pending(&waiting)["id"].clone();
    for n in 0..20 {
        waiting.start(&["--resume", "--park", "--headless"]);
        std::thread::sleep(std::time::Duration::from_millis(n * 9));
        // It may have parked before.
        waiting.kill();
    }
    assert_eq!(run(&waiting, &["--resume"]), 6);
    assert_eq!((waiting.reviews().len(), &pending(&waiting)["id"]), (1, &review));
    waiting.ok(&["review", "approve"]);
    assert_eq!(run(&waiting, &["--resume"]), 0);
    assert_eq!(waiting.read("after.txt"), "passed\n");
}

#[test]
fn request_to_cancel_is_kept_while_a_run_parks() {
    for n in 0..15 {
        let waiting = Waiting::new("reviewer: ann");
        waiting.start(&["--park", "--headless"]);
        std::thread::sleep(std::time::Duration::from_millis(n * 15));
        let cancelled = waiting.cliq(&["cancel"]);
        waiting.end();
        // It may have come before the run, and then there is nothing to cancel.
        if cancelled.status.success() {
            let said = String::from_utf8_lossy(&cancelled.stdout);
            assert_eq!(waiting.status()["state"], "cancelled", "{n}: {said}{}", waiting.output());
        }
    }
}

#[test]
fn a_run_that_parks_while_its_lock_is_waited_for_is_cancelled() {
    let waiting = Waiting::new("reviewer: ann");
    assert_eq!(run(&waiting, &[]), 6);
    let (journal, aside) = (waiting.project.join(".cliq/journal.jsonl"), waiting.machine.path("journal"));
    std::fs::rename(&journal, &aside).unwrap();
    // A shared lock is no holder, and keeps the exclusive one from being taken.
    let lock = std::fs::File::open(waiting.project.join(".cliq/lock")).unwrap();
    lock.try_lock_shared().unwrap();
    let parks = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(300));
        std::fs::rename(&aside, &journal).unwrap();
        lock.unlock().unwrap();
    });
    let said = waiting.ok(&["cancel"]);
    parks.join().unwrap();
    assert!(said.contains("the parked run is cancelled"), "{said}");
    assert_eq!(waiting.status()["state"], "cancelled");
}
