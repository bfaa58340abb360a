#![doc = include_str!("../README.md")]

pub mod conventions;
mod follow;
pub mod metrics;
mod options;
#[cfg(feature = "otlp")]
mod otlp;
mod process;
mod request;
mod sent;
mod span;
mod spans;

pub use follow::{RunFollower, RunSegment, SegmentEnd};
pub use options::{ExportOptions, OptionsError, Sampler, Signal, Signals, TelemetryOptions};
#[cfg(feature = "otlp")]
pub use otlp::{Client, ExportError, ExportReport, Exporter, ProcessExporter};
pub use process::{ProcessTelemetry, SpanSink};
pub use request::{CallEnd, HttpRequest, RequestSpan};
pub use sent::{Sent, SentError};
pub use span::{Attribute, Batch, LogLine, Severity, Span, SpanKind, Value};
pub use spans::{Mask, SpanOptions, TraceBuilder};
