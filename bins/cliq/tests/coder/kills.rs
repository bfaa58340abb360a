//! Loops that are killed at random moments and continue from their transcripts.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use cliq_scripted_model::Behavior;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::coder::world::{APIS, TEAM, World, call, calls, says, script};

const TURNS: usize = 30;

/// Pseudorandom numbers. The clock is their seed, so that kills occur at other moments in every run of the test.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Processes that have a variable in their environment.
pub(crate) fn marked(mark: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let has_mark = |entry: &fs::DirEntry| {
        fs::read(entry.path().join("environ"))
            .is_ok_and(|env| env.split(|&b| b == 0).any(|v| v == mark.as_bytes()))
    };
    entries
        .filter(has_mark)
        .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
        .collect()
}

/// Each turn adds a line to a file by two commands and reads it.
fn session() -> Value {
    let mut replies: Vec<Value> = (0..TURNS)
        .map(|n| {
            let add =
                |part: &str| call("run_command", json!({"command": format!("echo {n}{part} >> lines")}));
            let mut reply = calls("", &[add("a"), call("read_file", json!({"path": "lines"})), add("b")]);
            reply["delay_ms"] = 4.into();
            reply
        })
        .collect();
    replies.push(says("Done."));
    script(&replies)
}

/// Runs a session that is killed `kills` times at most. Returns the number of kills.
fn session_with_kills(agent: &str, kills: usize, random: &mut Random) -> usize {
    let world = World::new(agent, TEAM, &session(), Behavior::default());
    let (mut done, mut killed) = (false, 0);
    while !done {
        let arguments: &[&str] =
            if killed == 0 { &["run", "--headless"] } else { &["run", "--headless", "--resume"] };
        let mut run = world.env.spawn(arguments);
        let moment = Duration::from_millis(20 + random.below(450));
        let started = Instant::now();
        let mut is_killed = false;
        loop {
            if let Some(status) = run.try_wait().unwrap() {
                // A kill may come just after the end was recorded.
                let is_complete = || world.env.cliq(["status", "--json"]).json()["status"] == "COMPLETED";
                let why = || world.env.cliq(["run", "--headless", "--resume"]).stderr;
                assert!(matches!(status.code(), Some(0 | 3)) || is_complete(), "{status}: {}", why());
                done = status.code() != Some(3);
                break;
            }
            if !is_killed
                && killed < kills
                && started.elapsed() >= moment
                // A run that has not recorded its start has not begun: there is nothing to resume.
                && world.env.has_text(".cliq/journal.jsonl")
            {
                killed += 1;
                is_killed = true;
                let id = fs::read_to_string(world.env.path(".cliq/journal.jsonl")).unwrap();
                let id: Value = serde_json::from_str(id.lines().next().unwrap_or("{}")).unwrap_or_default();
                let agents =
                    id["run_id"].as_str().map(|id| marked(&format!("CLIQ_RUN_ID={id}"))).unwrap_or_default();
                // The orchestrator, one process of the agent, or all of them.
                let orchestrator = Pid::from_child(&run);
                match random.below(3) {
                    0 => {
                        let _ = kill_process(orchestrator, Signal::KILL);
                    }
                    1 if !agents.is_empty() => {
                        let one = agents[usize::try_from(random.below(agents.len() as u64)).unwrap()];
                        let _ = kill_process(one, Signal::KILL);
                        // The loop may go on without it.
                        continue;
                    }
                    _ => agents.iter().chain([&orchestrator]).for_each(|pid| {
                        let _ = kill_process(*pid, Signal::KILL);
                    }),
                }
                let _ = run.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    check(&world, killed);
    killed
}

fn check(world: &World, killed: usize) {
    // No command ran twice.
    let mut seen = BTreeMap::<String, usize>::new();
    world.env.read("lines").lines().for_each(|line| *seen.entry(line.to_owned()).or_default() += 1);
    assert!(seen.values().all(|count| *count == 1), "{seen:?}");
    // No recorded reply was requested again: each number of replies once, and once more for a kill at most.
    let mut asked = BTreeMap::<usize, usize>::new();
    for request in world.model.requests() {
        let lists = ["messages", "contents", "input"];
        let messages = lists.into_iter().find_map(|name| request.body[name].as_array()).unwrap();
        let is_of_model = |message: &&Value| {
            matches!(message["role"].as_str(), Some("assistant" | "model"))
                || matches!(message["type"].as_str(), Some("reasoning" | "function_call"))
        };
        // Several items of the Responses API are one reply.
        let replies = messages.chunk_by(|a, b| is_of_model(&a) == is_of_model(&b));
        let of_model = replies.filter(|chunk| chunk.first().is_some_and(|first| is_of_model(&first))).count();
        *asked.entry(of_model).or_default() += 1;
    }
    let extra: usize = asked.values().map(|count| count - 1).sum();
    assert!(extra <= killed, "{extra} extra requests after {killed} kills: {asked:?}");
    assert_eq!(asked.len(), TURNS + 1);
    // Every call has one result, and those that were interrupted say so.
    let names: Vec<String> = world.env.files(".cliq/transcripts");
    // A process that was killed while it made a transcript leaves a temporary file beside it.
    let activation = |name: &&String| name.strip_prefix("work.")?.strip_suffix(".jsonl")?.parse::<u32>().ok();
    let last = names.iter().max_by_key(activation).unwrap();
    let entries = world.transcript(last.trim_end_matches(".jsonl"));
    let of = |kind: &str| entries.iter().filter(|entry| entry["type"] == kind).cloned().collect::<Vec<_>>();
    let ids = |entries: &[Value]| {
        let mut ids: Vec<String> =
            entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect();
        ids.sort();
        ids
    };
    let (called, results) = (of("tool_call"), of("tool_result"));
    assert_eq!((called.len(), ids(&called)), (3 * TURNS, ids(&results)));
    let unknown = results.iter().filter(|result| result["is_error"] == true).count();
    assert!(unknown <= 3 * killed, "{unknown} of {killed}");
    // What ran and was recorded is there; what is unknown may be.
    let ran = results
        .iter()
        .filter(|result| result["text"].as_str().unwrap().starts_with("[exit status 0"))
        .count();
    assert!(seen.len() >= ran && seen.len() <= 2 * TURNS, "{} lines, {ran} recorded", seen.len());
}

#[test]
fn killed_loops_continue_from_their_transcripts() {
    let wanted: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let mut random = Random(seed.as_nanos() as u64 | 1);
    let (mut killed, mut n) = (0, 0);
    while killed < wanted {
        killed += session_with_kills(APIS[n % APIS.len()].0, (wanted - killed).min(8), &mut random);
        n += 1;
    }
    println!("{killed} kills over {n} sessions of {TURNS} turns");
}
