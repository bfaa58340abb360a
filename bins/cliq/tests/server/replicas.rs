//! Several servers on one PostgreSQL, with the same workspaces: each run is done once and to its end, also when a server is killed, paused or
//! cut off.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running, is_final, wait_for};
use cliq_testkit::wire::Wire;
use cliq_testkit::{Clock, PostgresServer};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::server::parking::{approve, asking, parked};

const LEASE: Duration = Duration::from_secs(2);

/// Servers that share database and workspaces. One that is down is `None`.
struct Replicas {
    machines: Vec<Machine>,
    wires: Vec<Wire>,
    running: Vec<Option<Running>>,
    workspaces: PathBuf,
    _shared: tempfile::TempDir,
    _clock: Option<Clock>,
}

impl Replicas {
    fn start(database: &PostgresServer, count: usize) -> Self {
        let shared = tempfile::tempdir().unwrap();
        let workspaces = shared.path().canonicalize().unwrap().join("workspaces");
        fs::create_dir_all(&workspaces).unwrap();
        let url = database.database();
        let clock = Clock::start(&[("FAKETIME", "-7m")]);
        let (mut machines, mut wires, mut running) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..count {
            let wire = Wire::to(database.port());
            let url = url.replace(&format!(":{}/", database.port()), &format!(":{}/", wire.port));
            let mut machine = Machine::new().settings(&json!({
                "database": {"url": url},
                "server": {"lease": "2s", "shared_workspaces": true, "workspace_root": workspaces, "max_runs": 3},
            }));
            // The clock of one is wrong by minutes.
            if n == 1
                && let Some(clock) = &clock
            {
                machine = clock
                    .environment()
                    .fold(machine, |machine, (name, value)| machine.environment(name, value));
            }
            machine.chain(
                "steps",
                &["echo 0 >> ran; sleep 0.4", "echo 1 >> ran; sleep 0.6", "echo 2 >> ran; sleep 0.3"],
            );
            machine.chain("long", &["echo begun > begun; sleep 62.5"]);
            machine.team("ask", &asking("{reviewer: ann}"));
            running.push(Some(machine.serve()));
            machines.push(machine);
            wires.push(wire);
        }
        Self { machines, wires, running, workspaces, _shared: shared, _clock: clock }
    }

    fn any(&self) -> &Running {
        self.running.iter().flatten().next().unwrap()
    }

    fn pid(&self, n: usize) -> Pid {
        let record: Value =
            serde_json::from_slice(&fs::read(self.machines[n].home.join("server.json")).unwrap()).unwrap();
        Pid::from_raw(i32::try_from(record["pid"].as_i64().unwrap()).unwrap()).unwrap()
    }

    /// Each phase of a run was executed once, and each event is stored once.
    fn check(&self, id: &str) {
        let server = self.any();
        let run = wait_for("the run ends", || {
            let answer = server.get(&format!("/api/v1/runs/{id}"));
            // The database may have been away for a moment.
            let run = (answer.status == 200).then(|| answer.json())?;
            is_final(&run).then_some(run)
        });
        let events = server.events(id);
        assert_eq!(run["state"], "completed", "{run}\n{events:#?}");
        let ran = fs::read_to_string(self.workspaces.join(id).join("ran")).unwrap();
        assert_eq!(ran, "0\n1\n2\n", "it ran once: {events:#?}");
        let numbers: Vec<i64> = events.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (1..=numbers.len() as i64).collect::<Vec<_>>());
        let count = |kind: &str| events.iter().filter(|(_, event)| event["event"] == kind).count();
        assert_eq!((count("run_finished"), count("run_started")), (1, 1), "{events:#?}");
        let done: Vec<&str> = events
            .iter()
            .filter(|(_, event)| event["event"] == "phase_completed")
            .map(|(_, event)| event["phase"].as_str().unwrap())
            .collect();
        assert_eq!(done, ["p0", "p1", "p2"]);
    }
}

