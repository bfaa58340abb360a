//! The schema of triggers.yml, and docs/triggers.md: every field is documented.

use std::fs;

use cliq_triggers::{TestRequest, triggers_schema};
use serde_json::{Value, json};

/// Collects the fields of an object and of those within it.
fn collect(object: &Value, found: &mut Vec<(String, bool, String)>) {
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, field) in object["properties"].as_object().into_iter().flatten() {
        let doc = field["description"].as_str().unwrap_or_default().to_owned();
        found.push((name.clone(), required.contains(&name.as_str()), doc));
        collect(field, found);
    }
}

#[test]
fn every_field_is_documented() {
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/triggers.md")).unwrap();
    let (mut found, schema) = (Vec::new(), triggers_schema());
    collect(&schema["properties"]["triggers"]["items"], &mut found);
    assert!(found.len() > 25, "the schema has another form: {found:?}");
    for (name, is_required, doc) in found {
        let row = format!("| `{name}` | {} | {doc} |", if is_required { "yes" } else { "" });
        assert!(docs.contains(&row), "docs/triggers.md lacks the row\n{row}");
    }
}

#[test]
fn the_schema_is_pinned() {
    insta::assert_json_snapshot!(triggers_schema());
}

#[test]
fn payload_of_a_test_is_a_body_or_its_parts() {
    let read = |payload: Value| TestRequest::from_payload(payload);
    let parts = read(json!({"headers": {"X-GitHub-Event": "issues"}, "body": {"n": 1}})).unwrap();
    assert_eq!((parts.headers["X-GitHub-Event"].as_str(), &parts.body), ("issues", &json!({"n": 1})));
    assert_eq!(read(json!({"files": ["a"]})).unwrap().files, ["a"]);
    // With any other field it is the body of a delivery.
    for body in [json!({"body": "a comment", "id": 7}), json!({}), json!([1]), json!("text")] {
        assert_eq!(read(body.clone()).unwrap().body, body);
    }
    assert!(read(json!({"files": "a"})).unwrap_err().to_string().contains("invalid type"));
}
