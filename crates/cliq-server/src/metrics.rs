//! Figures for Prometheus, in its text format. Their definitions are those of telemetry (docs/telemetry.md).

use std::sync::atomic::{AtomicU64, Ordering};

use cliq_model::RunCounts;
use cliq_supervisor::Counters;
use cliq_telemetry::metrics::{self as of, Label, Metric, Registry};

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
        let registry = Registry::default();
        let load = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let label = |name: &'static str, value: &str| -> Vec<Label> { vec![(name, value.to_owned())] };
        for (state, n) in runs {
            set(&registry, &of::RUNS, &label("cliq.state", state.as_str()), *n);
        }
        for (result, n) in ["delivered", "failed"].iter().zip(&self.pushes) {
            set(&registry, &of::PUSH_ATTEMPTS, &label("cliq.result", result), load(n));
        }
        for (class, n) in (1..).zip(&self.responses) {
            set(&registry, &of::HTTP_RESPONSES, &label("cliq.class", &format!("{class}xx")), load(n));
        }
        let plain = [
            (&of::RUNS_STARTED, supervisor.runs_started()),
            (&of::RUN_EVENTS, supervisor.events_stored()),
            (&of::EVENT_SUBSCRIBERS, subscribers as u64),
            (&of::HTTP_REQUEST_MICROSECONDS, load(&self.request_micros)),
            (&of::CONNECTIONS, load(&self.connections)),
            (&of::CONNECTIONS_REFUSED, load(&self.refused_connections)),
            (&of::UP_SECONDS, up_seconds),
        ];
        for (metric, value) in plain {
            set(&registry, metric, &[], value);
        }
        registry.to_prometheus()
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn set(registry: &Registry, metric: &'static Metric, labels: &[Label], value: u64) {
    registry.set(metric, labels, value as f64);
}
