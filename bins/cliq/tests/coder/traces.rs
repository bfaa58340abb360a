//! Transcripts in other forms: events of spans, pages of the API, the terminal.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use cliq_scripted_model::Behavior;
use cliq_testkit::env::{done, python_with};
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

fn world() -> World {
    let replies = script(&[calls("I look.", &[call("list_files", json!({}))]), says("Done.")]);
    World::new("openai-api", TEAM, &replies, Behavior::default())
}

#[test]
fn spans_have_the_events_of_a_transcript() {
    let Some(python) = python_with("opentelemetry.proto.collector.trace.v1.trace_service_pb2") else {
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/commands/otlp_collector.py");
    let mut collector = Command::new(python).arg(script).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap()).lines().map(Result::unwrap);
    let endpoint = format!("http://127.0.0.1:{}", lines.next().unwrap());
    let world = world();
    let mut run = world.env.command(["run", "--headless"]);
    done(&run.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).output().unwrap()).expect(0);
    let spans = lines.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let agent = spans
        .take_while(|span| !span["name"].as_str().unwrap().starts_with("run "))
        .find(|span| span["name"] == "agent openai-api");
    let _ = collector.kill();
    let _ = collector.wait();
    let events = agent.unwrap()["events"].as_array().unwrap().clone();
    let names: Vec<&str> = events.iter().map(|event| event["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["message", "message", "message", "tool_call", "usage", "tool_result", "message", "usage"]
    );
    assert_eq!(events[3]["attributes"]["tool"], "list_files");
    assert!(events[4]["attributes"]["tokens_in"].as_str().unwrap().parse::<u64>().unwrap() > 100);
    assert!(!json!(events).to_string().contains("I look."), "texts stay here");
}

#[test]
fn transcripts_are_shown_on_the_terminal() {
    let world = world();
    world.env.cliq(["logs", "work", "--transcript"]).expect(0).says("no transcript");
    world.env.cliq(["run", "--headless"]).expect(0);
    let shown = world.env.cliq(["logs", "work", "--transcript"]).expect(0).stdout;
    for part in [
        "==> work.1.jsonl <==",
        "role and tools\n    You are the work agent.",
        "task\n    ## Requirements",
        "model\n    I look.",
        "list_files",
        "answered",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains('\u{1b}'), "no colour in a pipe");
    let lines = world.env.cliq(["logs", "work", "--transcript", "--json"]).expect(0).stdout;
    assert_eq!(lines, world.env.read(".cliq/transcripts/work.1.jsonl"));
    world.env.cliq(["logs", "--transcript"]).expect(2);
    world.env.cliq(["logs", "wrok", "--transcript"]).expect(2).says("did you mean `work`?");
}
