//! Evaluations that are killed at random moments.

use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::eval::world::{World, case};

/// Processes whose environment contains a text.
fn marked(text: &str) -> Vec<Pid> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().filter_map(Result::ok) {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else {
            continue;
        };
        let has = std::fs::read(entry.path().join("environ"))
            .is_ok_and(|bytes| memchr::memmem::find(&bytes, text.as_bytes()).is_some());
        let is_zombie =
            std::fs::read_to_string(entry.path().join("stat")).is_ok_and(|stat| stat.contains(") Z "));
        if has && !is_zombie && pid != i32::try_from(std::process::id()).unwrap() {
            found.extend(Pid::from_raw(pid));
        }
    }
    found
}

/// Ids of the runs that a journal contains.
fn runs_of(workspace: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(workspace.join(".cliq/journal.jsonl")).unwrap();
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines
        .filter(|line| line["event"] == "run_started")
        .map(|line| line["run_id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn each_trial_counts_once_after_100_kills() {
    let world = World::new();
    // Each run appends a line when its agent has finished.
    world.role("one", "answer: right\nscript: sleep 0.05; echo \"$CLIQ_RUN_ID\" >> ../../finished\n");
    world.role("two", "answer: wrong\nscript: sleep 0.05; echo \"$CLIQ_RUN_ID\" >> ../../finished\n");
    world.suite("repeats: 80", &["a", "b"].map(case).concat(), &["one", "two"]);
    let home = format!("CLIQ_HOME={}", world.env.home().display());
    let mut random = fastrand::Rng::with_seed(5);
    let mut kills = 0;
    loop {
        let arguments: &[&str] = if kills == 0 { &["eval", "suite.yml"] } else { &["eval", "--resume"] };
        let mut child = world.env.spawn(arguments);
        let pause = Duration::from_millis(random.u64(20..140));
        // The first one is given the time to store the evaluation.
        std::thread::sleep(if kills == 0 { Duration::from_millis(600) } else { pause });
        if kills >= 100 || child.try_wait().unwrap().is_some() {
            let output = cliq_testkit::env::done(&child.wait_with_output().unwrap());
            // The kill before may have come after the last result.
            let was_over = output.stderr.contains("no evaluation has trials left");
            assert!(output.code == 0 || was_over, "{output:?}");
            break;
        }
        kills += 1;
        let mut victims = vec![Pid::from_child(&child)];
        if random.bool() {
            // The orchestrators and agents of its runs too, as when a machine loses power.
            victims.extend(marked(&home));
        }
        for pid in victims {
            let _ = kill_process(pid, Signal::KILL);
        }
        child.wait().unwrap();
    }
    assert!(kills >= 100, "the evaluation was over after {kills} kills");
    let report = world.eval(&["show", "--json"]).expect(0).json();
    let counts = &report["counts"];
    let lost =
        report["trials"].as_array().unwrap().iter().filter(|trial| trial["outcome"] == "infrastructure");
    assert_eq!(lost.map(|trial| trial["reason"].to_string()).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(
        (counts["all"].as_u64(), counts["counted"].as_u64(), counts["left"].as_u64()),
        (Some(320), Some(320), Some(0))
    );
    assert_eq!(report["variants"][0]["passed"], 160);
    assert_eq!(report["variants"][1]["passed"], 0);
    assert_eq!(counts["infrastructure"], 0);
    for trial in report["trials"].as_array().unwrap() {
        // The workspace is that of the run whose result was stored, and no other run came after it.
        let runs = runs_of(Path::new(trial["workspace"].as_str().unwrap()));
        assert_eq!(runs, [trial["run_id"].as_str().unwrap()], "{trial}");
    }
    // Nothing is left behind.
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while !marked(&home).is_empty() {
        assert!(std::time::Instant::now() < deadline, "processes are left: {:?}", marked(&home));
        std::thread::sleep(Duration::from_millis(50));
    }
}
