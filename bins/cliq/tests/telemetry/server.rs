//! Spans and figures of a server, and those of the runs that it starts.

use std::time::{Duration, Instant};

use cliq_testkit::machine::{Machine, Running, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::collector::{Collector, named};
use crate::server::parking::approve;

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";
/// Kind of a span in the protocol: that of a server.
const SERVER: u64 = 2;

fn machine(collector: &Collector) -> Machine {
    let machine = Machine::new()
        .environment("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint)
        .environment("OTEL_BSP_SCHEDULE_DELAY", "100")
        .environment("OTEL_METRIC_EXPORT_INTERVAL", "300");
    machine.chain("quick", &["true"]);
    machine
}

/// Waits until the receiver has a number of spans with a name.
#[track_caller]
fn arrived(collector: &Collector, name: &str, count: usize) -> Vec<Value> {
    wait_for(name, || {
        let spans = collector.all("span");
        let found: Vec<Value> = named(&spans, name).into_iter().cloned().collect();
        (found.len() >= count).then_some(found)
    })
}

fn traced(server: &Running, path: &str, body: &Value) -> Value {
    let token = format!("Bearer {}", server.token);
    let context = format!("00-{TRACE}-{CALLER}-01");
    let headers = [
        ("authorization", token.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("traceparent", &context),
    ];
    server.send("POST", path, &headers, Some(&body.to_string())).expect(201).json()
}

#[test]
fn a_run_is_part_of_the_request_that_started_it() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let machine = machine(&collector);
    let server = machine.serve();
    let body = json!({"team": "@local/quick"});
    let id = traced(&server, "/api/v1/runs", &body)["id"].as_str().unwrap().to_owned();
    server.ended(&id);
    let request = arrived(&collector, "POST /api/v1/runs", 1).remove(0);
    assert_eq!((&request["trace"], &request["parent"]), (&json!(TRACE), &json!(CALLER)));
    assert_eq!((&request["kind"], &request["resource"]["service.name"]), (&json!(SERVER), &json!("cliq")));
    assert_eq!(request["attributes"]["http.response.status_code"], 201);
    let run = arrived(&collector, "invoke_workflow @local/quick", 1).remove(0);
    assert_eq!((&run["trace"], &run["parent"]), (&json!(TRACE), &request["id"]));
    assert_eq!(server.run(&id)["trace_id"], TRACE);
    // Without a caller the request is the root.
    let id = server.start_run(&body);
    server.ended(&id);
    let request = arrived(&collector, "POST /api/v1/runs", 2).remove(1);
    let run = arrived(&collector, "invoke_workflow @local/quick", 2).remove(1);
    assert_eq!((&request["parent"], &run["parent"]), (&json!(""), &request["id"]));
    assert_eq!(server.run(&id)["trace_id"], run["trace"]);
    // A request that fails in the client's way is no failure of the server, and one that reads has no span.
    server.post("/api/v1/runs", &json!({"team": "@local/none"})).expect(409);
    let refused = arrived(&collector, "POST /api/v1/runs", 3).remove(2);
    assert_eq!((&refused["status"], &refused["attributes"]["error.type"]), (&json!(0), &json!(null)));
    let spans = collector.all("span");
    assert!(spans.iter().all(|span| !span["name"].as_str().unwrap().starts_with("GET")), "{spans:#?}");
}

#[test]
fn a_call_over_mcp_is_part_of_the_trace_that_its_message_names() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let machine = machine(&collector);
    let server = machine.serve();
    let token = format!("Bearer {}", server.token);
    let mut headers = vec![
        ("authorization", token.as_str()),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
    ];
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = server.send("POST", "/mcp", &headers, Some(&hello.to_string())).expect(200);
    let session = answer.header("mcp-session-id").to_owned();
    headers.push(("mcp-session-id", &session));
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    server.send("POST", "/mcp", &headers, Some(&ready.to_string())).expect(202);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "team_local_quick",
        "arguments": {"wait": true}, "_meta": {"traceparent": format!("00-{TRACE}-{CALLER}-01")}}});
    let answer = server.send("POST", "/mcp", &headers, Some(&call.to_string())).expect(200);
    assert!(answer.body.contains("completed"), "{}", answer.body);
    let span = arrived(&collector, "tools/call team_local_quick", 1).remove(0);
    assert_eq!(
        (&span["trace"], &span["parent"], &span["kind"]),
        (&json!(TRACE), &json!(CALLER), &json!(SERVER))
    );
    assert_eq!(span["attributes"]["mcp.method.name"], "tools/call");
    let run = arrived(&collector, "invoke_workflow @local/quick", 1).remove(0);
    assert_eq!((&run["trace"], &run["parent"]), (&json!(TRACE), &span["id"]));
    assert_eq!(named(&collector.all("span"), "POST /mcp").len(), 0, "messages of the protocol have no spans");
}

