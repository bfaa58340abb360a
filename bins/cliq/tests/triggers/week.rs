//! A week of schedules: two servers on one PostgreSQL, one of them 40 seconds ahead, kills, and clocks that are set by hours and days, at the
//! end of daylight saving time. Each tick fires once.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use cliq_testkit::machine::{Machine, Running, wait_for};
use cliq_testkit::{Clock, PostgresServer};
use serde_json::{Value, json};

use crate::triggers::sender::{firings, write};

/// Tuesday, 2026-10-20 00:00:30 UTC. Daylight saving time ends on the 25th.
const START: i64 = 1_792_454_430;
const WEEK: i64 = 7 * 86_400;
const STEPS: usize = 45;

const TRIGGERS: &str = r#"
  - {name: half-hourly, schedule: {cron: "15,45 * * * *", catch_up: all}, when: "false", team: "@local/quick"}
  - {name: hourly, schedule: {cron: "0 * * * *", timezone: Europe/Berlin, catch_up: all}, when: "false", team: "@local/quick"}
  - {name: daily, schedule: {cron: "30 2 * * *", timezone: Europe/Berlin, catch_up: all}, team: "@local/quick"}
  - {name: weekly, schedule: {cron: "0 12 * * SUN", catch_up: all}, team: "@local/quick"}
"#;

/// Servers with clocks that can be set.
struct Clocks {
    machines: Vec<Machine>,
    files: Vec<PathBuf>,
    running: Vec<Option<Running>>,
}

impl Clocks {
    /// Sets the clocks to `seconds` after the start of the week. The second one is 40 seconds ahead.
    fn set(&self, seconds: i64) {
        let real = crate::triggers::sender::now();
        for (n, file) in self.files.iter().enumerate() {
            let ahead = if n == 1 { 40 } else { 0 };
            let offset = START + seconds + ahead - real;
            // In one step: a server reads the file at any moment.
            let new = file.with_extension("new");
            std::fs::write(&new, format!("{offset:+}s\n")).unwrap();
            std::fs::rename(&new, file).unwrap();
        }
    }

    fn any(&self) -> &Running {
        self.running.iter().flatten().next().unwrap()
    }
}

fn expected() -> BTreeMap<&'static str, Vec<String>> {
    let time = |seconds: i64| {
        let at = cliq_protocol::Timestamp::from_unix_millis((START - 30 + seconds) * 1000);
        at.to_string().replace(".000Z", "Z")
    };
    let each =
        |first: i64, step: i64| (0..).map(move |n| first + n * step).take_while(|at| *at < WEEK).map(time);
    // 02:30 in Berlin is 00:30 UTC until the 25th, when it comes twice and the first counts, and 01:30 UTC after that.
    let daily = (0..7).map(|day| time(day * 86_400 + if day < 6 { 1800 } else { 5400 }));
    BTreeMap::from([
        ("half-hourly", each(900, 1800).collect()),
        // The first tick after the start is that of the second hour.
        ("hourly", each(3600, 3600).chain([time(WEEK)]).collect()),
        ("daily", daily.collect()),
        ("weekly", vec![time(5 * 86_400 + 43_200)]),
    ])
}

#[test]
fn each_tick_of_a_week_fires_once() {
    let Some(database) = PostgresServer::start() else { return };
    let url = database.database();
    let mut of_machines = Vec::new();
    let mut clocks = Clocks { machines: Vec::new(), files: Vec::new(), running: Vec::new() };
    let shared = tempfile::tempdir().unwrap();
    for n in 0..2 {
        let file = shared.path().join(format!("clock-{n}"));
        let settings = json!({
            "database": {"url": url},
            "server": {"lease": "2s", "shared_workspaces": true, "workspace_root": shared.path().join("w"), "retention": "3650d"},
        });
        // One that tells the time of the file, whenever it is asked.
        let variables = [
            ("FAKETIME_TIMESTAMP_FILE", file.to_str().unwrap()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ];
        let Some(clock) = Clock::start(&variables) else {
            return cliq_testkit::not_run("there is no faketime");
        };
        let machine =
            clock.environment().fold(Machine::new().settings(&settings), |machine, (name, value)| {
                machine.environment(name, value)
            });
        of_machines.push(clock);
        machine.chain("quick", &["true"]);
        write(&machine, TRIGGERS);
        clocks.machines.push(machine);
        clocks.files.push(file);
    }
    clocks.set(0);
    for machine in &clocks.machines {
        clocks.running.push(Some(machine.serve()));
    }
    let dice = fastrand::Rng::with_seed(20_261_125);
    let mut dice = dice;
    let mut now: i64 = 0;
    let mut kills = 0;
    for step in 0..STEPS {
        // Forward by hours on the average, sometimes back by up to two days; never past the week.
        let goal = WEEK * (step as i64 + 1) / STEPS as i64;
        now =
            if dice.u8(..5) == 0 { (now - dice.i64(600..172_800)).max(0) } else { goal - dice.i64(0..7200) };
        clocks.set(now.clamp(0, WEEK - 120));
        std::thread::sleep(Duration::from_millis(dice.u64(20..400)));
        if dice.u8(..3) == 0 {
            let n = dice.usize(..2);
            clocks.running[n].take().unwrap().kill();
            clocks.running[n] = Some(clocks.machines[n].serve());
            kills += 1;
        }
    }
    let expected = expected();
    // The end of the week, 20 seconds after its last tick for both.
    clocks.set(WEEK - 30 + 20);
    let found: BTreeMap<&str, Vec<Value>> = expected
        .iter()
        .map(|(name, ticks)| {
            let last = format!("tick {}", ticks.last().unwrap());
            let found = wait_for(&format!("the last tick of {name} fires"), || {
                let found = firings(clocks.any(), name);
                let is_there = found.iter().any(|firing| firing["cause"] == last);
                let is_decided = found.iter().all(|firing| firing["state"] != "pending");
                (is_there && is_decided).then_some(found)
            });
            (*name, found)
        })
        .collect();
    let mut all = 0;
    for (name, ticks) in &expected {
        let mut causes: Vec<&str> =
            found[name].iter().map(|firing| firing["cause"].as_str().unwrap()).collect();
        causes.sort_unstable();
        let ticks: Vec<String> = ticks.iter().map(|tick| format!("tick {tick}")).collect();
        assert_eq!(causes, ticks, "{name}");
        all += ticks.len();
    }
    assert_eq!(all, 512);
    assert!(kills > 5, "{kills}");
    let runs = found["daily"].iter().chain(&found["weekly"]).map(|firing| firing["run_id"].as_str().unwrap());
    let mut ids: Vec<&str> = runs.collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 8, "a run each");
    for id in ids {
        assert_eq!(clocks.any().ended(id)["state"], "completed");
    }
}
