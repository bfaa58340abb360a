//! Figures for Prometheus, in its text format.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use cliq_model::RunCounts;
use cliq_supervisor::Counters;

/// Counts of what the server did.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by class of status, from 1xx to 5xx.
    responses: [AtomicU64; 5],
    /// Microseconds that requests took, summed; streams count until their headers.
    request_micros: AtomicU64,
    connections: AtomicU64,
    refused_connections: AtomicU64,
    /// Push notifications that were taken, and that were not.
    pushes: [AtomicU64; 2],
}

impl Metrics {
    pub(crate) fn responded(&self, status: u16, micros: u64) {
        let class = usize::from(status / 100).clamp(1, 5) - 1;
        self.responses[class].fetch_add(1, Ordering::Relaxed);
        self.request_micros.fetch_add(micros, Ordering::Relaxed);
    }

    pub(crate) fn connection_opened(&self) {
        self.connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn connection_refused(&self) {
        self.refused_connections.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn push_attempted(&self, delivered: bool) {
        self.pushes[usize::from(!delivered)].fetch_add(1, Ordering::Relaxed);
    }

    /// The figures as text.
    pub(crate) fn render(
        &self,
        runs: &RunCounts,
        supervisor: &Counters,
        subscribers: usize,
        up_seconds: u64,
    ) -> String {
        let mut out = String::new();
        let mut family = |name: &str, kind: &str, help: &str, rows: &[(String, u64)]| {
            let _ = writeln!(out, "# HELP cliq_{name} {help}\n# TYPE cliq_{name} {kind}");
            for (labels, value) in rows {
                let _ = writeln!(out, "cliq_{name}{labels} {value}");
            }
        };
        let one = |value: u64| vec![(String::new(), value)];
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let by_state: Vec<_> =
            runs.iter().map(|(state, n)| (format!("{{state=\"{}\"}}", state.as_str()), *n)).collect();
        family("runs", "gauge", "Runs in the store, by state.", &by_state);
        family(
            "runs_started_total",
            "counter",
            "Orchestrators that this server started.",
            &one(supervisor.runs_started()),
        );
        family(
            "run_events_total",
            "counter",
            "Events that this server stored.",
            &one(supervisor.events_stored()),
        );
        let pushes: Vec<_> = ["delivered", "failed"]
            .iter()
            .zip(&self.pushes)
            .map(|(result, n)| (format!("{{result=\"{result}\"}}"), load(n)))
            .collect();
        family("push_attempts_total", "counter", "Push notifications of A2A, by result.", &pushes);
        family("event_subscribers", "gauge", "Open streams of events.", &one(subscribers as u64));
        let classes = (1..).zip(&self.responses);
        let responses: Vec<_> =
            classes.map(|(class, n)| (format!("{{class=\"{class}xx\"}}"), load(n))).collect();
        family("http_responses_total", "counter", "Responses, by class of status.", &responses);
        let micros = load(&self.request_micros);
        family(
            "http_request_microseconds_total",
            "counter",
            "Time of requests until their headers.",
            &one(micros),
        );
        family("connections", "gauge", "Open connections.", &one(load(&self.connections)));
        let refused = load(&self.refused_connections);
        family("connections_refused_total", "counter", "Connections above the limit.", &one(refused));
        family("up_seconds", "gauge", "Seconds since the server started.", &one(up_seconds));
        out
    }
}
