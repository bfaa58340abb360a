//! `cliq status --watch` on the alternate screen.

use cliq_testkit::machine::{Machine, wait_for};

use super::terminal;
use crate::commands::tmux::no_tmux;

#[test]
fn status_is_watched_on_the_alternate_screen() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    machine.chain("waits", &["echo one", "until test -e go; do sleep 0.1; done"]);
    let project = machine.project("p");
    let dir = project.to_str().unwrap();
    machine.ok(&["-C", dir, "assemble", "@local/waits"]);
    machine.ok(&["-C", dir, "req", "-m", "Wait"]);
    let mut run = std::process::Command::new(env!("CARGO_BIN_EXE_cliq"))
        .args(["-C", dir, "run", "--headless"])
        .env("CLIQ_HOME", &machine.home)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let terminal = terminal(&machine, &project, 60, 16);
    wait_for("the run works", || machine.ok(&["-C", dir, "status"]).contains("running").then_some(()));
    terminal.command("cliq status --watch");
    terminal.shows("q leaves, the run goes on");
    assert_eq!(terminal.state("#{alternate_on}"), "1");
    let screen = terminal.screen();
    assert!(screen.lines().all(|line| line.chars().count() <= 60), "{screen}");
    // Left, the run goes on; watched to its end, the end stays on the usual screen.
    terminal.press(&["q"]);
    terminal.shows("the run goes on; `cliq status`");
    assert_eq!(terminal.state("#{alternate_on}"), "0");
    terminal.command("clear; cliq status --watch");
    terminal.shows("q leaves, the run goes on");
    std::fs::write(project.join("go"), "").unwrap();
    terminal.waits("the end", |screen| screen.contains("prompt>") && screen.contains("completed"));
    assert_eq!(terminal.state("#{alternate_on}"), "0");
    run.wait().unwrap();
}
