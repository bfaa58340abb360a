//! Entry for the registry of the protocol (deploy/acp-registry).

use std::path::{Path, PathBuf};
use std::process::Command;

use cliq_testkit::env::{Env, python_with};
use serde_json::{Value, json};

use super::editor::Editor;

fn file(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

#[test]
fn the_entry_fits_the_schema_of_the_registry() {
    let Some(python) = python_with("jsonschema") else { return };
    let check = "import json, sys, jsonschema
schema, entry = [json.load(open(path)) for path in sys.argv[1:]]
jsonschema.Draft7Validator(schema).validate(entry)";
    let output = Command::new(python)
        .args(["-c", check])
        .arg(file("fixtures/acp-registry/agent.schema.json"))
        .arg(file("deploy/acp-registry/cliq/agent.json"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_entry_is_of_this_version_and_starts_the_agent() {
    let text = std::fs::read_to_string(file("deploy/acp-registry/cliq/agent.json")).unwrap();
    let entry: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(entry["id"], "cliq", "the name of its directory");
    assert_eq!(entry["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(entry["license"], env!("CARGO_PKG_LICENSE"));
    assert_eq!(entry["repository"], env!("CARGO_PKG_REPOSITORY"));
    for (platform, target) in entry["distribution"]["binary"].as_object().unwrap() {
        let version = concat!("v", env!("CARGO_PKG_VERSION"), "/");
        assert!(target["archive"].as_str().unwrap().contains(version), "{platform}");
        assert_eq!(target["args"], json!(["acp"]), "{platform}");
    }
    let icon = std::fs::read_to_string(file("deploy/acp-registry/cliq/icon.svg")).unwrap();
    assert!(icon.contains("viewBox=\"0 0 16 16\""));
    let paints = icon.split(['"']).collect::<Vec<_>>();
    let colours = paints.windows(2).filter(|pair| pair[0].ends_with("fill=") || pair[0].ends_with("stroke="));
    for pair in colours {
        assert!(["none", "currentColor"].contains(&pair[1]), "{}", pair[1]);
    }
}

/// The check of the registry: a way to sign in of the type `agent` or `terminal`, in a home without anything.
#[test]
fn the_agent_offers_a_way_to_sign_in_as_the_registry_requires() {
    let env = Env::bare();
    let mut editor = Editor::bare(&env);
    let answer = editor.call(
        "initialize",
        json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "ACP Registry Validator", "version": "1.0.0" },
            "clientCapabilities": {
                "terminal": true, "fs": { "readTextFile": true, "writeTextFile": true },
                "_meta": { "terminal_output": true, "terminal-auth": true },
            },
        }),
    );
    let methods = answer["authMethods"].as_array().unwrap();
    let kinds: Vec<&str> = methods.iter().map(|method| method["type"].as_str().unwrap_or("agent")).collect();
    assert_eq!(kinds, ["agent", "terminal"], "{answer:#}");
}