#[test]
fn any_of_them_starts_shows_and_cancels_runs_of_all() {
    let Some(database) = PostgresServer::start() else { return };
    let replicas = Replicas::start(&database, 2);
    let (one, other) = (replicas.running[0].as_ref().unwrap(), replicas.running[1].as_ref().unwrap());
    // More than one of them has places for.
    let ids: Vec<String> = (0..5).map(|_| one.start_run(&json!({"team": "@local/steps"}))).collect();
    // A stream at the one that does not have the run.
    let mut seen = Vec::new();
    other.follow(&ids[0], None, |frame| {
        seen.push(frame.id);
        true
    });
    let last = seen.iter().flatten().max().copied();
    ids.iter().for_each(|id| replicas.check(id));
    assert_eq!(last, other.run(&ids[0])["last_event"].as_i64(), "the stream went on to the end");
    let id = one.start_run(&json!({"team": "@local/long"}));
    let begun = replicas.workspaces.join(&id).join("begun");
    wait_for("the phase works", || begun.exists().then_some(()));
    for server in [one, other] {
        wait_for("its phases are told", || {
            (server.run(&id)["phases"][0]["status"] == "running").then_some(())
        });
    }
    other.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).expect(202);
    assert_eq!(one.ended(&id)["state"], "cancelled");
}

#[test]
fn one_that_dies_sleeps_or_is_cut_off_loses_nothing() {
    let Some(database) = PostgresServer::start() else { return };
    let mut replicas = Replicas::start(&database, 3);
    let rounds = std::env::var("CLIQ_TEST_REPLICAS").ok().and_then(|n| n.parse().ok()).unwrap_or(6_u64);
    let seed = std::env::var("CLIQ_TEST_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(7_u64);
    let mut state = seed;
    // A generator of numbers that look random, and are the same for the same seed.
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..rounds {
        let ids: Vec<String> = (0..4 + random(4))
            .map(|_| {
                let n = usize::try_from(random(3)).unwrap();
                replicas.running[n].as_ref().unwrap().start_run(&json!({"team": "@local/steps"}))
            })
            .collect();
        std::thread::sleep(Duration::from_millis(random(1200)));
        let n = usize::try_from(random(3)).unwrap();
        match random(4) {
            0 => replicas.running[n].take().unwrap().kill(),
            1 => {
                let pid = replicas.pid(n);
                kill_process(pid, Signal::STOP).unwrap();
                std::thread::sleep(LEASE + Duration::from_millis(500 + random(1500)));
                kill_process(pid, Signal::CONT).unwrap();
            }
            2 => {
                replicas.wires[n].cut();
                std::thread::sleep(Duration::from_millis(500 + random(3000)));
                replicas.wires[n].mend();
            }
            _ => {
                kill_process(replicas.pid(n), Signal::TERM).unwrap();
                assert!(replicas.running[n].take().unwrap().ends_well());
            }
        }
        if replicas.running[n].is_none() {
            std::thread::sleep(Duration::from_millis(random(3500)));
            replicas.running[n] = Some(replicas.machines[n].serve());
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        for id in &ids {
            assert!(Instant::now() < deadline, "round {round}, seed {seed}");
            replicas.check(id);
        }
    }
}

/// Decisions come to one server, which dies with them; each run that waits continues once.
#[test]
fn one_that_dies_as_it_wakes_runs_loses_none_and_wakes_none_twice() {
    let Some(database) = PostgresServer::start() else { return };
    let mut replicas = Replicas::start(&database, 2);
    for round in 0..3_u64 {
        let ids: Vec<String> =
            (0..5).map(|_| replicas.any().start_run(&json!({"team": "@local/ask"}))).collect();
        ids.iter().for_each(|id| drop(parked(replicas.any(), id)));
        let dying = replicas.running[0].take().unwrap();
        ids.iter().for_each(|id| approve(&dying, id));
        std::thread::sleep(Duration::from_millis(round * 60));
        dying.kill();
        for id in &ids {
            let run = replicas.any().ended(id);
            let events = replicas.any().events(id);
            let count = |kind: &str| events.iter().filter(|(_, event)| event["event"] == kind).count();
            let read =
                |name: &str| fs::read_to_string(replicas.workspaces.join(id).join(name)).unwrap_or_default();
            assert_eq!(run["state"], "completed", "{run}\n{events:#?}");
            assert_eq!(
                (read("checks"), read("after")),
                ("checked\n".into(), "passed\n".into()),
                "{events:#?}"
            );
            assert_eq!(
                (count("run_woken"), count("verdict"), count("run_finished")),
                (1, 1, 1),
                "{events:#?}"
            );
        }
        replicas.running[0] = Some(replicas.machines[0].serve());
    }
}
