//! Requests of OTLP from spans, log lines and metrics.

use cliq_protocol::{SpanId, Timestamp};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Proto;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs, SeverityNumber};
use opentelemetry_proto::tonic::metrics::v1::{
    AggregationTemporality, Gauge, Histogram, HistogramDataPoint, Metric as ProtoMetric, NumberDataPoint,
    ResourceMetrics, ScopeMetrics, Sum, metric, number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span as ProtoSpan, Status, span::Link, span::SpanKind as ProtoKind,
    status::StatusCode,
};

use crate::conventions::{SCHEMA_URL, SCOPE};
use crate::metrics::{Label, MetricKind, Series, Snapshot};
use crate::span::{LogLine, Severity, Span, SpanKind, Value};

/// Flag of a trace that is recorded.
const SAMPLED: u32 = 1;

pub(super) fn traces<'a>(
    resource: &[(String, String)],
    spans: impl IntoIterator<Item = &'a Span>,
) -> ExportTraceServiceRequest {
    let scope = ScopeSpans {
        scope: Some(scope()),
        spans: spans.into_iter().map(span).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    let all = ResourceSpans {
        resource: Some(self::resource(resource)),
        scope_spans: vec![scope],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportTraceServiceRequest { resource_spans: vec![all] }
}

pub(super) fn logs<'a>(
    resource: &[(String, String)],
    lines: impl IntoIterator<Item = &'a LogLine>,
) -> ExportLogsServiceRequest {
    let scope = ScopeLogs {
        scope: Some(scope()),
        log_records: lines.into_iter().map(line).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    let all = ResourceLogs {
        resource: Some(self::resource(resource)),
        scope_logs: vec![scope],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportLogsServiceRequest { resource_logs: vec![all] }
}

pub(super) fn metrics(
    resource: &[(String, String)],
    snapshot: &Snapshot,
    since: Timestamp,
    now: Timestamp,
) -> ExportMetricsServiceRequest {
    let times = (nanos(since), nanos(now));
    let scope = ScopeMetrics {
        scope: Some(scope()),
        metrics: snapshot.iter().map(|(metric, rows)| proto_metric(metric, rows, times)).collect(),
        schema_url: SCHEMA_URL.to_owned(),
    };
    let all = ResourceMetrics {
        resource: Some(self::resource(resource)),
        scope_metrics: vec![scope],
        schema_url: SCHEMA_URL.to_owned(),
    };
    ExportMetricsServiceRequest { resource_metrics: vec![all] }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn resource(attributes: &[(String, String)]) -> Resource {
    let attributes = attributes.iter().map(|(name, value)| pair(name, &Value::Text(value.clone()))).collect();
    Resource { attributes, ..Resource::default() }
}

fn pair(name: &str, value: &Value) -> KeyValue {
    KeyValue { key: name.to_owned(), value: Some(any(value)), ..KeyValue::default() }
}

fn any(value: &Value) -> AnyValue {
    let text = |text: &String| Proto::StringValue(text.clone());
    let value = match value {
        Value::Text(value) => text(value),
        Value::Int(number) => Proto::IntValue(*number),
        Value::Double(number) => Proto::DoubleValue(*number),
        Value::Bool(is) => Proto::BoolValue(*is),
        Value::Texts(texts) => {
            let values = texts.iter().map(|value| AnyValue { value: Some(text(value)) }).collect();
            Proto::ArrayValue(ArrayValue { values })
        }
    };
    AnyValue { value: Some(value) }
}

fn nanos(time: Timestamp) -> u64 {
    u64::try_from(time.unix_millis()).unwrap_or(0).saturating_mul(1_000_000)
}

fn bytes(id: Option<SpanId>) -> Vec<u8> {
    id.map(|id| id.bytes().to_vec()).unwrap_or_default()
}

fn span(span: &Span) -> ProtoSpan {
    let kind = match span.kind {
        SpanKind::Internal => ProtoKind::Internal,
        SpanKind::Client => ProtoKind::Client,
        SpanKind::Server => ProtoKind::Server,
    };
    let status = span
        .has_failed()
        .then(|| Status { message: span.error.clone().unwrap_or_default(), code: StatusCode::Error.into() });
    let link = |to: &SpanId| Link {
        trace_id: span.trace.bytes().to_vec(),
        span_id: to.bytes().to_vec(),
        flags: SAMPLED,
        ..Link::default()
    };
    ProtoSpan {
        trace_id: span.trace.bytes().to_vec(),
        span_id: span.id.bytes().to_vec(),
        parent_span_id: bytes(span.parent),
        flags: SAMPLED,
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: nanos(span.start),
        // Times have milliseconds. Receivers report a span without a duration as damaged.
        end_time_unix_nano: nanos(span.end).max(nanos(span.start).saturating_add(1_000)),
        attributes: span.attributes.iter().map(|(name, value)| pair(name, value)).collect(),
        links: span.links.iter().map(link).collect(),
        status,
        ..ProtoSpan::default()
    }
}

fn line(line: &LogLine) -> LogRecord {
    let (number, text) = match line.severity {
        Severity::Trace => (SeverityNumber::Trace, "TRACE"),
        Severity::Debug => (SeverityNumber::Debug, "DEBUG"),
        Severity::Info => (SeverityNumber::Info, "INFO"),
        Severity::Warn => (SeverityNumber::Warn, "WARN"),
        Severity::Error => (SeverityNumber::Error, "ERROR"),
    };
    let (trace, of) = line.span.unzip();
    LogRecord {
        time_unix_nano: nanos(line.time),
        observed_time_unix_nano: nanos(line.time),
        severity_number: number.into(),
        severity_text: text.to_owned(),
        body: Some(any(&Value::Text(line.text.clone()))),
        attributes: line.attributes.iter().map(|(name, value)| pair(name, value)).collect(),
        trace_id: trace.map(|trace| trace.bytes().to_vec()).unwrap_or_default(),
        span_id: bytes(of),
        event_name: line.event.to_owned(),
        flags: if line.span.is_some() { SAMPLED } else { 0 },
        ..LogRecord::default()
    }
}

fn proto_metric(
    metric: &crate::metrics::Metric,
    rows: &[(Vec<Label>, Series)],
    (since, now): (u64, u64),
) -> ProtoMetric {
    let attributes = |labels: &[Label]| -> Vec<KeyValue> {
        labels.iter().map(|(name, value)| pair(name, &Value::Text(value.clone()))).collect()
    };
    let numbers = || -> Vec<NumberDataPoint> {
        let numbers = rows.iter().filter_map(|(labels, series)| {
            let Series::Number(number) = series else { return None };
            Some(NumberDataPoint {
                attributes: attributes(labels),
                start_time_unix_nano: since,
                time_unix_nano: now,
                value: Some(number_data_point::Value::AsDouble(*number)),
                ..NumberDataPoint::default()
            })
        });
        numbers.collect()
    };
    let cumulative = AggregationTemporality::Cumulative.into();
    let data = match metric.kind {
        MetricKind::Counter => metric::Data::Sum(Sum {
            data_points: numbers(),
            aggregation_temporality: cumulative,
            is_monotonic: true,
        }),
        MetricKind::Gauge => metric::Data::Gauge(Gauge { data_points: numbers() }),
        MetricKind::Histogram(bounds) => {
            let points = rows.iter().filter_map(|(labels, series)| {
                let Series::Distribution(values) = series else { return None };
                Some(HistogramDataPoint {
                    attributes: attributes(labels),
                    start_time_unix_nano: since,
                    time_unix_nano: now,
                    count: values.count,
                    sum: Some(values.sum),
                    bucket_counts: values.buckets.clone(),
                    explicit_bounds: bounds.to_vec(),
                    ..HistogramDataPoint::default()
                })
            });
            metric::Data::Histogram(Histogram {
                data_points: points.collect(),
                aggregation_temporality: cumulative,
            })
        }
    };
    ProtoMetric {
        name: metric.name.to_owned(),
        description: metric.about.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(data),
        ..ProtoMetric::default()
    }
}
