//! The schema of triggers.yml, and docs/triggers.md: every field is documented.

use std::fs;

use cliq_triggers::triggers_schema;
use serde_json::Value;

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
