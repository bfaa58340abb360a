//! Spans and metrics against the published model of the conventions.

use std::collections::{BTreeMap, BTreeSet};

use cliq_telemetry::metrics::{METRICS, MetricKind};
use cliq_telemetry::{Span, SpanKind, SpanOptions, Value, conventions};
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
    let groups = ["gen-ai-registry", "mcp-registry", "error-registry"].into_iter().flat_map(model);
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
    ["gen_ai.", "mcp.", "error."].iter().any(|prefix| name.starts_with(prefix))
}

#[test]
fn spans_are_those_of_the_conventions() {
    let (registry, groups) = (registry(), model("gen-ai-spans"));
    let spans = build(SpanOptions { content: true, ..SpanOptions::default() }, &[]).spans;
    let mut operations = BTreeSet::new();
    for span in &spans {
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
        let Some(Value::Text(operation)) = span.attribute("gen_ai.operation.name") else { continue };
        operations.insert(operation.clone());
        check(span, operation, &groups);
    }
    assert_eq!(
        operations.into_iter().collect::<Vec<_>>(),
        ["chat", "execute_tool", "invoke_agent", "invoke_workflow"]
    );
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
fn the_version_is_that_of_the_address() {
    let readme = include_str!("../../../fixtures/semconv/README.md");
    let version = conventions::SCHEMA_URL.rsplit('/').next().expect("a version");
    assert!(readme.contains(version));
    assert!(include_str!("../../../docs/telemetry.md").contains(version));
}
