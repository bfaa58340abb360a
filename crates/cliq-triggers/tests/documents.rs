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

#[test]
fn secret_of_two_triggers_signs_one_text() {
    let check = |first: &str, second: &str| {
        let text = format!(
            "triggers:\n  - {{name: a, webhook: {{signature: {first}, secret: s}}, team: '@a/b'}}\n  - {{name: b, webhook: {{signature: {second}, secret: s}}, team: '@a/b'}}\n"
        );
        let checked = cliq_triggers::read_triggers(&text, &|_| None);
        checked.diagnostics.into_iter().find(|problem| problem.code == "shared-secret")
    };
    for (first, second) in
        [("hmac", "hmac-timestamp"), ("slack", "github"), ("gitlab", "hmac"), ("hmac-timestamp", "slack")]
    {
        let problem = check(first, second).unwrap_or_else(|| panic!("{first} and {second} share a secret"));
        assert!(problem.message.contains(first) && problem.span.line == 3, "{problem:?}");
    }
    for scheme in ["hmac", "hmac-timestamp", "slack", "gitlab"] {
        assert_eq!(check(scheme, scheme), None);
    }
    assert_eq!(check("github", "hmac"), None);
}

#[test]
fn large_files_of_triggers_give_few_problems() {
    for piece in [
        "  - {name: a, when: '(', glob: 1}\n",
        "  - {name: 'X Y', schedule: {cron: ', * * * *'}}\n",
        "  - {name: a, files: {glob: '{a,{a,{a,{a,{a,{a,{a,{a,{a,}}}}}}}}}', project: /p}}\n",
        "  - x\n",
        "  - {unknown: 1}\n",
    ] {
        let text = format!("triggers:\n{}", piece.repeat(300_000 / piece.len()));
        let checked = cliq_triggers::read_triggers(&text, &|_| None);
        let size: usize = checked.diagnostics.iter().map(|d| d.message.len() + d.help.len()).sum();
        assert!(checked.has_errors() && checked.diagnostics.len() <= 41 && size < 50_000, "{piece}: {size}");
        assert!(checked.diagnostics.iter().any(|problem| problem.code == "more-problems"), "{piece}");
    }
}
