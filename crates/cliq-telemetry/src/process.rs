//! Telemetry of a process that serves requests, such as a server (docs/telemetry.md).

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use crate::metrics::Registry;
use crate::options::Sampler;
use crate::span::Span;

/// Destination of the spans of a process.
pub trait SpanSink: Debug + Send + Sync {
    /// Takes a span that has ended, without waiting for a receiver.
    fn push(&self, span: Span);
}

/// Telemetry of a process that serves requests.
#[derive(Debug, Clone)]
pub struct ProcessTelemetry {
    /// Destination of spans.
    pub spans: Arc<dyn SpanSink>,
    /// Choice of the traces that are recorded.
    pub sampler: Sampler,
    /// Figures that are exported.
    pub registry: Arc<Registry>,
    /// Time between exports of the figures.
    pub metrics_interval: Duration,
}
