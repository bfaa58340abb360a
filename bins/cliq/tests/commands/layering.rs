//! Layering of the crates (docs/architecture.md): actual dependencies are the documented ones.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ALLOWED: &[(&str, &[&str])] = &[
    ("cliq-protocol", &[]),
    ("cliq-fs", &["cliq-protocol"]),
    ("cliq-git", &[]),
    ("cliq-document", &["cliq-protocol"]),
    ("cliq-expr", &[]),
    ("cliq-workflow", &["cliq-protocol", "cliq-fs", "cliq-document", "cliq-expr"]),
    ("cliq-gate", &["cliq-protocol"]),
    ("cliq-sdk", &["cliq-protocol", "cliq-fs"]),
    ("cliq-orchestrator", &["cliq-protocol", "cliq-fs", "cliq-git", "cliq-workflow", "cliq-gate"]),
    (
        "cliq-agents",
        &[
            "cliq-protocol",
            "cliq-sdk",
            "cliq-settings",
            "cliq-markers",
            "cliq-http",
            "cliq-a2a",
            "cliq-acp",
            "cliq-workflow",
            "cliq-connectors",
            "cliq-sandbox",
            "cliq-fs",
            "cliq-coder",
            "cliq-mcp",
        ],
    ),
    ("cliq-scripted-model", &[]),
    ("cliq-coder", &["cliq-protocol", "cliq-fs"]),
    ("cliq-sandbox", &["cliq-protocol", "cliq-http"]),
    ("cliq-http", &["cliq-protocol"]),
    ("cliq-packages", &["cliq-protocol", "cliq-fs"]),
    ("cliq-connectors", &["cliq-protocol", "cliq-fs", "cliq-git", "cliq-http"]),
    ("cliq-acp", &["cliq-protocol", "cliq-fs"]),
    ("cliq-a2a", &["cliq-protocol"]),
    ("cliq-review", &["cliq-protocol", "cliq-model"]),
    ("cliq-telemetry", &["cliq-fs", "cliq-orchestrator", "cliq-protocol", "cliq-settings", "cliq-workflow"]),
    ("cliq-terminal", &["cliq-protocol", "cliq-review"]),
    ("cliq-settings", &["cliq-document", "cliq-protocol", "cliq-fs", "cliq-workflow", "cliq-review"]),
    ("cliq-markers", &[]),
    ("cliq-gateway", &["cliq-protocol", "cliq-fs", "cliq-model"]),
    ("cliq-model", &["cliq-protocol"]),
    ("cliq-store", &["cliq-fs", "cliq-gateway", "cliq-model", "cliq-protocol", "cliq-review"]),
    ("cliq-testkit", &[]),
    ("cliq-backends", BACKENDS),
    ("cliq-supervisor", SUPERVISOR),
    ("cliq-eval", EVAL),
    ("cliq-triggers", TRIGGERS),
    ("cliq-web", WEB),
    ("cliq-dashboard", DASHBOARD),
    ("cliq-server", SERVER),
    ("cliq-mcp", &["cliq-protocol"]),
    (
        "cliq-lifecycle",
        &[
            "cliq-protocol",
            "cliq-model",
            "cliq-gateway",
            "cliq-markers",
            "cliq-orchestrator",
            "cliq-fs",
            "cliq-git",
        ],
    ),
    (
        "cliq-project",
        &[
            "cliq-git",
            "cliq-protocol",
            "cliq-fs",
            "cliq-workflow",
            "cliq-sdk",
            "cliq-settings",
            "cliq-orchestrator",
            "cliq-agents",
            "cliq-gateway",
            "cliq-model",
            "cliq-lifecycle",
            "cliq-review",
            "cliq-http",
            "cliq-packages",
            "cliq-sandbox",
            "cliq-telemetry",
        ],
    ),
    (
        "cliq",
        &[
            "cliq-acp",
            "cliq-protocol",
            "cliq-fs",
            "cliq-workflow",
            "cliq-sdk",
            "cliq-settings",
            "cliq-markers",
            "cliq-http",
            "cliq-review",
            "cliq-gateway",
            "cliq-model",
            "cliq-store",
            "cliq-server",
            "cliq-lifecycle",
            "cliq-mcp",
            "cliq-backends",
            "cliq-eval",
            "cliq-triggers",
            "cliq-orchestrator",
            "cliq-agents",
            "cliq-project",
            "cliq-scripted-model",
            "cliq-packages",
            "cliq-git",
            "cliq-telemetry",
            "cliq-terminal",
            "cliq-web",
        ],
    ),
];

