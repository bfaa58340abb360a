//! Spans and metrics against the published model of the conventions.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cliq_orchestrator::TraceSource;
use cliq_protocol::{Timestamp, TraceContext};
use cliq_telemetry::metrics::{METRICS, MetricKind};
use cliq_telemetry::{
    CallEnd, HttpRequest, RequestSpan, Sampler, Span, SpanKind, SpanOptions, Value, conventions,
};
use serde_json::Value as Json;

use super::sample::build;

fn model(name: &str) -> Vec<Json> {
    let path = format!("{}/../../fixtures/semconv/{name}.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect(&path);
    let model: Json = serde_yaml::from_str(&text).expect(&path);
    model["groups"].as_array().expect("groups").clone()
}

/// Attributes of the registry by name.
fn registry() -> BTreeMap<String, Json> {
    let files = ["gen-ai", "mcp", "error", "http", "url"].map(|name| format!("{name}-registry"));
    let groups = files.iter().flat_map(|name| model(name));
    let attributes = groups.flat_map(|group| group["attributes"].as_array().cloned().unwrap_or_default());
    attributes.map(|attribute| (attribute["id"].as_str().expect("an id").to_owned(), attribute)).collect()
}

/// Attributes of a group with those that it extends, and whether each is required.
fn attributes(groups: &[Json], id: &str) -> BTreeMap<String, bool> {
    let group = groups.iter().find(|group| group["id"] == id).expect(id);
    let mut all = group["extends"].as_str().map(|base| attributes(groups, base)).unwrap_or_default();
    for attribute in group["attributes"].as_array().into_iter().flatten() {
        let name = attribute["ref"].as_str().expect("a reference").to_owned();
        let is_required = match &attribute["requirement_level"] {
            Json::Null => all.get(&name).copied().unwrap_or(false),
            level => level == "required",
        };
        all.insert(name, is_required);
    }
    all
}

fn is_of_type(value: &Value, attribute: &Json) -> bool {
    match (&attribute["type"], value) {
        (Json::String(kind), Value::Text(_)) => matches!(kind.as_str(), "string" | "any"),
        (Json::String(kind), Value::Int(_)) => kind == "int",
        (Json::String(kind), Value::Double(_)) => kind == "double",
        (Json::String(kind), Value::Bool(_)) => kind == "boolean",
        (Json::String(kind), Value::Texts(_)) => kind == "string[]",
        // Other values than the members are allowed, but not deprecated ones.
        (Json::Object(members), Value::Text(text)) => {
            let members = members["members"].as_array().expect("members");
            members.iter().all(|member| member["value"] != text.as_str() || member["deprecated"].is_null())
        }
        _ => false,
    }
}

fn of_conventions(name: &str) -> bool {
    ["gen_ai.", "mcp.", "error.", "http.", "url."].iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn spans_are_those_of_the_conventions() {
    let (registry, groups) = (registry(), model("gen-ai-spans"));
    let spans = build(SpanOptions { content: true, ..SpanOptions::default() }, &[]).spans;
    let mut operations = BTreeSet::new();
    for span in &spans {
        check_attributes(span, &registry);
        let Some(Value::Text(operation)) = span.attribute("gen_ai.operation.name") else { continue };
        operations.insert(operation.clone());
        check(span, operation, &groups);
    }
    assert_eq!(
        operations.into_iter().collect::<Vec<_>>(),
        ["chat", "execute_tool", "invoke_agent", "invoke_workflow"]
    );
}

fn check_attributes(span: &Span, registry: &BTreeMap<String, Json>) {
    for (name, value) in &span.attributes {
        if of_conventions(name) {
            let attribute = registry.get(*name).unwrap_or_else(|| panic!("{name} is in no registry"));
            assert!(attribute["deprecated"].is_null(), "{name}");
            assert!(is_of_type(value, attribute), "{name}: {value:?}");
        } else {
            assert!(name.starts_with("cliq.") || *name == conventions::OPENINFERENCE_KIND, "{name}");
        }
    }
    let names: BTreeSet<&str> = span.attributes.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), span.attributes.len(), "{}: an attribute comes once", span.name);
}

