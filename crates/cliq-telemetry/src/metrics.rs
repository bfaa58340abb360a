//! Metrics: one definition of each, for the page `/metrics` and for OTLP (docs/telemetry.md).

mod prometheus;
mod registry;

pub use registry::{Distribution, Registry, Series, Snapshot};

/// Kind of a metric.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum MetricKind {
    /// Sum that only grows.
    Counter,
    /// Value that changes.
    Gauge,
    /// Distribution of values, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

/// Definition of a metric.
#[derive(Debug, PartialEq)]
pub struct Metric {
    /// Name in OpenTelemetry. In Prometheus dots become `_`, and counters end with `_total`.
    pub name: &'static str,
    /// Kind.
    pub kind: MetricKind,
    /// Unit, as UCUM writes it.
    pub unit: &'static str,
    /// Description in a sentence.
    pub about: &'static str,
}

/// Label of a series: name in OpenTelemetry and value.
pub type Label = (&'static str, String);

/// Value to be counted or recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// Metric.
    pub metric: &'static Metric,
    /// Value.
    pub value: f64,
    /// Labels.
    pub labels: Vec<Label>,
}

/// Buckets of tokens, as the conventions advise.
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
/// Buckets of the durations of operations, as the conventions advise.
const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/// Buckets of what lasts up to days.
const LONG: &[f64] =
    &[1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 10800.0, 43200.0, 86400.0, 259_200.0, 604_800.0];
/// Buckets of small numbers.
const ROUNDS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 8.0, 12.0, 20.0];

macro_rules! metrics {
    ($($(#[$meta:meta])* $id:ident = $name:literal, $kind:expr, $unit:literal, $about:literal;)*) => {
        $(
            $(#[$meta])*
            pub static $id: Metric =
                Metric { name: $name, kind: $kind, unit: $unit, about: $about };
        )*

        /// All metrics, in the order of the documentation.
        pub static METRICS: &[&Metric] = &[$(&$id),*];
    };
}

metrics! {
    /// Tokens of a reply, by `gen_ai.token.type`.
    TOKEN_USAGE = "gen_ai.client.token.usage", MetricKind::Histogram(TOKENS), "{token}",
        "Number of input and output tokens used.";
    /// Duration of a reply or activation.
    OPERATION_DURATION = "gen_ai.client.operation.duration", MetricKind::Histogram(SECONDS), "s",
        "GenAI operation duration.";
    /// Ends of runs, by outcome.
    RUNS_FINISHED = "cliq.runs.finished", MetricKind::Counter, "{run}", "Runs that ended, by outcome.";
    /// Duration of runs, by outcome.
    RUN_DURATION = "cliq.run.duration", MetricKind::Histogram(LONG), "s", "Duration of runs, by outcome.";
    /// Verdicts of gates, by verdict.
    GATE_VERDICTS = "cliq.gate.verdicts", MetricKind::Counter, "{verdict}", "Verdicts of gates, by verdict.";
    /// Evaluations of a gate up to its end.
    GATE_ROUNDS = "cliq.gate.rounds", MetricKind::Histogram(ROUNDS), "{evaluation}",
        "Evaluations of a gate up to the one that did not send the work back.";
    /// Time that reviews waited for people.
    REVIEW_WAIT = "cliq.review.wait", MetricKind::Histogram(LONG), "s", "Time that reviews waited for people.";
    /// Cost of replies, as far as it is known.
    COST = "cliq.cost", MetricKind::Counter, "USD", "Cost of replies in US dollars, as far as it is known.";
    /// Time that runs of a server waited for a slot.
    QUEUE_WAIT = "cliq.queue.wait", MetricKind::Histogram(LONG), "s", "Time that runs waited for a slot.";
    /// Runs of a server that wait for a slot.
    QUEUE_LENGTH = "cliq.queue.length", MetricKind::Gauge, "{run}", "Runs that wait for a slot.";
    /// Signals of plans, by status.
    SIGNALS = "cliq.signals", MetricKind::Gauge, "{signal}", "Signals of plans, by status.";
    /// Age of the oldest signal that waits to be processed.
    SIGNAL_AGE = "cliq.signal.oldest.age", MetricKind::Gauge, "s",
        "Age of the oldest signal that waits to be processed.";
    /// Runs in the store of a server, by state.
    RUNS = "cliq.runs", MetricKind::Gauge, "{run}", "Runs in the store, by state.";
    /// Orchestrators that a server started.
    RUNS_STARTED = "cliq.runs.started", MetricKind::Counter, "{run}", "Orchestrators that this server started.";
    /// Events that a server stored.
    RUN_EVENTS = "cliq.run.events", MetricKind::Counter, "{event}", "Events that this server stored.";
    /// Push notifications of A2A, by result.
    PUSH_ATTEMPTS = "cliq.push.attempts", MetricKind::Counter, "{notification}",
        "Push notifications of A2A, by result.";
    /// Open streams of events.
    EVENT_SUBSCRIBERS = "cliq.event.subscribers", MetricKind::Gauge, "{stream}", "Open streams of events.";
    /// Responses, by class of status.
    HTTP_RESPONSES = "cliq.http.responses", MetricKind::Counter, "{response}", "Responses, by class of status.";
    /// Time of requests until their headers.
    HTTP_REQUEST_MICROSECONDS = "cliq.http.request.microseconds", MetricKind::Counter, "us",
        "Time of requests until their headers.";
    /// Open connections.
    CONNECTIONS = "cliq.connections", MetricKind::Gauge, "{connection}", "Open connections.";
    /// Connections above the limit.
    CONNECTIONS_REFUSED = "cliq.connections.refused", MetricKind::Counter, "{connection}",
        "Connections above the limit.";
    /// Seconds since a server started.
    UP_SECONDS = "cliq.up.seconds", MetricKind::Gauge, "s", "Seconds since the server started.";
}

impl Measurement {
    /// Makes a measurement.
    #[must_use]
    pub fn new(metric: &'static Metric, value: f64, labels: impl IntoIterator<Item = Label>) -> Self {
        Self { metric, value, labels: labels.into_iter().collect() }
    }
}
