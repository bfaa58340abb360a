//! The dashboard in a real Chromium: `browser.mjs` is the person, this is the machine.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::machine::Machine;

/// Each phase goes on when the script says so, however slow the machine is.
const TEAM: &str = "description: Builds, checks, mends.
inputs: [{name: who, description: Whom it is for, required: true}]
workflow:
  phases:
    - name: build
      type: exec
      commands: [{name: build, run: 'until test -e ../../go-build; do sleep 0.05; done; echo built for $(inputs.who)'}]
    - name: quality
      type: gate
      agent: rules
      depends_on: [build]
      max_iterations: 3
      commands: [{name: good, run: 'test -e mended || { echo it is broken; exit 4; }'}]
      rules: {good: mend}
    - name: ship
      type: exec
      depends_on: [quality]
      commands: [{name: ship, run: 'echo line 1; until test -e ../../go-ship; do sleep 0.05; done; for n in 2 3 4 5 6 7 8; do echo line $n; sleep 0.1; done'}]
  support:
    - name: mend
      type: exec
      commands: [{name: mend, run: 'until test -e ../../go-mend; do sleep 0.05; done; touch mended'}]
";

/// Returns the directory of the browser driver, if it is installed.
fn modules() -> Option<PathBuf> {
    let modules = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/node/node_modules");
    let has = |program: &str| {
        Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
    };
    if has("node")
        && has("chromium")
        && modules.join("playwright-core").exists()
        && modules.join("axe-core").exists()
    {
        return Some(modules.canonicalize().unwrap());
    }
    cliq_testkit::not_run(
        "there is no chromium, node, or target/node with playwright-core and axe-core (./test makes it)",
    );
    None
}

#[test]
fn a_person_at_the_dashboard() {
    let Some(modules) = modules() else { return };
    let machine = Machine::new();
    machine.team("show", TEAM);
    machine.chain("long", &["sleep 600"]);
    let mut server = machine.serve();
    machine.keep_port(&server);
    let pictures = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("dashboard");
    std::fs::create_dir_all(&pictures).unwrap();
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/server/browser.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .args([machine.ok(&["server", "open"]).trim(), pictures.to_str().unwrap()])
        .env("NODE_MODULES", modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut reply = node.stdin.take().unwrap();
    let mut said = Vec::new();
    for line in BufReader::new(node.stdout.take().unwrap()).lines().map_while(Result::ok) {
        println!("{line}");
        match line.split_once(' ').unwrap_or((&line, "")) {
            ("RESTART", _) => {
                server.kill();
                server = machine.serve();
            }
            ("GO", phase) => std::fs::write(machine.home.join(format!("go-{phase}")), "").unwrap(),
            ("WAIT", phase) => std::fs::remove_file(machine.home.join(format!("go-{phase}"))).unwrap(),
            _ => {
                said.push(line);
                continue;
            }
        }
        writeln!(reply, "done").unwrap();
        said.push(line);
    }
    assert!(node.wait().unwrap().success(), "{}", said.join("\n"));
    assert_eq!(said.last().map(String::as_str), Some("ALL DONE"));
}
