//! No update is lost or doubled: readers drop and come back at random, and the server is killed.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cliq_testkit::agent::{Caller, follow, is_last, machine};
use cliq_testkit::machine::{PATIENCE, wait_for};
use serde_json::json;

/// A number from the environment, for larger runs by hand.
fn size(name: &str, usual: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Numbers below a limit that look random, the same in each run of the test.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    }
}

/// All updates of a task by their numbers, from its beginning on.
fn log_of(url: &str, token: &str, id: &str) -> Vec<(String, serde_json::Value)> {
    wait_for("the log is whole", || {
        let mut log = Vec::new();
        follow(url, token, id, Some("0.0"), |(number, item)| {
            log.extend(number.map(|number| (number, item.clone())));
            !is_last(&item)
        });
        log.last().is_some_and(|(_, item)| is_last(item)).then_some(log)
    })
}

#[test]
fn readers_that_drop_while_the_server_is_killed() {
    let (tasks, readers, kills) =
        (size("CLIQ_TEST_TASKS", 8), size("CLIQ_TEST_READERS", 32), size("CLIQ_TEST_KILLS", 6));
    let machine = machine();
    let commands: Vec<String> = (0..12).map(|n| format!("sleep 0.{}", n % 4)).collect();
    machine.chain("many", &commands.iter().map(String::as_str).collect::<Vec<_>>());
    let server = machine.serve();
    machine.keep_port(&server);
    let (url, caller_token) = (server.url.clone(), cliq_testkit::agent::token(&machine, "reader", "run"));
    let ids: Vec<String> = {
        let caller = Caller { server: &server, token: caller_token.clone() };
        (0..tasks).map(|n| caller.start(&format!("m{n}"), "@local/many")).collect()
    };
    let done = AtomicUsize::new(0);
    let sequences: Mutex<Vec<(String, Vec<String>)>> = Mutex::default();
    let server = std::thread::scope(|scope| {
        for reader in 0..readers {
            let (id, url, token, done, sequences) =
                (&ids[reader % ids.len()], &url, &caller_token, &done, &sequences);
            scope.spawn(move || {
                let mut random = random(100 + reader as u64);
                let (mut seen, mut last, mut over) = (Vec::new(), "0.0".to_owned(), false);
                let deadline = std::time::Instant::now() + 4 * PATIENCE;
                while !over {
                    assert!(std::time::Instant::now() < deadline, "the reader does not come to an end");
                    let most = 1 + random(11);
                    let mut count = 0;
                    let from = last.clone();
                    follow(url, token, id, Some(&from), |(number, item)| {
                        let Some(number) = number else { return true };
                        last.clone_from(&number);
                        seen.push(number);
                        over = is_last(&item);
                        count += 1;
                        count < most && !over
                    });
                    if count == 0 {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
                sequences.lock().unwrap().push((id.clone(), seen));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let (mut random, mut server) = (random(7), server);
        for _ in 0..kills {
            std::thread::sleep(Duration::from_millis(random(400)));
            server.kill();
            server = machine.serve();
        }
        wait_for("all readers are at the end", || (done.load(Ordering::SeqCst) == readers).then_some(()));
        server
    });
    let logs: HashMap<&String, Vec<String>> = ids
        .iter()
        .map(|id| (id, log_of(&url, &caller_token, id).into_iter().map(|(number, _)| number).collect()))
        .collect();
    for (id, seen) in sequences.into_inner().unwrap() {
        assert_eq!(seen, logs[&id], "a reader of {id}");
    }
    let caller = Caller { server: &server, token: caller_token };
    for id in &ids {
        assert_eq!(caller.task(id)["status"]["state"], "TASK_STATE_COMPLETED");
    }
}

#[test]
fn a_stream_begins_with_the_task_and_ends_with_its_end() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/steps");
    let mut items = Vec::new();
    follow(&server.url, &caller.token, &id, None, |(number, item)| {
        items.push((number, item));
        true
    });
    assert!(items[0].0.is_none() && items[0].1["task"]["id"] == id.as_str(), "{items:?}");
    assert!(is_last(&items.last().unwrap().1));
    assert!(items[1..].iter().all(|(number, item)| number.as_deref() == number_in(item)), "{items:?}");
    // Readers at the same time, and a reader long after: the same updates.
    let log = log_of(&server.url, &caller.token, &id);
    assert!(
        log.ends_with(&items[1..].iter().map(|(n, i)| (n.clone().unwrap(), i.clone())).collect::<Vec<_>>())
    );
    // From the middle of the updates of one event.
    let middle = log.iter().position(|(number, _)| number.ends_with(".1")).unwrap();
    let mut rest = Vec::new();
    follow(&server.url, &caller.token, &id, Some(&log[middle].0), |(number, _)| {
        rest.extend(number);
        true
    });
    assert_eq!(rest, log[middle + 1..].iter().map(|(number, _)| number.clone()).collect::<Vec<_>>());
    // Ids that are none.
    for wrong in ["x", "1", "-1.0", "1.0.0", "99999999999999999999.0"] {
        let answer = caller.send(
            "GET",
            &format!("/a2a/rest/tasks/{id}:subscribe"),
            &[("a2a-version", "1.0"), ("last-event-id", wrong)],
            None,
        );
        assert_eq!(answer.status, 400, "{wrong}");
    }
}

fn number_in(item: &serde_json::Value) -> Option<&str> {
    let inner = item.get("statusUpdate").or_else(|| item.get("artifactUpdate"))?;
    inner["metadata"]["eventId"].as_str()
}

#[test]
fn a_stopped_server_ends_streams_and_waiting_calls() {
    let machine = machine();
    let server = machine.serve();
    let caller = Caller::new(&machine, &server);
    let id = caller.start("m1", "@local/slow");
    caller.works(&id);
    let params = json!({"message": cliq_testkit::agent::message("m1", "@local/slow")});
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| caller.ok("SendMessage", &params)["task"].clone());
        let (url, token, id) = (&server.url, &caller.token, &id);
        let streaming = scope.spawn(move || follow(url, token, id, None, |_| true));
        server.has_subscribers(2);
        machine.ok(&["server", "stop"]);
        assert_eq!(waiting.join().unwrap()["status"]["state"], "TASK_STATE_WORKING");
        streaming.join().unwrap();
    });
    let server = machine.serve();
    let caller = Caller { server: &server, token: caller.token };
    assert_eq!(caller.ok("CancelTask", &json!({"id": id}))["status"]["state"], "TASK_STATE_CANCELED");
}