#[test]
fn spans_of_requests_are_those_of_the_conventions() {
    let registry = registry();
    let sampler = Sampler { below: TraceSource::ALL, follows_parent: true };
    let start = Timestamp::UNIX_EPOCH;
    let begin = |caller| RequestSpan::begin(sampler, caller, "one", start);
    let request =
        HttpRequest { method: "POST", route: Some("/api/v1/runs"), path: "/api/v1/runs", scheme: "https" };
    let strange = HttpRequest { method: "BREW", route: None, ..request };
    let end = start.after(Duration::from_millis(3));
    let over_http = |request, status| begin(None).end_http(request, status, end);
    let over_mcp = |call| begin(None).end_tool("run_list", call, end);
    let (http, mcp) = (["http-spans", "http-common"], ["mcp-spans", "mcp-common"]);
    let (of_http, of_mcp) = ("span.http.server", "span.mcp.server");
    let rows = [
        (over_http(request, Some(201)), http, of_http, "POST /api/v1/runs", None),
        (over_http(request, None), http, of_http, "POST /api/v1/runs", Some("cancelled")),
        (over_http(strange, Some(503)), http, of_http, "HTTP", Some("503")),
        (over_mcp(CallEnd::Done), mcp, of_mcp, "tools/call run_list", None),
        (over_mcp(CallEnd::Failed), mcp, of_mcp, "tools/call run_list", Some("tool_error")),
        (over_mcp(CallEnd::Cancelled), mcp, of_mcp, "tools/call run_list", Some("cancelled")),
    ];
    for (span, files, group, name, error) in rows {
        check_attributes(&span, &registry);
        let groups: Vec<Json> = files.into_iter().flat_map(model).collect();
        for (name, is_required) in attributes(&groups, group) {
            assert!(!is_required || span.attribute(&name).is_some(), "{} has no {name}", span.name);
        }
        assert_eq!((span.name.as_str(), span.kind), (name, SpanKind::Server));
        assert_eq!(span.attribute("error.type"), error.map(Value::from).as_ref());
        assert_eq!((span.has_failed(), span.parent), (span.error.is_some(), None));
    }
    let caller: TraceContext = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00".parse().unwrap();
    let below = begin(Some(caller));
    assert_eq!((below.context().trace, below.context().is_sampled), (caller.trace, false));
    assert_eq!(below.end_http(request, Some(201), end).parent, Some(caller.span));
}

fn check(span: &Span, operation: &str, groups: &[Json]) {
    let (group, of_name) = match operation {
        "chat" => ("span.gen_ai.inference.client", "gen_ai.request.model"),
        "invoke_agent" => ("span.gen_ai.invoke_agent.internal", "gen_ai.agent.name"),
        "invoke_workflow" => ("span.gen_ai.invoke_workflow.internal", "gen_ai.workflow.name"),
        "execute_tool" => ("span.gen_ai.execute_tool.internal", "gen_ai.tool.name"),
        other => panic!("{other}"),
    };
    let kind = groups.iter().find(|known| known["id"] == group).expect(group)["span_kind"].clone();
    let expected = if kind == "client" { SpanKind::Client } else { SpanKind::Internal };
    assert_eq!(span.kind, expected, "{}", span.name);
    for (name, is_required) in attributes(groups, group) {
        assert!(!is_required || span.attribute(&name).is_some(), "{} has no {name}", span.name);
    }
    let Some(Value::Text(name)) = span.attribute(of_name) else { panic!("{} has no {of_name}", span.name) };
    assert_eq!(span.name, format!("{operation} {name}"));
    assert_eq!(span.has_failed(), span.error.is_some(), "{}", span.name);
}

#[test]
fn metrics_are_those_of_the_conventions() {
    let groups = model("gen-ai-metrics");
    let measured: Vec<_> = build(SpanOptions::default(), &[])
        .spans
        .into_iter()
        .flat_map(|span| span.measurements)
        .filter(|measurement| of_conventions(measurement.metric.name))
        .collect();
    assert!(measured.len() > 5);
    for measurement in measured {
        let metric = measurement.metric;
        let group = groups.iter().find(|group| group["metric_name"] == metric.name).expect(metric.name);
        assert_eq!(
            (group["unit"].as_str(), group["instrument"].as_str()),
            (Some(metric.unit), Some("histogram"))
        );
        assert!(matches!(metric.kind, MetricKind::Histogram(_)));
        let known = attributes(&groups, group["id"].as_str().expect("an id"));
        for (name, _) in &measurement.labels {
            assert!(known.contains_key(*name), "{}: {name}", metric.name);
        }
        for (name, is_required) in known {
            assert!(!is_required || measurement.labels.iter().any(|(label, _)| *label == name), "{name}");
        }
    }
    assert!(METRICS.iter().all(|metric| of_conventions(metric.name) || metric.name.starts_with("cliq.")));
}

#[test]
fn the_page_has_the_version_and_all_metrics() {
    let readme = include_str!("../../../fixtures/semconv/README.md");
    let version = conventions::SCHEMA_URL.rsplit('/').next().expect("a version");
    assert!(readme.contains(version));
    let page = include_str!("../../../docs/telemetry.md");
    assert!(page.contains(version));
    for metric in METRICS {
        assert!(page.contains(&format!("`{}`", metric.name)), "{} is not in docs/telemetry.md", metric.name);
    }
}
