//! The studio in a real Chromium: `studio.mjs` is two people who write a team, this is the machine.

use cliq_scripted_model::{Behavior, Script, ScriptedModel};
use cliq_testkit::machine::Machine;
use serde_json::{Value, json};

use super::browser::{drive, modules};

/// Replies of the model: to the writer, and to those who have teams made and changed.
fn script() -> Script {
    let team = |description: &str| {
        format!(
            "name: \"@local/minutes\"\ndescription: {description}\nworkflow:\n  phases:\n    - {{name: scribe, type: standard, agent: openai-api}}\n"
        )
    };
    let answer = |document: Value| format!("```json\n{document}\n```");
    let made = answer(
        json!({"team_yml": team("Writes minutes"), "roles": [{"name": "scribe", "content": "Write the minutes.\n"}]}),
    );
    let changed = answer(json!({"team_yml": team("Writes short minutes"), "roles": []}));
    let scene = |text: &str, reply: &str| json!({"contains": [text], "replies": [{"text": reply}]});
    let scenes = json!({"scenes": [
        scene("You design teams of agents.", &made),
        scene("You improve teams of agents.", &changed),
        scene("You are the writer agent.", "Good morning to all readers."),
    ]});
    serde_json::from_value(scenes).unwrap()
}

/// A team of three phases with a gate: written, tried, installed, run and found without a terminal. Two people at one file, a model that makes and
/// changes drafts, pages without script, and the look of all pages.
#[test]
fn people_write_a_team_in_the_studio() {
    let Some(modules) = modules() else { return };
    let model = ScriptedModel::start(script(), Behavior::default()).unwrap();
    let machine = Machine::new().settings(&json!({
        "agents": {"openai-api": {"base_url": model.base("openai"), "model": "scripted", "api_key": "none"}},
        "builder": {"provider": "openai", "base_url": model.base("openai"), "model": "scripted", "api_key": "none"},
    }));
    let _server = machine.serve();
    let link = machine.ok(&["server", "open"]);
    let made: Value = serde_json::from_str(
        &machine.ok(&["server", "token", "create", "--label", "reader", "--scope", "read", "--json"]),
    )
    .unwrap();
    drive(&modules, "studio.mjs", &[link.trim(), made["token"].as_str().unwrap()], |_, _| false);
    let file = std::fs::read_to_string(machine.home.join("teams/@local/morning/team.yml")).unwrap();
    assert!(file.contains("name: \"@local/morning\""), "{file}");
}

/// Completions at places of a team.yml.
#[test]
fn editor_offers_fields_and_values() {
    let has_node = std::process::Command::new("node").arg("--version").output().is_ok();
    if !has_node {
        cliq_testkit::not_run("there is no node");
        return;
    }
    let machine = Machine::new();
    let schema = machine.path("schema.json");
    std::fs::write(&schema, machine.ok(&["team", "schema"])).unwrap();
    let tests = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = std::process::Command::new("node")
        .arg(tests.join("tests/server/places.mjs"))
        .arg(tests.join("../../crates/cliq-dashboard/studio").canonicalize().unwrap())
        .arg(&schema)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
