//! The server is killed under the load of senders: what was answered with 2xx is neither lost nor doubled.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::triggers::sender::{firings, github, machine_with};

/// `CLIQ_TEST_KILLS` sets another number.
const KILLS: usize = 20;
const SENDERS: usize = 4;

const TRIGGERS: &str = r#"
  - name: load
    webhook: { signature: github, secret: s }
    when: body.n % 25 == 0
    team: "@local/quick"
    inputs: { n: "$(body.n)" }
"#;
const QUICK: &str = "inputs: [{name: n, required: true}]
workflow: {phases: [{name: p, type: exec, commands: [{name: c, run: 'echo $(inputs.n) >> n'}]}]}
";

#[test]
fn answered_deliveries_survive_kills() {
    let kills: usize = std::env::var("CLIQ_TEST_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(KILLS);
    let machine =
        machine_with(TRIGGERS, json!({"server": {"sandbox": "off", "max_runs": 8, "rate_limit": 100_000}}));
    machine.team("quick", QUICK);
    let server = machine.serve();
    machine.keep_port(&server);
    let (url, next) = (server.url.clone(), Arc::new(AtomicU64::new(0)));
    let (answered, is_over) = (Arc::new(Mutex::new(BTreeSet::new())), Arc::new(AtomicBool::new(false)));
    let senders: Vec<_> = (0..SENDERS)
        .map(|_| {
            let (url, next, answered, is_over) =
                (url.clone(), Arc::clone(&next), Arc::clone(&answered), Arc::clone(&is_over));
            std::thread::spawn(move || {
                let agent: ureq::Agent = ureq::Agent::config_builder()
                    .http_status_as_error(false)
                    .timeout_global(Some(Duration::from_secs(10)))
                    .build()
                    .into();
                while !is_over.load(Ordering::SeqCst) {
                    let n = next.fetch_add(1, Ordering::SeqCst);
                    let body = json!({"n": n}).to_string();
                    // As a sender does that gets no response: the same delivery again.
                    for _ in 0..200 {
                        let mut request = agent.post(format!("{url}/hooks/load"));
                        for (name, value) in github("push", &format!("d{n}"), &body) {
                            request = request.header(name, value);
                        }
                        match request.send(body.as_bytes()) {
                            Ok(response) if response.status().is_success() => {
                                answered.lock().unwrap().insert(n);
                                break;
                            }
                            _ => std::thread::sleep(Duration::from_millis(20)),
                        }
                    }
                    std::thread::sleep(Duration::from_millis(15));
                }
            })
        })
        .collect();
    let mut server = Some(server);
    for _ in 0..kills {
        // A slow machine kills no server that has answered nothing since the last kill.
        let before = answered.lock().unwrap().len();
        cliq_testkit::machine::wait_for("a delivery is answered", || {
            (answered.lock().unwrap().len() > before).then_some(())
        });
        std::thread::sleep(Duration::from_micros(fastrand::u64(..150_000)));
        server.take().unwrap().kill();
        server = Some(machine.serve());
    }
    is_over.store(true, Ordering::SeqCst);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let server = server.unwrap();
    let answered = answered.lock().unwrap().clone();
    let found = cliq_testkit::machine::wait_for("all are decided", || {
        let found = firings(&server, "load");
        found.iter().all(|firing| firing["state"] != "pending").then_some(found)
    });
    let mut ids = BTreeSet::new();
    let mut runs = 0;
    for firing in &found {
        let n: u64 = firing["cause"].as_str().unwrap().strip_prefix("delivery d").unwrap().parse().unwrap();
        assert!(ids.insert(n), "delivery {n} has two firings");
        assert_eq!(firing["state"] == "started", n.is_multiple_of(25), "{firing}");
        if let Some(run) = firing["run_id"].as_str() {
            let run = server.ended(run);
            assert_eq!(run["inputs"]["n"], n.to_string(), "{run}");
            runs += 1;
        }
    }
    let lost: Vec<&u64> = answered.difference(&ids).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    let stored = server.get("/api/v1/runs?limit=200").expect(200).json()["runs"].as_array().unwrap().len();
    assert!(stored == runs || runs > 200, "{stored} runs, {runs} firings with one");
    println!("{kills} kills, {} deliveries answered, {} firings, {runs} runs", answered.len(), found.len());
    assert!(answered.len() >= kills && runs > 0);
}
