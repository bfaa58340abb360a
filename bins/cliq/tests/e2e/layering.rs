//! Who may use whom (docs/architecture.md): the dependencies in fact are those that are drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ALLOWED: &[(&str, &[&str])] = &[
    ("cliq-protocol", &[]),
    ("cliq-fs", &["cliq-protocol"]),
    ("cliq-workflow", &["cliq-protocol", "cliq-fs"]),
    ("cliq-gate", &["cliq-protocol"]),
    ("cliq-sdk", &["cliq-protocol", "cliq-fs"]),
    ("cliq-orchestrator", &["cliq-protocol", "cliq-fs", "cliq-workflow", "cliq-gate"]),
    ("cliq-agents", &["cliq-protocol", "cliq-sdk", "cliq-settings", "cliq-markers"]),
    ("cliq-settings", &["cliq-fs", "cliq-workflow"]),
    ("cliq-markers", &[]),
    ("cliq-gateway", &["cliq-fs"]),
    ("cliq-mcp", &[]),
    ("cliq-telemetry", &[]),
    ("cliq-lifecycle", &["cliq-gateway", "cliq-markers", "cliq-orchestrator", "cliq-fs"]),
    (
        "cliq-project",
        &[
            "cliq-protocol",
            "cliq-fs",
            "cliq-workflow",
            "cliq-sdk",
            "cliq-settings",
            "cliq-orchestrator",
            "cliq-agents",
            "cliq-lifecycle",
        ],
    ),
    (
        "cliq",
        &[
            "cliq-protocol",
            "cliq-fs",
            "cliq-workflow",
            "cliq-sdk",
            "cliq-settings",
            "cliq-markers",
            "cliq-gateway",
            "cliq-lifecycle",
            "cliq-mcp",
            "cliq-orchestrator",
            "cliq-agents",
            "cliq-project",
            "cliq-telemetry",
        ],
    ),
];

#[test]
fn crates_use_only_what_they_may() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let allowed: BTreeMap<_, BTreeSet<_>> =
        ALLOWED.iter().map(|(c, d)| (*c, d.iter().copied().collect())).collect();
    let packages = metadata["packages"].as_array().unwrap();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let may = allowed.get(name).unwrap_or_else(|| panic!("{name} is not in the table"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            let ours = other.starts_with("cliq");
            assert!(
                !ours || dependency["kind"] == "dev" || may.contains(other),
                "{name} must not use {other}"
            );
        }
    }
    assert_eq!(packages.len(), ALLOWED.len());
}

#[test]
fn the_machine_knows_no_disk_clock_or_process() {
    let sources = [
        include_str!("../../../../crates/cliq-orchestrator/src/engine.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/machine.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/resume.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/routing.rs"),
        include_str!("../../../../crates/cliq-gate/src/machine.rs"),
    ];
    for word in ["std::fs", "std::time", "std::process", "tokio", "jiff", "std::env", "std::thread"] {
        assert!(sources.iter().all(|source| !source.contains(word)), "the machine uses {word}");
    }
}
