//! Orchestrator, agent and server are killed at random moments of the life of a review: it is not lost, not doubled, no notice is sent twice, and
//! it is decided once.

use std::collections::HashMap;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running};
use serde_json::{Value, json};

use crate::reviews::notices::Receiver;
use crate::reviews::waiting::{Waiting, team};

/// Default number of kills. `CLIQ_TEST_KILLS` overrides it.
const KILLS: usize = 12;

/// Numbers that look random, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }

    /// Mostly short: the making, the notices and the end of a review are short.
    fn pause(&mut self) -> Duration {
        let longest = [60, 200, 500, 1200][usize::try_from(self.below(4)).unwrap()];
        Duration::from_millis(self.below(longest))
    }
}

fn agents(project: &str) -> Vec<String> {
    let is_own = |pid: &String| {
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let is_agent = command.ends_with(b"\0agent\0review\0");
        is_agent
            && std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|dir| dir.to_str() == Some(project))
    };
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_own).collect()
}

#[test]
fn no_review_is_lost_doubled_or_decided_twice() {
    let kills = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let seed = std::env::var("CLIQ_TEST_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or_else(|| {
        u64::from(std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().subsec_nanos())
            | 1
    });
    println!("CLIQ_TEST_SEED={seed}");
    let (mut random, mut killed) = (Random(seed), 0);
    while killed < kills {
        killed += one_life(&mut random);
        println!("{killed} kills");
    }
}

/// One review, from its making to its end. Gives how many times something was killed.
fn one_life(random: &mut Random) -> usize {
    let receiver = Receiver::start();
    let settings = json!({
        "hug": {"reviewers": [{"name": "ann", "channels": ["webhook:ann"]}, {"name": "bob", "channels": ["webhook:bob"]}]},
        "agents": {"webhook": {"channels": {"ann": {"url": receiver.url}, "bob": {"url": receiver.url}}}},
    });
    let machine = Machine::new().settings(&settings);
    let waiting = Waiting::with(machine, &team("        reviewer: [ann, bob]\n"));
    let mut server: Option<Running> = (random.below(2) == 0).then(|| waiting.machine.serve());
    if let Some(server) = &server {
        waiting.machine.keep_port(server);
    }
    let project = waiting.project.to_str().unwrap().to_owned();
    let (rounds, mut kills, mut answered) = (2 + random.below(4), 0, false);
    waiting.start(&["--headless"]);
    for round in 0..rounds {
        sleep(random.pause());
        // Once, an answer comes at about the same moment.
        if !answered && (round + 1 == rounds || random.below(3) == 0) && !waiting.reviews().is_empty() {
            answered = answer(&waiting, random);
            sleep(random.pause() / 4);
        }
        match random.below(3) {
            0 => {
                if waiting.is_running() {
                    waiting.kill();
                    kills += 1;
                }
            }
            1 => {
                for pid in agents(&project) {
                    // It may have ended by itself.
                    let _ = Command::new("kill").args(["-9", &pid]).output();
                    kills += 1;
                }
            }
            _ => {
                if let Some(running) = server.take() {
                    running.kill();
                    sleep(random.pause() / 4);
                    server = Some(waiting.machine.serve());
                    kills += 1;
                }
            }
        }
        go_on(&waiting);
    }
    // From now on nothing is killed.
    let deadline = Instant::now() + Duration::from_secs(90);
    while !waiting.project.join("after.txt").exists() || waiting.is_running() {
        assert!(Instant::now() < deadline, "the run does not end: {}", waiting.output());
        if !answered && !waiting.reviews().is_empty() {
            answered = answer(&waiting, random);
        }
        go_on(&waiting);
        sleep(Duration::from_millis(30));
    }
    check(&waiting, &receiver);
    kills
}

/// Takes the run up again where it has ended without being complete.
fn go_on(waiting: &Waiting) {
    if !waiting.is_running() && !waiting.project.join("after.txt").exists() {
        // One that was killed before it recorded anything has nothing to be resumed.
        let has_begun = !waiting.read(".cliq/journal.jsonl").is_empty();
        waiting.start(&[if has_begun { "--resume" } else { "-f" }, "--headless"]);
    }
}

/// Answers in one of three ways. Gives whether the answer was taken.
fn answer(waiting: &Waiting, random: &mut Random) -> bool {
    let reviews = waiting.reviews();
    let Some(review) = reviews.iter().find(|review| review["state"] == "pending") else { return false };
    match random.below(2) {
        0 => waiting
            .cliq(&["review", "approve", review["id"].as_str().unwrap(), "--as", "ann"])
            .status
            .success(),
        _ => {
            let Some(link) = review["links"]["bob"].as_str() else { return false };
            // The page may be gone at this very moment.
            let posted = ureq::post(link).config().max_redirects(0).http_status_as_error(false).build();
            let posted =
                posted.header("content-type", "application/x-www-form-urlencoded").send("verdict=approve");
            posted.is_ok_and(|answer| answer.status() == 303)
        }
    }
}

/// Counts the starts of the phase after the review: one, and one more for each resume before its end was recorded.
fn starts_after_review(journal: &[Value]) -> usize {
    let (mut starts, mut may_start) = (0, true);
    for event in journal {
        match event["event"].as_str().unwrap() {
            "phase_started" if event["phase"] == "after" => {
                assert!(may_start, "the phase after the review started twice: {journal:?}");
                (starts, may_start) = (starts + 1, false);
            }
            "phase_completed" if event["phase"] == "after" => return starts,
            "run_resumed" => may_start = true,
            _ => {}
        }
    }
    starts
}

fn check(waiting: &Waiting, receiver: &Receiver) {
    let reviews = waiting.reviews();
    assert_eq!(reviews.len(), 1, "one review: {reviews:?}");
    assert_eq!(reviews[0]["state"], "decided");
    assert_eq!(reviews[0]["answers"].as_array().unwrap().len(), 1);
    let journal: Vec<Value> =
        waiting.read(".cliq/journal.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let times = waiting.read("after.txt").lines().count();
    let starts = starts_after_review(&journal);
    assert!((1..=starts).contains(&times), "after the decision, {times} times for {starts} starts");
    let verdicts = journal.iter().filter(|event| event["event"] == "verdict").count();
    assert_eq!(verdicts, 1, "one verdict");
    let mut notices: HashMap<String, u32> = HashMap::new();
    for body in receiver.bodies() {
        *notices.entry(body["payload"]["notice"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(notices.values().all(|count| *count == 1), "a notice was sent twice: {notices:?}");
    assert!(waiting.project.join(".cliq/reviews/approval.1.json").exists());
    assert!(!waiting.project.join(".cliq/reviews/approval.1-2.json").exists());
    let shown = waiting.ok(&["review", "show"]);
    assert!(shown.contains("as it was written"), "{shown}");
}
