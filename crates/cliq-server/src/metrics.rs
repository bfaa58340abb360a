//! Figures for Prometheus, in its text format. Their definitions are those of telemetry (docs/telemetry.md).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use cliq_gateway::{SignalCounts, SignalStatus};
use cliq_model::{RunCounts, RunState};
use cliq_protocol::Timestamp;
use cliq_supervisor::Counters;
use cliq_telemetry::ProcessTelemetry;
use cliq_telemetry::metrics::{self as of, Label, Measurement, Metric, Registry};

/// Figures that others count.
#[derive(Debug)]
pub(crate) struct Present<'a> {
    /// Runs by state.
    pub(crate) runs: RunCounts,
    /// Signals by status.
    pub(crate) signals: SignalCounts,
    pub(crate) counters: &'a Counters,
    /// Number of open streams of events.
    pub(crate) subscribers: usize,
    pub(crate) up_seconds: u64,
    pub(crate) now: Timestamp,
}

/// Counts of what the server did.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Figures of the server, which it exports.
    of_server: Arc<Registry>,
    /// Figures of runs that rest, which they export themselves.
    of_runs: Registry,
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
    /// Returns figures that are exported by the telemetry, if there is one.
    pub(crate) fn new(telemetry: Option<&ProcessTelemetry>) -> Self {
        let of_server = telemetry.map(|telemetry| Arc::clone(&telemetry.registry)).unwrap_or_default();
        Self { of_server, ..Self::default() }
    }

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

    /// Records the time that a run waited for a slot.
    pub(crate) fn waited(&self, time: Duration) {
        self.of_server.record(&Measurement::new(&of::QUEUE_WAIT, time.as_secs_f64(), []));
    }

    /// Records the measurements of a run that rests.
    pub(crate) fn run_rests(&self, measurements: &[Measurement]) {
        measurements.iter().for_each(|measurement| self.of_runs.record(measurement));
    }

    /// Brings the figures of the server up to date.
    pub(crate) fn update(&self, present: &Present<'_>) {
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let label = |name: &'static str, value: &str| -> Vec<Label> { vec![(name, value.to_owned())] };
        for (state, n) in &present.runs {
            self.set(&of::RUNS, &label("cliq.state", state.as_str()), *n);
            if *state == RunState::Queued {
                self.set(&of::QUEUE_LENGTH, &[], *n);
            }
        }
        for status in SignalStatus::ALL {
            let found = present.signals.by_status.iter().find(|(other, _)| *other == status);
            let n = found.map_or(0, |(_, n)| *n);
            self.set(&of::SIGNALS, &label("cliq.signal.status", status.as_str()), n);
        }
        let age = present.signals.oldest_pending.map_or(0, |oldest| present.now.since(oldest).as_secs());
        for (result, n) in ["delivered", "failed"].iter().zip(&self.pushes) {
            self.set(&of::PUSH_ATTEMPTS, &label("cliq.result", result), load(n));
        }
        for (class, n) in (1..).zip(&self.responses) {
            self.set(&of::HTTP_RESPONSES, &label("cliq.class", &format!("{class}xx")), load(n));
        }
        let plain = [
            (&of::SIGNAL_AGE, age),
            (&of::RUNS_STARTED, present.counters.runs_started()),
            (&of::RUN_EVENTS, present.counters.events_stored()),
            (&of::EVENT_SUBSCRIBERS, present.subscribers as u64),
            (&of::HTTP_REQUEST_MICROSECONDS, load(&self.request_micros)),
            (&of::CONNECTIONS, load(&self.connections)),
            (&of::CONNECTIONS_REFUSED, load(&self.refused_connections)),
            (&of::UP_SECONDS, present.up_seconds),
        ];
        for (metric, value) in plain {
            self.set(metric, &[], value);
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    fn set(&self, metric: &'static Metric, labels: &[Label], value: u64) {
        self.of_server.set(metric, labels, value as f64);
    }

    /// The figures of the server and of its runs as text.
    pub(crate) fn render(&self) -> String {
        self.of_server.to_prometheus() + &self.of_runs.to_prometheus()
    }
}
