//! Continued turns whose orchestrator is killed at random moments: each prompt is in the conversation once.

use std::fs;
use std::time::Duration;

use cliq_scripted_model::{Behavior, RecordedRequest, ScriptedModel};
use cliq_testkit::env::Env;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::coder::conversations::{FEEDBACK, PROGRAMS, ROUTED, program};
use crate::coder::kills::{Random, marked};
use crate::coder::world::{APIS, World, call, calls, says, script};

/// Turns of the continued activation.
const TURNS: usize = 12;

fn late(mut reply: Value, delay_ms: u64) -> Value {
    reply["delay_ms"] = delay_ms.into();
    reply
}

/// Runs until the end, and kills the orchestrator `kills` times in a continued turn, some of them with its agents. Returns the number of kills.
fn run_with_kills(env: &Env, kills: usize, random: &mut Random) -> usize {
    let mut killed = 0;
    loop {
        let is_first = !env.has_text(".cliq/journal.jsonl");
        let arguments: &[&str] =
            if is_first { &["run", "--headless"] } else { &["run", "--headless", "--resume"] };
        let before = env.files(".cliq/conversations").len().max(1);
        let mut run = env.spawn(arguments);
        if killed < kills {
            // The record of a continued turn is there before its prompt.
            while run.try_wait().expect("a process").is_none()
                && env.files(".cliq/conversations").len() <= before
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            std::thread::sleep(Duration::from_millis(random.below(250)));
        }
        if killed == kills || run.try_wait().expect("a process").is_some() {
            let status = run.wait().expect("a process");
            assert!(status.success(), "{status}: {}", env.cliq(["explain"]).stdout);
            return killed;
        }
        let id = env.run_id();
        let agents = if random.below(2) == 0 { marked(&format!("CLIQ_RUN_ID={id}")) } else { Vec::new() };
        // The run first: otherwise it may still record how its agent ended.
        for pid in [Pid::from_child(&run)].iter().chain(&agents) {
            let _ = kill_process(*pid, Signal::KILL);
        }
        let _ = run.wait();
        killed += 1;
        // The kill came between the record of the end and the end of the process: there is nothing to go on with.
        if env.cliq(["status", "--json"]).expect(0).json()["state"] == "completed" {
            return killed;
        }
    }
}

/// Each request has the task once, and the feedback once at most.
fn check(agent: &str, requests: &[RecordedRequest]) {
    for request in requests {
        let text = request.body.to_string();
        let (tasks, feedback) = (text.matches("Write the greeting.").count(), text.matches(FEEDBACK).count());
        assert!(tasks == 1 && feedback <= 1, "{agent}: {tasks} tasks, {feedback} times feedback: {text}");
    }
}

fn loop_with_kills(agent: &str, kills: usize, random: &mut Random) -> usize {
    let mut replies = vec![says("First answer.")];
    replies.extend((0..TURNS).map(|n| {
        late(calls("", &[call("run_command", json!({"command": format!("echo {n} >> lines")}))]), 15)
    }));
    replies.push(says("Mended."));
    let team = ROUTED.replace("MODE", "continue");
    let world = World::new(agent, &team, &script(&replies), Behavior::default());
    let killed = run_with_kills(&world.env, kills, random);
    let requests = world.model.requests();
    check(agent, &requests);
    let last = requests.last().expect("requests").body.to_string();
    assert_eq!(last.matches(FEEDBACK).count(), 1, "{agent}: the conversation was continued: {last}");
    let lines = fs::read_to_string(world.env.path("lines")).expect("lines");
    let mut once: Vec<&str> = lines.lines().collect();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), lines.lines().count(), "no command ran twice: {lines}");
    killed
}

fn program_with_kills(agent: &str, kills: usize, random: &mut Random) -> usize {
    let replies = [says("First."), late(says("Mended."), 150)];
    let (env, model): (Env, ScriptedModel) = program(agent, &ROUTED.replace("MODE", "continue"), &replies);
    let killed = run_with_kills(&env, kills, random);
    check(agent, &model.requests());
    killed
}

#[test]
fn killed_continued_turns_have_each_prompt_once() {
    let wanted: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(14);
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
    let mut random = Random(seed.as_nanos() as u64 | 1);
    let (mut killed, mut n) = (0, 0);
    while killed < wanted {
        let left = (wanted - killed).min(3);
        killed += loop_with_kills(APIS[n % APIS.len()].0, left, &mut random);
        let left = wanted.saturating_sub(killed).min(2);
        killed += program_with_kills(PROGRAMS[n % PROGRAMS.len()], left, &mut random);
        n += 1;
    }
    println!("{killed} kills in continued turns of {} runs", 2 * n);
}
