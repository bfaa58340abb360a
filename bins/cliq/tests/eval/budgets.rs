//! Budgets, infrastructure errors, stops.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::eval::world::{World, case};

#[test]
fn no_trial_starts_after_the_budget_is_used_up() {
    let world = World::new();
    world.role("one", "answer: right\ncost: 0.02\n");
    world.suite("repeats: 10\nmax_parallel: 1\nbudget: {usd: 0.05}", &case("a"), &["one"]);
    let report = world.report(&[]);
    assert_eq!(
        (report["counts"]["counted"].as_u64(), report["counts"]["skipped"].as_u64()),
        (Some(3), Some(7))
    );
    assert_eq!(report["variants"][0]["trials"], 3);
    world.eval(&["show"]).expect(0).says("7 were skipped: the budget is used up");
}

#[test]
fn infrastructure_errors_are_tried_again_and_do_not_count() {
    let world = World::new();
    // The first attempt of each trial fails as a provider does.
    let script = "script: n=$(basename \"$(dirname \"$CLIQ_DIR\")\"); if test ! -e ../../seen-$n; then touch ../../seen-$n; say '\"status\":\"error\",\"error\":\"the provider answered 429\",\"result\":{\"usage\":{\"model\":\"m\",\"tokens_in\":7,\"tokens_out\":0,\"cost_usd\":0.5}}'; exit 1; fi";
    world.role("one", &format!("answer: right\n{script}\n"));
    world.suite("repeats: 2", &case("a"), &["one"]);
    let output = world.eval(&["suite.yml", "--json"]).expect(0);
    assert!(output.stderr.contains("infrastructure:"), "{}", output.stderr);
    let report = output.json();
    assert_eq!(report["counts"]["passed"], 2);
    assert_eq!(report["counts"]["infrastructure"], 0);
    for trial in report["trials"].as_array().unwrap() {
        assert_eq!(
            (trial["attempts"].as_u64(), trial["outcome"].as_str()),
            (Some(1), Some("passed")),
            "{trial}"
        );
    }
    // What the failed attempts used is paid for.
    let cost = report["usage"]["cost_usd"].as_f64().unwrap();
    assert!((1.0..1.1).contains(&cost), "{cost}");
}

#[test]
fn trial_that_takes_too_long_fails() {
    let world = World::new();
    world.role("one", "answer: right\nscript: sleep 60\n");
    world.suite("repeats: 1\ntimeout: 1s", &case("a"), &["one"]);
    let begun = Instant::now();
    let report = world.report(&[]);
    assert!(begun.elapsed() < Duration::from_secs(40));
    assert_eq!(report["trials"][0]["outcome"], "failed");
    assert_eq!(report["trials"][0]["reason"], "time limit of 1 s exceeded");
}

#[test]
fn interrupt_stops_and_resume_continues() {
    let world = World::new();
    world.role("one", "answer: right\nscript: sleep 0.3\n");
    world.suite("repeats: 10", &case("a"), &["one"]);
    let mut child = world.env.spawn(["eval", "suite.yml"]);
    let deadline = Instant::now() + Duration::from_secs(60);
    let finished =
        || world.eval(&["list", "--json"]).json()["evaluations"][0]["finished"].as_u64().unwrap_or(0);
    while finished() < 2 {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
    }
    // Another process cannot work on it meanwhile.
    world.eval(&["--resume"]).expect(4).says("is being worked on by another process");
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let left = world.eval(&["show", "--json"]).expect(0).json()["counts"]["left"].as_u64().unwrap();
    assert!(left > 0);
    let report = world.eval(&["suite.yml", "--resume", "--json"]).expect(0).json();
    assert_eq!((report["counts"]["passed"].as_u64(), report["counts"]["left"].as_u64()), (Some(10), Some(0)));
    world.eval(&["--resume"]).expect(4).says("no evaluation has trials left");
}