const BACKENDS: &[&str] = &[
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-settings",
    "cliq-http",
];
const EVAL: &[&str] = &[
    "cliq-git",
    "cliq-document",
    "cliq-protocol",
    "cliq-fs",
    "cliq-expr",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-backends",
    "cliq-settings",
    "cliq-model",
];
const SUPERVISOR: &[&str] = &[
    "cliq-git",
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-backends",
    "cliq-settings",
    "cliq-model",
    "cliq-review",
    "cliq-http",
];
const TRIGGERS: &[&str] = &[
    "cliq-document",
    "cliq-expr",
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-settings",
    "cliq-model",
    "cliq-supervisor",
];
const WEB: &[&str] = &[
    "cliq-eval",
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-lifecycle",
    "cliq-gateway",
    "cliq-model",
    "cliq-review",
    "cliq-supervisor",
    "cliq-triggers",
];
const DASHBOARD: &[&str] = &[
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-lifecycle",
    "cliq-gateway",
    "cliq-model",
    "cliq-review",
    "cliq-supervisor",
    "cliq-eval",
    "cliq-triggers",
    "cliq-web",
];
const SERVER: &[&str] = &[
    "cliq-protocol",
    "cliq-fs",
    "cliq-workflow",
    "cliq-orchestrator",
    "cliq-project",
    "cliq-settings",
    "cliq-lifecycle",
    "cliq-gateway",
    "cliq-model",
    "cliq-review",
    "cliq-http",
    "cliq-a2a",
    "cliq-supervisor",
    "cliq-mcp",
    "cliq-triggers",
    "cliq-web",
    "cliq-dashboard",
    "cliq-telemetry",
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
        include_str!("../../../../crates/cliq-orchestrator/src/engine/budget.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/ending.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/items.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/kept.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/machine.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/record.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/resume.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/retry.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/routing.rs"),
        include_str!("../../../../crates/cliq-orchestrator/src/engine/waiting.rs"),
        include_str!("../../../../crates/cliq-gate/src/machine.rs"),
        include_str!("../../../../crates/cliq-acp/src/client/machine.rs"),
        include_str!("../../../../crates/cliq-acp/src/client/machine/events.rs"),
        include_str!("../../../../crates/cliq-acp/src/client/machine/incoming.rs"),
        include_str!("../../../../crates/cliq-acp/src/client/machine/turn.rs"),
    ];
    for word in ["std::fs", "std::time", "std::process", "tokio", "jiff", "std::env", "std::thread"] {
        assert!(sources.iter().all(|source| !source.contains(word)), "the machine uses {word}");
    }
}

/// The environment is a value (`Environment`), so that a server can have several. Exceptions are programs of their own: the shim
/// in a pane, an agent; and tests.
#[test]
fn libraries_do_not_read_the_environment() {
    const MAY: [&str; 4] = [
        "cliq-orchestrator/src/tmux/shim.rs",
        "cliq-sdk/src/run.rs",
        "cliq-settings/src/environment.rs",
        "cliq-testkit/src/",
    ];
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    let packages = std::fs::read_dir(&crates).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let found = sources_below(&packages.collect::<Vec<_>>());
    assert!(found.len() > 100, "the sources are not where this test looks");
    for path in found.iter().filter(|path| !MAY.iter().any(|may| path.to_string_lossy().contains(may))) {
        let text = std::fs::read_to_string(path).unwrap();
        for call in ["env::var", "env::home_dir", "env::current_dir"] {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            assert!(!code.clone().any(|line| line.contains(call)), "{} uses {call}", path.display());
        }
    }
}

/// Calls of git have one environment, one set of settings and one way to fail: those of `cliq-git`.
#[test]
fn only_cliq_git_names_the_program_git() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let sources: Vec<_> = packages.chain([root.join("bins/cliq")]).map(|path| path.join("src")).collect();
    for path in sources_below(&sources) {
        let place = path.to_string_lossy();
        if place.contains("crates/cliq-git/") || place.contains("/tests") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for call in ["Command::new(\"git\")", "find_program(\"git\")", "\"git\".into()", "args([\"git\""] {
            assert!(!code.contains(call), "{place} runs git by {call}: cliq-git has the operations");
        }
        let is_user = code.contains("cliq_git::");
        for call in [".run([", ".run(&[", ".text([", ".ask(["] {
            let is_raw = is_user && code.contains(&format!("git{call}"));
            assert!(!is_raw, "{place} calls git with arguments: cliq-git has the operations");
        }
    }
}

/// One test program per crate lists its modules itself: a file that is not listed would never run.
#[test]
fn every_test_is_run() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let packages = std::fs::read_dir(root.join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let tests: Vec<_> = packages.chain([root.join("bins/cliq")]).map(|path| path.join("tests")).collect();
    for dir in tests.iter().filter(|dir| dir.is_dir()) {
        let main =
            std::fs::read_to_string(dir.join("main.rs")).unwrap_or_else(|_| panic!("{dir:?} has no main.rs"));
        let manifest = std::fs::read_to_string(dir.join("../Cargo.toml")).unwrap();
        assert!(
            manifest.contains("path = \"tests/main.rs\""),
            "{dir:?} is a program that Cargo.toml does not name"
        );
        let mut modules = vec![(dir.clone(), main)];
        let mut listed = BTreeSet::from([dir.join("main.rs")]);
        while let Some((dir, text)) = modules.pop() {
            for line in text.lines() {
                let name = line
                    .trim_start_matches("pub(crate) ")
                    .trim_start_matches("pub ")
                    .strip_prefix("mod ")
                    .and_then(|line| line.strip_suffix(';'));
                let Some(name) = name else { continue };
                let files = [dir.join(format!("{name}.rs")), dir.join(name).join("mod.rs")];
                let Some(file) = files.into_iter().find(|file| file.exists()) else { continue };
                modules.push((dir.join(name), std::fs::read_to_string(&file).unwrap()));
                listed.insert(file);
            }
        }
        for file in sources_below(std::slice::from_ref(dir)) {
            assert!(listed.contains(&file), "{} is in no module: its tests never run", file.display());
        }
    }
}

/// Returns the Rust files below directories.
pub(crate) fn sources_below(dirs: &[std::path::PathBuf]) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in dirs.iter().flat_map(|dir| std::fs::read_dir(dir).into_iter().flatten()) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(sources_below(&[path]));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}
