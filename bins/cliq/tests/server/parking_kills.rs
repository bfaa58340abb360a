//! Servers, orchestrators and agents that are killed while runs park, wait, wake and are steered.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running, journal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::parking::{approve, machine, review_of, workspace};

/// Keeps its dispatch message as `PHASE.ITERATION.json`, works for a moment and adds a line to the file of its phase.
const WORKER: &str = r#"#!/bin/sh
message=$(cat)
n=$(printf '%s' "$message" | sed -n 's/.*"iteration": \([0-9]*\),*/\1/p' | head -n 1)
cd "$CLIQ_WORKSPACE"
printf '%s' "$message" > ".$CLIQ_PHASE" && mv ".$CLIQ_PHASE" "$CLIQ_PHASE.$n.json"
say() { printf '{"ts":"2026-01-01T00:00:00.000Z","version":1,"type":"phase",%s}\n' "$1" >> "$CLIQ_SIGNAL_FILE"; }
say '"status":"ok"'
sleep 0.1
echo x >> "$CLIQ_PHASE.lines"
say '"status":"complete","result":{}'
"#;
const TEAM: &str = "agents: {worker: {entry: agents/worker}}
workflow:
  phases:
    - {name: writer, type: standard, agent: worker}
    - name: approval
      type: hug
      depends_on: [writer]
      commands: [{name: check, run: 'echo checked >> approval.lines'}]
      review: {reviewer: ann}
    - {name: after, type: standard, agent: worker, depends_on: [approval]}
";

/// Sends a message through the API or the command line, often twice. Returns whether it was accepted: the run may have ended.
fn steer(machine: &Machine, server: &Running, run: &str, id: &str, random: &mut Random) -> bool {
    let mut accepted = false;
    for _ in 0..=random.below(2) {
        accepted |= if random.below(2) == 0 {
            let body = json!({"text": format!("text {id}"), "id": id});
            let answer = server.post(&format!("/api/v1/runs/{run}/steering"), &body);
            assert!(matches!(answer.status, 201 | 409 | 503), "{}", answer.body);
            answer.status == 201
        } else {
            let text = format!("text {id}");
            machine.cliq(&["steer", &text, "--id", id, "--run", run]).status.success()
        };
    }
    accepted
}

/// Checks that a run has each accepted message once, in one order, that each activation received all messages before it, and that each
/// delivery is recorded once.
fn check_steering(workspace: &Path, journal: &[Value], accepted: &BTreeSet<String>) {
    let mut received: Vec<&str> = Vec::new();
    let mut deliveries = BTreeSet::new();
    let mut iterations = std::collections::BTreeMap::<&str, u32>::new();
    for event in journal {
        let (id, phase) = (event["id"].as_str().unwrap_or(""), event["phase"].as_str().unwrap_or(""));
        match event["event"].as_str().unwrap() {
            "steering_received" => {
                assert!(!received.contains(&id), "{id} twice: {journal:#?}");
                received.push(id);
            }
            "steering_delivered" => {
                assert!(received.contains(&id), "{id} before its receipt: {journal:#?}");
                let delivery = (id, phase, event["activation"].as_u64().unwrap());
                assert!(deliveries.insert(delivery), "{delivery:?} twice: {journal:#?}");
            }
            "phase_started" if phase != "approval" => {
                let n = iterations.entry(phase).or_default();
                *n += 1;
                // An agent that was killed at its start has not kept its message.
                let Ok(text) = fs::read_to_string(workspace.join(format!("{phase}.{n}.json"))) else {
                    continue;
                };
                let message: Value = serde_json::from_str(&text).unwrap();
                let steering = message["steering"].as_array().cloned().unwrap_or_default();
                let got: Vec<&str> = steering.iter().map(|m| m["id"].as_str().unwrap()).collect();
                assert!(
                    got.starts_with(&received),
                    "{phase} {n}: {got:?} instead of {received:?}: {journal:#?}"
                );
            }
            _ => {}
        }
    }
    let lost: Vec<_> = accepted.iter().filter(|id| !received.contains(&id.as_str())).collect();
    assert!(lost.is_empty(), "{lost:?} are lost: {journal:#?}");
}

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
            && fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|name| ["cliq", "cliq-agent", "worker"].contains(&name.trim()))
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
    machine.team("guided", TEAM);
    machine.agent("guided", "worker", WORKER, &["writer", "approval", "after"]);
    let mut server = machine.serve();
    machine.keep_port(&server);
    while killed < kills {
        let ids: Vec<String> = (0..4).map(|_| server.start_run(&json!({"team": "@local/guided"}))).collect();
        let mut accepted = vec![BTreeSet::new(); ids.len()];
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
            let steered = usize::try_from(random.below(4)).unwrap();
            let message = format!("{steered}-{}", random.below(1 << 40));
            if !matches!(runs[steered]["state"].as_str().unwrap(), "completed" | "escalated" | "failed")
                && steer(&machine, &server, &ids[steered], &message, &mut random)
            {
                accepted[steered].insert(message);
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
        for (id, accepted) in ids.iter().zip(&accepted) {
            let journal = journal(&workspace(&machine, id));
            let run = server.run(id);
            assert_eq!(run["state"], "completed", "{run}\n{journal:#?}");
            let count = |kind: &str| journal.iter().filter(|event| event["event"] == kind).count();
            assert_eq!(count("verdict"), 1, "{journal:#?}");
            check_steering(&workspace(&machine, id), &journal, accepted);
            for phase in ["writer", "approval", "after"] {
                let file = format!("{phase}.lines");
                let lines = fs::read_to_string(workspace(&machine, id).join(&file)).unwrap().lines().count();
                let starts = starts(&journal, phase);
                assert!((1..=starts).contains(&lines), "{file}: {lines} for {starts} starts: {journal:#?}");
            }
            let reviews = server.get(&format!("/api/v1/reviews?run_id={id}")).expect(200).json();
            assert_eq!(reviews["reviews"].as_array().unwrap().len(), 1, "{reviews}");
        }
        println!("{killed} kills");
    }
}
