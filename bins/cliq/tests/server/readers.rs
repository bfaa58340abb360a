//! Readers of a run's events that drop and come back, while the server is killed: each gets each event once, in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cliq_testkit::machine::{Machine, Running, follow};
use serde_json::{Value, json};

const READERS: u64 = 12;
const KILLS: usize = 8;

#[test]
fn each_reader_gets_each_event_once() {
    let machine = Machine::new();
    machine.chain("steps", &["sleep 0.12"; 30]);
    let server = machine.serve();
    machine.keep_port(&server);
    let id = server.start_run(&json!({"team": "@local/steps"}));
    // A token that outlives the servers.
    let made: Value =
        serde_json::from_str(&machine.ok(&["server", "token", "create", "--label", "reader", "--json"]))
            .unwrap();
    let (url, token) = (server.url.clone(), made["token"].as_str().unwrap());
    let is_over = AtomicBool::new(false);
    let (server, readers): (Running, Vec<Vec<(i64, String)>>) = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..READERS)
            .map(|n| {
                let (url, id, is_over) = (&url, &id, &is_over);
                scope.spawn(move || {
                    let (mut seen, mut ended, mut patience) = (Vec::new(), false, n + 1);
                    while !ended && !is_over.load(Ordering::Relaxed) {
                        let last = seen.last().map(|(id, _): &(i64, String)| *id);
                        let mut left = patience % 9 + 1;
                        patience += 5;
                        follow(url, token, id, last, |frame| {
                            ended = frame.kind == "end";
                            seen.extend(frame.id.map(|id| (id, frame.data)));
                            left -= 1;
                            left > 0 && !ended
                        });
                        std::thread::sleep(Duration::from_millis(10));
                    }
                    seen
                })
            })
            .collect();
        let mut server = server;
        for _ in 0..KILLS {
            std::thread::sleep(Duration::from_millis(330));
            server.kill();
            server = machine.serve();
        }
        assert_eq!(server.ended(&id)["state"], "completed");
        let readers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        (server, readers)
    });
    let stored: Vec<(i64, Value)> = server.events(&id);
    for reader in readers {
        let read: Vec<(i64, Value)> =
            reader.into_iter().map(|(id, data)| (id, serde_json::from_str(&data).unwrap())).collect();
        assert_eq!(read, stored);
    }
}
