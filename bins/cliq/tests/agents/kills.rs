//! Orchestrators and agents that are killed at random moments while people are asked: each request is asked and answered once.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cliq_testkit::env::has_program;
use cliq_testkit::machine::{Machine, journal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::acp::{FIXTURE, World, world};
use crate::coder::kills::{Random, marked};

const TEAM: &str = "workflow:
  phases:
    - {name: work, type: standard, agent: mine, conversation: continue}
    - name: review
      type: gate
      depends_on: [work]
      agent: rules
      commands: [{name: second, run: 'test $(wc -l < turn.txt) -ge 2'}]
      rules: {second: work}
";

/// Requests of a run: a question and a permission in each of its two turns.
const REQUESTS: usize = 4;

/// Approves every request until `stop` is set.
fn answer(world: &World, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        for review in world.waiting() {
            let id = review["id"].as_str().unwrap_or_default();
            let is_question = review["subject"]["kind"] == "question";
            let values: &[&str] = if is_question { &["--input", "base=sqlite"] } else { &[] };
            // It may have been answered just now.
            world.answer(&[&["approve", id, "--as", "operator"], values].concat());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Stops what answers, after a failure too.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs until the end, with at most `kills` kills. Returns their number.
fn run_with_kills(world: &World, kills: usize, random: &mut Random) -> usize {
    let mut killed = 0;
    for start in 0.. {
        assert!(start < kills + 40, "the run does not end: {}", world.env.cliq(["explain"]).stdout);
        let is_first = !world.env.has_text(".cliq/journal.jsonl");
        let mut arguments = vec!["run", "--headless"];
        if !is_first {
            arguments.push("--resume");
        }
        if random.below(3) == 0 {
            arguments.push("--park");
        }
        let mut run = world.env.spawn(arguments);
        if killed < kills {
            std::thread::sleep(Duration::from_millis(150 + random.below(900)));
        }
        let is_over = run.try_wait().expect("a process").is_some();
        if killed < kills && !is_over {
            let id = world.env.run_id();
            let mut victims = marked(&format!("CLIQ_RUN_ID={id}"));
            match random.below(4) {
                // The orchestrator alone.
                0 => victims = vec![Pid::from_child(&run)],
                // One of the agents' processes: the helper, the agent, the program behind it.
                1 | 2 if !victims.is_empty() => {
                    let one = usize::try_from(random.below(victims.len() as u64)).expect("small");
                    victims = vec![victims[one]];
                }
                _ => victims.push(Pid::from_child(&run)),
            }
            for victim in victims {
                let _ = kill_process(victim, Signal::KILL);
            }
            killed += 1;
        }
        let output = run.wait_with_output().expect("a process");
        match output.status.code() {
            Some(0) => return killed,
            // It was killed after the end of the run was recorded.
            Some(4) if !is_first => return killed,
            // Parked, escalated since an agent was killed, or killed itself.
            Some(3 | 6) | None => {}
            other => panic!("{other:?}: {}", String::from_utf8_lossy(&output.stderr)),
        }
    }
    killed
}

/// `CLIQ_TEST_KILLS` sets the number of kills.
#[test]
fn kills_ask_nobody_twice() {
    let kills: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_nanos() as u64;
    let mut random = Random(seed | 1);
    let mut killed = 0;
    while killed < kills {
        let settings = [("permissions", "ask")];
        let Some(world) = world(TEAM, &["keeps"], &settings) else { return };
        let stop = AtomicBool::new(false);
        killed += std::thread::scope(|scope| {
            scope.spawn(|| answer(&world, &stop));
            let _stop = Stop(&stop);
            run_with_kills(&world, (kills - killed).min(8), &mut random)
        });
        check(&world, seed);
    }
}

fn check(world: &World, seed: u64) {
    let context = || format!("seed {seed}: {}", world.env.cliq(["explain"]).stdout);
    assert_eq!(world.env.read("turn.txt"), "turn 1\nturn 2\n", "{}", context());
    let reviews = world.reviews();
    let mut outcomes = BTreeMap::<String, usize>::new();
    for review in &reviews {
        *outcomes
            .entry(review["outcome"].as_str().or(review["state"].as_str()).unwrap_or("?").to_owned())
            .or_default() += 1;
    }
    assert_eq!(outcomes, BTreeMap::from([("approved".to_owned(), REQUESTS)]), "{} {reviews:#?}", context());
    // Each conversation has the whole task once, and the feedback of the gate once at most.
    for file in std::fs::read_dir(&world.state).expect("a directory").filter_map(Result::ok) {
        let name = file.file_name().to_string_lossy().into_owned();
        let Some(session) = name.strip_suffix(".json").filter(|name| name.starts_with("session-")) else {
            continue;
        };
        let prompts = world.prompts(session);
        let count = |text: &str| prompts.iter().filter(|prompt| prompt.contains(text)).count();
        let (tasks, feedback) = (count("Write the greeting."), count("sent your work back"));
        assert!(
            tasks <= 1 && feedback <= 1 && (tasks == 1 || prompts.is_empty()),
            "{prompts:#?} {}",
            context()
        );
    }
    let asks: Value = serde_json::from_str(&world.env.read(".cliq/asks/work.json")).expect("a record");
    let asks = asks["asks"].as_array().expect("a list");
    assert_eq!(asks.len(), REQUESTS, "{asks:#?}");
    assert!(asks.iter().all(|ask| ask["state"] == "used"), "{asks:#?}");
    assert_eq!(world.env.left_over(), Vec::<String>::new());
}

/// As above with a server, which parks and wakes the runs, and is killed too.
#[test]
fn kills_of_a_server_ask_nobody_twice() {
    if !has_program("python3") {
        return;
    }
    let kills: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(16);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_nanos() as u64;
    let (mut random, mut killed) = (Random(seed | 1), 0);
    let state = tempfile::tempdir().expect("a directory");
    let args = json!([FIXTURE, state.path(), "keeps"]);
    let settings = json!({
        "server": {"max_runs": 2, "recovery": "resume"},
        "agents": {"mine": {"kind": "acp", "command": "python3", "args": args, "permissions": "ask"}},
    });
    let machine = Machine::new().settings(&settings);
    machine.team("asks", TEAM);
    std::fs::write(machine.home.join("teams/@local/asks/roles/work.md"), "You work.\n").expect("written");
    let mut server = machine.serve();
    machine.keep_port(&server);
    while killed < kills {
        let id = server.start_run(&json!({"team": "@local/asks", "requirement": "Write the greeting."}));
        // More would be more than a run may be recovered.
        let mut left = 4;
        let deadline = Instant::now() + Duration::from_secs(120);
        loop {
            assert!(Instant::now() < deadline, "seed {seed}: the run does not end: {}", server.run(&id));
            std::thread::sleep(Duration::from_millis(random.below(200)));
            let pending = server.get(&format!("/api/v1/reviews?run_id={id}&pending=true")).expect(200).json();
            for review in pending["reviews"].as_array().into_iter().flatten().filter(|_| random.below(3) > 0)
            {
                let mut body = json!({"reviewer": "operator", "verdict": "approve"});
                if review["subject"]["kind"] == "question" {
                    body["inputs"] = json!({"base": "sqlite"});
                }
                let path = format!("/api/v1/reviews/{}/decision", review["id"].as_str().expect("an id"));
                server.post(&path, &body).expect(200);
            }
            match server.run(&id)["state"].as_str().expect("a state") {
                "completed" => break,
                // An agent that dies alone ends the run: a person resumes it.
                "escalated" | "failed" => {
                    drop(server.post(&format!("/api/v1/runs/{id}/resume"), &json!({})).expect(202));
                }
                _ => {}
            }
            if left == 0 || random.below(3) > 0 {
                continue;
            }
            let mut victims = marked(&format!("CLIQ_RUN_ID={id}"));
            if random.below(3) == 0 {
                server.kill();
                server = machine.serve();
            } else if !victims.is_empty() {
                let one = usize::try_from(random.below(victims.len() as u64)).expect("small");
                let _ = kill_process(victims.swap_remove(one), Signal::KILL);
            } else {
                continue;
            }
            (left, killed) = (left - 1, killed + 1);
        }
        let workspace = machine.home.join("workspaces").join(&id);
        let context = || format!("seed {seed}: {:#?}", journal(&workspace));
        let written = std::fs::read_to_string(workspace.join("turn.txt")).expect("a file");
        assert_eq!(written, "turn 1\nturn 2\n", "{}", context());
        let reviews = server.get(&format!("/api/v1/reviews?run_id={id}")).expect(200).json();
        let reviews = reviews["reviews"].as_array().expect("a list");
        let approved = reviews.iter().filter(|review| review["outcome"] == "approved").count();
        assert_eq!((reviews.len(), approved), (REQUESTS, REQUESTS), "{reviews:#?} {}", context());
    }
}
