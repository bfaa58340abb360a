//! Real builds in a sandbox: a Rust, a Node and a Python project, without network.

use std::process::Command;

use cliq_testkit::env::has_program;

use crate::sandbox::world::{World, mechanisms};

/// Builds and tests a project by a script. `exceptions` are more fields of the sandbox.
fn builds(files: &[(&str, &str)], script: &str, exceptions: &str, made: &str) {
    for mechanism in mechanisms() {
        let workflow = format!(
            "workflow:
  phases:
    - name: build
      type: exec
      sandbox: {{profile: workspace, network: none{exceptions}}}
      commands: [{{name: build, run: '{script}'}}]
"
        );
        let world = World::new(&workflow, &[]);
        world.cliq(&["settings", "set", "-g", "sandbox.mechanism", mechanism]).expect(0);
        files.iter().for_each(|(name, text)| world.env.write(name, text));
        let output = cliq_testkit::env::done(
            &world.command(&["run", "--headless"]).env_remove("HOME").env("HOME", home()).output().unwrap(),
        );
        output.expect(0);
        assert!(world.env.exists(made), "{mechanism}: {made}");
    }
}

/// Toolchains are in the real home.
fn home() -> String {
    std::env::var("HOME").unwrap()
}

#[test]
fn rust_project() {
    let cargo = [
        ("Cargo.toml", "[package]\nname = \"t\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
        ("src/lib.rs", "#[test]\nfn adds() {\n    assert_eq!(1 + 1, 2);\n}\n"),
    ];
    builds(&cargo, "cargo test --offline", "", "target/debug");
}

#[test]
fn node_project() {
    if !has_program("npm") {
        return cliq_testkit::not_run("there is no npm");
    }
    let package = r#"{"name": "t", "version": "1.0.0", "scripts": {"test": "node --test"}}"#;
    let test = "const test = require('node:test'); const assert = require('node:assert'); test('adds', () => assert.equal(1 + 1, 2));";
    let files = [("package.json", package), ("t.test.js", test)];
    builds(
        &files,
        "npm install --offline --no-audit --no-fund && npm test",
        ", write: [~/.npm]",
        "package-lock.json",
    );
}

#[test]
fn python_project() {
    let is_there =
        Command::new("python3").args(["-c", "import venv"]).status().is_ok_and(|status| status.success());
    if !is_there {
        return cliq_testkit::not_run("there is no Python with venv");
    }
    let test = "import unittest, tempfile\n\nclass T(unittest.TestCase):\n    def test_adds(self):\n        with tempfile.TemporaryDirectory():\n            self.assertEqual(1 + 1, 2)\n";
    let files = [("test_t.py", test)];
    builds(
        &files,
        "python3 -m venv --without-pip .venv && .venv/bin/python -m unittest",
        "",
        ".venv/bin/python",
    );
}