/// Value of a row of `/metrics`.
fn figure(server: &Running, row: &str) -> Option<f64> {
    let text = server.get("/metrics").expect(200).body;
    text.lines().find_map(|line| line.strip_prefix(row)?.strip_prefix(' ')?.parse().ok())
}

#[test]
fn figures_of_runs_are_counted_once_over_waits_and_restarts() {
    let Some(collector) = Collector::start("200", "0") else { return };
    let machine = machine(&collector);
    machine.team(
        "asks",
        "workflow:\n  phases:\n    - {name: first, type: exec, commands: [{name: c, run: 'true'}]}\n    - {name: approval, type: hug, depends_on: [first], review: {reviewer: ann}}\n",
    );
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/asks"}));
    wait_for("it waits", || (server.run(&id)["state"] == "waiting").then_some(()));
    let finished = "cliq_runs_finished_total{run_outcome=\"completed\",gen_ai_workflow_name=\"@local/asks\"}";
    assert_eq!(figure(&server, finished), None);
    assert_eq!(figure(&server, "cliq_queue_wait_seconds_count"), Some(1.0));
    assert_eq!(figure(&server, "cliq_queue_length"), Some(0.0));
    assert_eq!(figure(&server, "cliq_signals{signal_status=\"pending\"}"), Some(0.0));
    approve(&server, &id);
    assert_eq!(server.ended(&id)["state"], "completed");
    wait_for("its figures", || figure(&server, finished).map(|count| assert!(count == 1.0)));
    assert_eq!(figure(&server, "cliq_review_wait_seconds_count{review_is_question=\"false\"}"), Some(1.0));
    let passed = "cliq_gate_verdicts_total{phase_name=\"approval\",gate_verdict=\"pass\"}";
    assert_eq!(figure(&server, passed), Some(1.0));
    // A run that cannot begin has ended too.
    machine.team("missing", "tools: [no-such-program]\nworkflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: 'true'}]}\n");
    let id = server.start_run(&json!({"team": "@local/missing"}));
    assert_eq!(server.ended(&id)["state"], "failed");
    let failed = "cliq_runs_finished_total{run_outcome=\"failed\",gen_ai_workflow_name=\"@local/missing\"}";
    wait_for("its figure", || figure(&server, failed).map(|count| assert!(count == 1.0)));
    // A receiver has the figures of the run from the run alone, and those of the server from the server.
    let deadline = Instant::now() + Duration::from_secs(30);
    let pid = Pid::from_raw(i32::try_from(server.pid()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert!(server.ends_well());
    let instances = |metric: &str| {
        let points = collector.all("point");
        let of = points.iter().filter(|point| point["metric"] == metric);
        let mut all: Vec<String> =
            of.map(|point| point["resource"]["service.instance.id"].to_string()).collect();
        all.sort();
        all.dedup();
        all
    };
    while instances("cliq.runs.finished").is_empty() {
        assert!(Instant::now() < deadline, "{:#?}", collector.all("point"));
        std::thread::sleep(Duration::from_millis(50));
    }
    let (of_run, of_server) = (instances("cliq.runs.finished"), instances("cliq.runs.started"));
    assert_eq!((of_run.len(), of_server.len()), (1, 1));
    assert_ne!(of_run, of_server);
}

#[test]
fn pages_link_to_the_trace() {
    let machine = Machine::new()
        .settings(&json!({"telemetry": {"trace_url": "https://traces.example/x?id={trace_id}&tab=\"<a>\""}}));
    machine.chain("quick", &["true"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/quick"}));
    let run = server.ended(&id);
    let (trace, url) = (run["trace_id"].as_str().unwrap(), run["trace_url"].as_str().unwrap());
    assert_eq!(url, format!("https://traces.example/x?id={trace}&tab=\"<a>\""));
    let phase = run["phases"][0]["name"].as_str().unwrap();
    let page = server.get(&format!("/runs/{id}?phase={phase}")).expect(200).body;
    let link = format!("href=\"https://traces.example/x?id={trace}&amp;tab=&quot;&lt;a&gt;&quot;\"");
    assert_eq!(page.matches(&link).count(), 2, "of the run, and of the phase");
    // A trace that its caller does not record is nowhere.
    let token = format!("Bearer {}", server.token);
    let context = format!("00-{TRACE}-{CALLER}-00");
    let headers =
        [("authorization", token.as_str()), ("content-type", "application/json"), ("traceparent", &context)];
    let body = json!({"team": "@local/quick"}).to_string();
    let run = server.send("POST", "/api/v1/runs", &headers, Some(&body)).expect(201).json();
    let run = server.ended(run["id"].as_str().unwrap());
    assert_eq!((&run["trace_id"], &run["trace_url"]), (&json!(TRACE), &json!(null)));
    let refused = machine.cliq(&["settings", "set", "-g", "telemetry.trace_url", "https://traces.example/x"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("{trace_id}"));
}
