//! A receiver, and the spans, data points and log lines that it has decoded.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cliq_testkit::env::python_with;
use serde_json::Value;

/// Longest wait for something that is on its way.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Collector {
    child: Child,
    lines: Arc<Mutex<Vec<Value>>>,
    pub(crate) endpoint: String,
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Collector {
    /// Starts a receiver that answers with a status after a time in seconds.
    pub(crate) fn start(status: &str, delay: &str) -> Option<Self> {
        let python = python_with("opentelemetry.proto.collector.trace.v1.trace_service_pb2")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/telemetry/collector.py");
        let mut command = Command::new(python);
        let mut child = command.args([script, status, delay]).stdout(Stdio::piped()).spawn().expect("python");
        let mut reader = BufReader::new(child.stdout.take().expect("piped"));
        let mut port = String::new();
        reader.read_line(&mut port).expect("its port");
        let lines = Arc::new(Mutex::new(Vec::new()));
        let shared = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in reader.lines().map_while(Result::ok) {
                shared.lock().unwrap().push(serde_json::from_str(&line).expect("JSON"));
            }
        });
        Some(Self { child, lines, endpoint: format!("http://127.0.0.1:{}", port.trim()) })
    }

    /// Returns the items of a kind that were received up to now: `span`, `point` or `line`.
    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        self.catch_up();
        self.known(kind)
    }

    fn known(&self, kind: &str) -> Vec<Value> {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter_map(|line| line.get(kind).cloned()).collect()
    }

    /// Waits until the lines of all that the receiver has answered are read.
    fn catch_up(&self) {
        let (marks, deadline) = (self.known("mark").len(), Instant::now() + PATIENCE);
        let address = self.endpoint.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).expect("the receiver listens");
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").expect("sent");
        while self.known("mark").len() == marks {
            assert!(Instant::now() < deadline, "the receiver does not respond");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until the span of a run has arrived, which ends last, and returns all spans.
    pub(crate) fn spans(&self) -> Vec<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let spans = self.all("span");
            if spans.iter().any(|span| name(span).starts_with("invoke_workflow")) {
                return spans;
            }
            assert!(Instant::now() < deadline, "the span of the run has not come: {spans:#?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub(crate) fn name(span: &Value) -> &str {
    span["name"].as_str().expect("a name")
}

/// Spans with a name.
pub(crate) fn named<'a>(spans: &'a [Value], wanted: &str) -> Vec<&'a Value> {
    spans.iter().filter(|span| name(span) == wanted).collect()
}
