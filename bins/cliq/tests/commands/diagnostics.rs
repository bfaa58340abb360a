//! Diagnostics for developers and operators (docs/diagnostics.md): log lines on standard error, traces over OTLP.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use cliq_testkit::env::{Env, done, python_with};
use serde_json::Value;

const TEAM: &str = "workflow:
  phases:
    - {name: build, type: exec, commands: [{name: compile, run: 'true'}, {name: lint, run: 'true'}]}
    - {name: work, type: standard, agent: x, model: big, depends_on: [build]}
    - {name: check, type: gate, agent: rules, depends_on: [work], commands: [{name: tests, run: 'test -f fine || { touch fine; false; }'}]}
";
const AGENT: &str = "ok\nsay '\"status\":\"progress\",\"usage\":{\"tokens_in\":10,\"tokens_out\":2,\"cost_usd\":0.5}'\ncomplete\n";

fn env() -> Env {
    Env::new(TEAM, &[("x", AGENT)])
}

#[test]
fn nothing_is_said_unless_asked_for() {
    let env = env();
    let quiet = env.cliq(["run", "--headless"]).expect(0);
    assert!(!quiet.stderr.contains("INFO") && !quiet.stdout.contains("INFO"), "{}", quiet.stderr);
    let loud = env.cliq(["run", "-f", "--headless", "-v"]).expect(0);
    assert!(loud.stderr.contains("INFO") && loud.stderr.contains("phase work ended"), "{}", loud.stderr);
    assert!(!loud.stdout.contains("INFO"), "{}", loud.stdout);
    assert!(!loud.stderr.contains('\u{1b}'), "no colour where there is no terminal");
}

#[test]
fn log_lines_by_filter_and_as_json() {
    let env = env();
    let run = |variables: &[(&str, &str)]| {
        let mut command = env.command(["run", "-f", "--headless"]);
        done(&command.envs(variables.iter().copied()).output().expect("it starts"))
    };
    let lines = run(&[("CLIQ_LOG", "info"), ("CLIQ_LOG_FORMAT", "json")]).expect(0).stderr;
    let lines: Vec<Value> = lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let ended = lines.iter().find(|line| line["message"] == "phase work ended").expect("a line");
    assert_eq!((&ended["level"], &ended["outcome"]), (&"INFO".into(), &"completed".into()));
    assert_eq!(ended["span"]["phase"], "work");
    assert!(!run(&[("CLIQ_LOG", "error")]).expect(0).stderr.contains("INFO"));
    assert!(run(&[("CLIQ_LOG", "cliq_orchestrator=trace")]).expect(0).stderr.contains("effect"));
    run(&[("CLIQ_LOG", "cliq=loud")]).expect(2).says("CLIQ_LOG").says("is not a filter");
}

/// A collector, and the spans that it has decoded.
struct Collector {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    endpoint: String,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    fn start(status: &str) -> Option<Self> {
        let python = python_with("opentelemetry.proto.collector.trace.v1.trace_service_pb2")?;
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/commands/otlp_collector.py");
        let mut child =
            Command::new(python).arg(script).arg(status).stdout(Stdio::piped()).spawn().expect("python");
        let mut lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut port = String::new();
        lines.read_line(&mut port).expect("its port");
        Some(Self { child, lines, endpoint: format!("http://127.0.0.1:{}", port.trim()) })
    }

    /// The spans up to that of the run, which ends last.
    fn spans(&mut self) -> Vec<Value> {
        let mut spans: Vec<Value> = Vec::new();
        let is_run = |span: &Value| span["name"].as_str().is_some_and(|name| name.starts_with("run "));
        while !spans.last().is_some_and(is_run) {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("a line") > 0, "the collector ended");
            spans.push(serde_json::from_str(&line).expect("json"));
        }
        spans
    }
}

#[test]
fn a_run_is_a_trace() {
    let Some(mut collector) = Collector::start("200") else { return };
    let env = env();
    let mut command = env.command(["run", "--headless"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint);
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-key=sk-otlp-secret");
    let said = done(&command.output().expect("it starts")).expect(0);
    let spans = collector.spans();
    let run = spans.last().expect("the run");
    assert_eq!(run["path"], "/v1/traces");
    assert_eq!(
        (&run["type"], &run["service"]["stringValue"]),
        (&"application/x-protobuf".into(), &"cliq".into())
    );
    assert_eq!(run["key"], "sk-otlp-secret");
    assert!(!format!("{}{}", said.stdout, said.stderr).contains("sk-otlp-secret"));
    assert_eq!((&run["parent"], &run["attributes"]["outcome"]), (&"".into(), &"COMPLETED".into()));
    assert_eq!(run["attributes"]["run_id"], env.run_id());
    assert!(spans.iter().all(|span| span["trace"] == run["trace"]), "one trace");
    let named = |name: &str| spans.iter().filter(|span| span["name"] == name).collect::<Vec<_>>();
    let work = named("phase work");
    // The gate sends the work back once: two activations of the phase, two evaluations of the gate.
    assert_eq!(
        (work.len(), named("phase check").len(), named("command tests").len()),
        (2, 2, 2),
        "{spans:#?}"
    );
    assert!(work.iter().all(|span| span["parent"] == run["id"]));
    let attributes = &work[0]["attributes"];
    let of = |key: &str| attributes[key].clone();
    assert_eq!((of("agent"), of("outcome"), of("tokens_in")), ("x".into(), "completed".into(), "10".into()));
    assert_eq!((of("cost_usd"), of("model"), of("team")), (0.5.into(), "big".into(), "@local/test".into()));
    assert_eq!(named("agent x")[0]["parent"], work[0]["id"]);
    assert_eq!(named("phase check")[0]["attributes"]["outcome"], "routed");
    assert_eq!(named("command compile")[0]["attributes"]["passed"], true);
}

#[test]
fn a_collector_that_is_away_or_refuses_does_no_harm() {
    let env = env();
    let run = |endpoint: &str| {
        let mut command = env.command(["run", "-f", "--headless"]);
        done(&command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint).output().expect("it starts")).expect(0);
    };
    run("http://127.0.0.1:9");
    if let Some(collector) = Collector::start("500") {
        run(&collector.endpoint);
    }
}
