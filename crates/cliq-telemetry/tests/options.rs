//! Variables and settings.

use cliq_orchestrator::TraceSource;
use cliq_protocol::TraceContext;
use cliq_settings::Settings;
use cliq_telemetry::{ExportOptions, OptionsError, TelemetryOptions};

fn read(variables: &[(&str, &str)]) -> Result<TelemetryOptions, OptionsError> {
    let get = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
    TelemetryOptions::read(get, &Settings::default())
}

fn export(variables: &[(&str, &str)]) -> Option<ExportOptions> {
    let base = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318/base/")];
    read(&[&base[..], variables].concat()).expect("valid").export
}

#[test]
fn variables_say_where_to() {
    assert_eq!(read(&[]).expect("valid").export, None);
    assert_eq!(export(&[("OTEL_SDK_DISABLED", "True")]), None);
    let all = export(&[
        ("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs/there"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20x%3Dy, b=2"),
        ("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "1500"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test,service.name=other"),
    ])
    .expect("an export");
    let traces = all.signals.traces.expect("traces");
    assert_eq!((traces.url.as_str(), traces.timeout.as_millis()), ("http://h:4318/base/v1/traces", 1500));
    let headers: Vec<_> =
        traces.headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    assert_eq!(headers, [("authorization", "Basic x=y"), ("b", "2")]);
    assert_eq!(
        (all.signals.logs.expect("logs").url.as_str(), all.signals.metrics),
        ("http://logs/there", None)
    );
    assert!(all.resource.contains(&("service.name".to_owned(), "other".to_owned())), "{:?}", all.resource);
    let named = export(&[("OTEL_SERVICE_NAME", "mine")]).expect("an export");
    assert_eq!(named.resource[0], ("service.name".to_owned(), "mine".to_owned()));
}

#[test]
fn errors_name_the_variable_and_no_secret() {
    let error = |name: &str, value: &str| {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318");
        read(&[(name, value), base]).expect_err(name).to_string()
    };
    insta::assert_snapshot!([
        error("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        error("OTEL_EXPORTER_OTLP_HEADERS", "sk-secret"),
        error("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "me:sk-secret@h"),
        error("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd"),
        error("OTEL_EXPORTER_OTLP_TIMEOUT", "soon"),
        error("OTEL_LOGS_EXPORTER", "console"),
        error("OTEL_TRACES_SAMPLER", "some"),
        error("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "perhaps"),
    ].join("\n"), @r#"
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not understood: cliq speaks `http/protobuf`
    OTEL_EXPORTER_OTLP_HEADERS: "…" is not understood: write NAME=VALUE, separated by commas
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: the address of the receiver is not one: write it as http://localhost:4318
    OTEL_EXPORTER_OTLP_COMPRESSION: "zstd" is not understood: write `gzip` or `none`
    OTEL_EXPORTER_OTLP_TIMEOUT: "soon" is not understood: write a whole number
    OTEL_LOGS_EXPORTER: "console" is not understood: write `otlp` or `none`
    OTEL_TRACES_SAMPLER: "some" is not understood: write `always_on`, `always_off` or `traceidratio`, with or without `parentbased_`
    OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "perhaps" is not understood: write `true` or `false`
    "#);
}

#[test]
fn samplers_decide_by_caller_or_share() {
    let source = |sampler: &str, arg: &str, caller: Option<&str>| {
        let base = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318");
        let options = read(&[base, ("OTEL_TRACES_SAMPLER", sampler), ("OTEL_TRACES_SAMPLER_ARG", arg)]);
        options.expect("valid").trace_source(caller.and_then(|caller| caller.parse().ok()))
    };
    assert_eq!(source("always_on", "", None), TraceSource::Own { below: TraceSource::ALL });
    assert_eq!(source("traceidratio", "0.5", None), TraceSource::Own { below: TraceSource::ALL / 2 });
    assert_eq!(source("always_off", "", None), TraceSource::Own { below: 0 });
    let caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let sampled = |source| match source {
        TraceSource::Within(TraceContext { is_sampled, .. }) => is_sampled,
        other => panic!("{other:?}"),
    };
    assert!(sampled(source("parentbased_always_off", "", Some(caller))));
    assert!(!sampled(source("always_off", "", Some(caller))));
    assert_eq!(read(&[]).expect("valid").trace_source(None), TraceSource::Off);
}
