//! Servers, orchestrators and agents that are killed while runs park, wait and wake.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::machine::journal;
use crate::parking::{approve, machine, review_of, workspace};

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
}

/// Kills one process that works in a workspace: the orchestrator, or its agent.
fn kill_one(workspace: &Path, random: &mut Random) -> bool {
    let mut own = processes_in(workspace);
    if own.is_empty() {
        return false;
    }
    let pid = own.swap_remove(usize::try_from(random.below(own.len() as u64)).unwrap());
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).is_ok()
}

/// Processes of `cliq` whose working directory is a workspace.
fn processes_in(workspace: &Path) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_own = |pid: &u32| {
        fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|dir| dir == workspace)
            && fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "cliq")
    };
    pids.filter(is_own).collect()
}

/// Starts of a phase: one, and one more for each resume before its end was recorded.
fn starts(journal: &[Value], phase: &str) -> usize {
    let (mut starts, mut may_start) = (0, true);
    for event in journal {
        match event["event"].as_str().unwrap() {
            "phase_started" if event["phase"] == phase => {
                assert!(may_start, "{phase} started twice: {journal:#?}");
                (starts, may_start) = (starts + 1, false);
            }
            "phase_completed" if event["phase"] == phase => return starts,
            "run_resumed" => may_start = true,
            _ => {}
        }
    }
    starts
}

/// Servers, orchestrators and agents are killed at random moments while runs work, park, wait and wake: each decision counts once, and
/// no phase runs again that was complete. `CLIQ_TEST_KILLS` sets the number of kills.
#[test]
fn kills_lose_no_parked_run_and_wake_none_twice() {
    let kills = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(10_usize);
    let seed = std::env::var("CLIQ_TEST_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| {
        u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
            | 1
    });
    println!("CLIQ_TEST_SEED={seed}");
    let (mut random, mut killed) = (Random(seed), 0);
    let machine = machine(3);
    let mut server = machine.serve();
    machine.keep_port(&server);
    while killed < kills {
        let ids: Vec<String> = (0..4).map(|_| server.start_run(&json!({"team": "@local/ask"}))).collect();
        // More would be more than a run may be recovered.
        let mut left = 4;
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            assert!(Instant::now() < deadline, "the runs do not end: {ids:?}");
            std::thread::sleep(Duration::from_millis(random.below(120)));
            let runs: Vec<Value> = ids.iter().map(|id| server.run(id)).collect();
            for (id, run) in ids.iter().zip(&runs) {
                match run["state"].as_str().unwrap() {
                    "waiting" if random.below(3) == 0 => {
                        let review = review_of(&server, id);
                        if random.below(2) == 0 {
                            machine.ok(&["review", "approve", &review, "--as", "ann"]);
                        } else {
                            approve(&server, id);
                        }
                    }
                    // An agent that dies alone ends the run, and so does an orchestrator before it begins: a person resumes it.
                    "escalated" | "failed" => {
                        drop(server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).expect(202))
                    }
                    _ => {}
                }
            }
            let victim = usize::try_from(random.below(4)).unwrap();
            if left > 0 && random.below(3) == 0 {
                server.kill();
                server = machine.serve();
                (left, killed) = (left - 1, killed + 1);
            } else if left > 0 && kill_one(&workspace(&machine, &ids[victim]), &mut random) {
                (left, killed) = (left - 1, killed + 1);
            }
            if runs.iter().all(|run| run["state"] == "completed") {
                break;
            }
        }
        for id in &ids {
            let journal = journal(&workspace(&machine, id));
            let run = server.run(id);
            assert_eq!(run["state"], "completed", "{run}\n{journal:#?}");
            let count = |kind: &str| journal.iter().filter(|event| event["event"] == kind).count();
            assert_eq!(count("verdict"), 1, "{journal:#?}");
            for (phase, file) in [("writer", "notes"), ("approval", "checks"), ("after", "after")] {
                let lines = fs::read_to_string(workspace(&machine, id).join(file)).unwrap().lines().count();
                let starts = starts(&journal, phase);
                assert!((1..=starts).contains(&lines), "{file}: {lines} for {starts} starts: {journal:#?}");
            }
            let reviews = server.get(&format!("/api/v1/reviews?run_id={id}")).expect(200).json();
            assert_eq!(reviews["reviews"].as_array().unwrap().len(), 1, "{reviews}");
        }
        println!("{killed} kills");
    }
}
