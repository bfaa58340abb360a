//! The server is killed at random moments while runs of all kinds go on: no event is lost or doubled, none runs twice.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running, is_final, journal, processes, processes_with};
use serde_json::{Value, json};

/// `CLIQ_TEST_KILLS` sets another number.
const KILLS: usize = 200;
const RUNS: usize = 20;
/// New runs between two kills. The number of runs does not depend on the speed of the machine, which has to check each of them.
const NEW: usize = 4;
/// Events of the server's own, which no journal has.
const OWN: [&str; 7] = [
    "run_queued",
    "run_dispatched",
    "run_requeued",
    "cancel_requested_by_caller",
    "run_not_started",
    "run_not_resumed",
    "orchestrator_died",
];

/// A team and how its runs end.
const TEAMS: [(&str, &str); 4] =
    [("quick", "completed"), ("chain", "completed"), ("fails", "escalated"), ("long", "cancelled")];

fn install(machine: &Machine) {
    let once = |n: usize| format!("echo {n} >> ran");
    machine.chain("quick", &[&once(0)]);
    machine.chain(
        "chain",
        &[&once(0), &format!("{}; sleep 0.1", once(1)), &once(2), &format!("sleep 0.2; {}", once(3))],
    );
    machine.chain("fails", &[&once(0), "exit 3"]);
    machine.chain("long", &[&once(0), "sleep 600"]);
}

/// Numbers that look random and are the same in each run of the test.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

fn check(server: &Running, machine: &Machine, at_work: &[u8], id: &str, team: &str, end: &str) {
    let run = server.run(id);
    let text = format!("{team} {id}: {run}");
    // A run of `long` that was cancelled in the queue never began; each other has begun once.
    assert_eq!(run["state"], end, "{text}");
    let events = server.events(id);
    let numbers: Vec<i64> = events.iter().map(|(n, _)| *n).collect();
    assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>(), "{text}");
    let kind = |event: &Value| event["event"].as_str().unwrap().to_owned();
    let last = kind(&events.last().unwrap().1);
    assert_eq!(last, "run_finished", "{text}");
    let workspace = machine.home.join("workspaces").join(id);
    let record = journal(&workspace);
    if record.is_empty() {
        assert_eq!((team, run["started_at"].as_str()), ("long", None), "{text}");
        return;
    }
    let journaled: Vec<&Value> =
        events.iter().map(|(_, event)| event).filter(|event| !OWN.contains(&kind(event).as_str())).collect();
    assert_eq!(journaled, record.iter().collect::<Vec<_>>(), "{text}");
    assert_eq!(record.iter().filter(|event| event["event"] == "run_started").count(), 1, "{text}");
    let ran = fs::read_to_string(workspace.join("ran")).unwrap_or_default();
    let expected = match team {
        "chain" => "0\n1\n2\n3\n",
        _ => "0\n",
    };
    // One that was cancelled early may have done less, and none may have done more.
    assert!(ran == expected || (team == "long" && ran.is_empty()), "{ran:?} {text}");
    assert!(memchr::memmem::find(at_work, id.as_bytes()).is_none(), "{text}: {:?}", processes_with(id));
}

#[test]
fn the_server_is_killed_at_random_moments() {
    let machine = Machine::new().settings(&json!({"server": {"max_runs": 8}}));
    install(&machine);
    let kills: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let mut dice = Dice(20_261_121);
    let mut runs: BTreeMap<String, (&str, &str)> = BTreeMap::new();
    let mut open: Vec<String> = Vec::new();
    let (began, mut restarts) = (Instant::now(), Duration::ZERO);
    for _ in 0..kills {
        let starting = Instant::now();
        let server = machine.serve();
        restarts += starting.elapsed();
        open.retain(|id| !is_final(&server.run(id)));
        for _ in 0..NEW.min(RUNS - open.len()) {
            let (team, end) = TEAMS[usize::try_from(dice.roll(4)).unwrap()];
            let id = server.start_run(&json!({"team": format!("@local/{team}")}));
            runs.insert(id.clone(), (team, end));
            open.push(id);
        }
        for id in &open {
            if runs[id].0 == "long" && dice.roll(3) == 0 {
                // It may have ended in between, or be cancelled already.
                let answer = server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({}));
                assert!([202, 409].contains(&answer.status), "{answer:?}");
            }
        }
        std::thread::sleep(Duration::from_micros(dice.roll(250_000)));
        server.kill();
    }
    let server = machine.serve();
    for id in &open {
        if runs[id].0 == "long" {
            server.post(&format!("/api/v1/runs/{id}/cancel"), &json!({}));
        }
    }
    for id in &open {
        server.ended(id);
    }
    println!(
        "{kills} kills, {} runs, {:?}; restart {:?} each",
        runs.len(),
        began.elapsed(),
        restarts / u32::try_from(kills.max(1)).unwrap()
    );
    // Read once: there are hundreds of runs.
    let at_work = processes();
    for (id, (team, end)) in &runs {
        check(&server, &machine, &at_work, id, team, end);
    }
    assert!(runs.len() > RUNS);
}
