//! JSON Schemas of files, and the line by which editors find them.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use cliq_testkit::env::Env;
use serde_json::{Value, json};

const COMMANDS: [(&str, &[&str]); 5] = [
    ("team", &["team", "schema"]),
    ("team-tests", &["team", "schema", "--tests"]),
    ("suite", &["eval", "schema"]),
    ("triggers", &["trigger", "schema"]),
    ("settings", &["settings", "schema"]),
];

fn schema(env: &Env, name: &str) -> Value {
    let (_, command) = COMMANDS.iter().find(|(known, _)| *known == name).unwrap();
    env.cliq(command.iter().copied()).expect(0).json()
}

/// The first thing in a document that its schema refuses.
fn violation(schema: &Value, document: &Value) -> Option<String> {
    let validator = jsonschema::draft202012::new(schema).unwrap();
    validator.iter_errors(document).next().map(|error| format!("{}: {error}", error.instance_path()))
}

/// The name of the schema that the first line of a file names, and the file as JSON.
fn document(path: &Path) -> (String, Value) {
    let text = fs::read_to_string(path).unwrap();
    let line = text.lines().next().unwrap();
    let address = line
        .strip_prefix("# yaml-language-server: $schema=")
        .unwrap_or_else(|| panic!("{}: {line}", path.display()));
    (address.to_owned(), serde_yaml::from_str(&text).unwrap())
}

#[test]
fn each_schema_has_an_address_of_its_own() {
    let env = Env::bare();
    let mut ids = BTreeSet::new();
    for (name, _) in COMMANDS {
        let schema = schema(&env, name);
        let id = schema["$id"].as_str().unwrap().to_owned();
        assert!(id.starts_with("https://") && id.ends_with(&format!("/schemas/{name}.json")), "{id}");
        assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
        assert!(ids.insert(id));
        assert!(violation(&schema, &json!({"no_such_field": 1})).is_some(), "{name}");
    }
}

#[test]
fn created_files_name_their_schema_and_fit_it() {
    let env = Env::bare();
    env.cliq(["team", "create", "first"]).expect(0);
    env.cliq(["eval", "new", "simulated"]).expect(0);
    env.cliq(["demo", "shown"]).expect(0);
    for example in ["schedule", "github-issue"] {
        let text = env.cliq(["trigger", "example", example]).expect(0).stdout.clone();
        env.write(&format!("{example}.yml"), &text);
    }
    for (name, file) in [
        ("team", "first/team.yml"),
        ("team-tests", "first/tests/phases.yml"),
        ("team", "shown/team/team.yml"),
        ("suite", "simulated/suite.yml"),
        ("triggers", "schedule.yml"),
        ("triggers", "github-issue.yml"),
    ] {
        let (address, document) = document(&env.work().join(file));
        let schema = schema(&env, name);
        assert_eq!(schema["$id"], address, "{file}");
        assert_eq!(violation(&schema, &document), None, "{file}");
    }
}

#[test]
fn bundled_teams_fit_their_schema() {
    let env = Env::bare();
    let schema = schema(&env, "team");
    let teams = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/cliq-project/teams");
    for name in ["hello-world", "code", "feature-dev-js"] {
        let text = fs::read_to_string(teams.join(name).join("team.yml")).unwrap();
        let document: Value = serde_yaml::from_str(&text).unwrap();
        assert_eq!(violation(&schema, &document), None, "{name}");
    }
}

#[test]
fn settings_fit_their_schema_and_may_name_it() {
    let env = Env::bare();
    let schema = schema(&env, "settings");
    for (key, value) in [
        ("max_parallel", "4"),
        ("sandbox.profile", "strict"),
        ("sandbox.network", "example.com"),
        ("agents.mine.kind", "openai"),
        ("agents.mine.base_url", "http://localhost:1"),
        ("prices.gpt-4.1.in", "2.5"),
        ("docker.memory", "512m"),
    ] {
        env.cliq(["settings", "set", "-g", key, value]).expect(0);
    }
    let file = env.home().join("settings.json");
    let mut settings: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(violation(&schema, &settings), None, "{settings}");
    settings["$schema"] = schema["$id"].clone();
    fs::write(&file, settings.to_string()).unwrap();
    assert_eq!(violation(&schema, &settings), None);
    // The line stays when a setting changes.
    env.cliq(["settings", "set", "-g", "max_parallel", "5"]).expect(0);
    assert!(fs::read_to_string(&file).unwrap().contains("\"$schema\""));
    env.cliq(["settings", "get", "max_parallel"]).expect(0).says("5");
}
