//! Servers of local models: what they are known to do otherwise.

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{APIS, TEAM, World, call, calls, says, script};

/// A session with parallel calls.
fn session() -> Value {
    script(&[
        calls(
            "I write.",
            &[
                call("write_file", json!({"path": "a.txt", "content": "a\n"})),
                call("write_file", json!({"path": "b.txt", "content": "b\n"})),
            ],
        ),
        calls("", &[call("run_command", json!({"command": "cat *.txt > all"}))]),
        says("Done."),
    ])
}

fn completes(agent: &str, behavior: Behavior, both: bool) -> World {
    let world = World::new(agent, TEAM, &session(), behavior);
    world.env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(world.env.read("all"), if both { "a\nb\n" } else { "a\n" }, "{behavior:?}");
    world
}

#[test]
fn usage_is_unknown_if_a_server_reports_none() {
    for (agent, _) in APIS {
        let world = completes(agent, Behavior { has_no_usage: true, ..Behavior::default() }, true);
        let ends: Vec<Value> =
            world.transcript("work.1").into_iter().filter(|entry| entry["type"] == "usage").collect();
        assert!(ends.len() == 3 && ends.iter().all(|end| end["usage"].is_null()), "{ends:?}");
        let status = world.env.cliq(["status", "--json"]).expect(0).json();
        assert!(status["usage"].is_null(), "{}", status["usage"]);
    }
}

#[test]
fn calls_in_text_are_calls() {
    for is_whole in [false, true] {
        let behavior = Behavior { writes_calls_as_text: true, is_whole, ..Behavior::default() };
        let world = completes("openai-api", behavior, true);
        let handoff = world.env.read_json(".cliq/channels/work--after/handoff.json");
        assert_eq!(handoff["text"], "Done.");
    }
}

#[test]
fn one_call_at_a_time_will_do() {
    completes("openai-api", Behavior { has_no_parallel_calls: true, ..Behavior::default() }, false);
}

#[test]
fn equal_and_missing_ids_are_replaced() {
    for behavior in [
        Behavior { has_equal_ids: true, ..Behavior::default() },
        Behavior { has_no_ids: true, ..Behavior::default() },
        Behavior { has_no_ids: true, is_whole: true, ..Behavior::default() },
    ] {
        let world = completes("openai-api", behavior, true);
        let entries = world.transcript("work.1");
        let mut ids: Vec<String> = entries
            .iter()
            .filter(|entry| entry["type"] == "tool_call")
            .map(|entry| entry["id"].as_str().unwrap().to_owned())
            .collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 3, "{behavior:?}: {ids:?}");
    }
    completes("gemini-api", Behavior { has_no_ids: true, ..Behavior::default() }, true);
}

#[test]
fn cut_streams_are_requested_again() {
    for (agent, _) in APIS {
        let world = completes(agent, Behavior { cuts_streams: true, ..Behavior::default() }, true);
        let entries = world.transcript("work.1");
        let retried =
            entries.iter().filter(|entry| entry["type"] == "error" && entry["is_retried"] == true).count();
        assert!(retried >= 1, "{entries:?}");
    }
}
