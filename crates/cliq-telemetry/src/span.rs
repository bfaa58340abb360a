//! Spans, log lines and measurements as plain values.

use cliq_protocol::{SpanId, Timestamp, TraceId};

use crate::metrics::Measurement;

/// Value of an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Text.
    Text(String),
    /// Whole number.
    Int(i64),
    /// Number.
    Double(f64),
    /// Truth value.
    Bool(bool),
    /// Texts.
    Texts(Vec<String>),
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Int(number.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Double(number)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Bool(is)
    }
}

/// Attribute of a span or log line.
pub type Attribute = (&'static str, Value);

/// Kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// Work within cliq.
    Internal,
    /// Request to another system.
    Client,
    /// Request of another system.
    Server,
}

/// Span that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// Trace.
    pub trace: TraceId,
    /// Id.
    pub id: SpanId,
    /// Parent, or `None` for the root of a trace.
    pub parent: Option<SpanId>,
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: SpanKind,
    /// Start.
    pub start: Timestamp,
    /// End.
    pub end: Timestamp,
    /// Attributes. One with [`key::ERROR`](crate::conventions::key::ERROR) has failed.
    pub attributes: Vec<Attribute>,
    /// Spans of the same trace that it refers to.
    pub links: Vec<SpanId>,
    /// Description of the failure, if it may be exported.
    pub error: Option<String>,
    /// Measurements that the span stands for.
    pub measurements: Vec<Measurement>,
}

impl Span {
    /// Value of an attribute.
    #[must_use]
    pub fn attribute(&self, key: &str) -> Option<&Value> {
        self.attributes.iter().find(|(name, _)| *name == key).map(|(_, value)| value)
    }

    /// Whether the operation failed.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.attribute(crate::conventions::key::ERROR).is_some()
    }
}

/// Severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Finest details.
    Trace,
    /// Details.
    Debug,
    /// Information.
    Info,
    /// Warning.
    Warn,
    /// Error.
    Error,
}

/// Line of a log, with the span that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct LogLine {
    /// Id of the line, unique in its trace.
    pub id: SpanId,
    /// Trace and span, if it belongs to some.
    pub span: Option<(TraceId, SpanId)>,
    /// Time.
    pub time: Timestamp,
    /// Severity.
    pub severity: Severity,
    /// Name of the event, such as `cliq.phase_started`.
    pub event: &'static str,
    /// Text.
    pub text: String,
    /// Attributes.
    pub attributes: Vec<Attribute>,
}

/// Spans and log lines that are complete.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    /// Spans.
    pub spans: Vec<Span>,
    /// Log lines.
    pub logs: Vec<LogLine>,
}

impl Batch {
    /// Adds what follows.
    pub(crate) fn append(&mut self, mut next: Self) {
        self.spans.append(&mut next.spans);
        self.logs.append(&mut next.logs);
    }
}
