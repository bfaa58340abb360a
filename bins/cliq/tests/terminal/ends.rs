//! The terminal is usable after each end of the screen: left, ended by signals, killed, suspended, resized.

use std::process::Command;

use cliq_testkit::Terminal;
use cliq_testkit::machine::{Machine, wait_for};

use super::terminal;
use crate::commands::tmux::no_tmux;

/// Process of the screen, by the home of its machine.
fn process(machine: &Machine) -> u32 {
    let home = format!("CLIQ_HOME={}", machine.home.display());
    wait_for("the process of the screen", || {
        let entries = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
        let mut pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.find(|pid| {
            let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            let is_screen = read("cmdline").starts_with(b"cliq\0ui\0");
            is_screen && String::from_utf8_lossy(&read("environ")).contains(&home)
        })
    })
}

fn send(signal: &str, pid: u32) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().unwrap().success());
}

/// The terminal has its usual screen and modes, and a shell that echoes what is typed.
#[track_caller]
fn is_usable(terminal: &Terminal, mark: &str) {
    wait_for("the usual screen", || (terminal.state("#{alternate_on}") == "0").then_some(()));
    wait_for("the cursor", || (terminal.state("#{cursor_flag}") == "1").then_some(()));
    assert_eq!(terminal.state("#{mouse_any_flag}#{mouse_sgr_flag}"), "00");
    terminal.command(&format!(
        "echo {mark}-$((20+3)); stty -a | tr ' ;' '\\n\\n' | grep -x -e icanon -e echo -e isig | tr '\\n' ' '"
    ));
    let screen = terminal.shows(&format!("{mark}-23"));
    let modes = terminal.waits("its modes", |screen| screen.contains("isig icanon echo"));
    assert!(screen.contains(&format!("echo {mark}-$((20+3))")), "what is typed is echoed: {screen}\n{modes}");
}

#[test]
fn terminal_is_usable_after_every_end() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    let project = machine.project("p");
    let terminal = terminal(&machine, &project, 80, 24);
    for (mark, signal) in [("killed", "-KILL"), ("ended", "-TERM"), ("hung", "-HUP"), ("left", "q")] {
        terminal.command("clear; cliq ui --mouse");
        terminal.shows("No runs yet");
        assert_eq!(terminal.state("#{alternate_on}"), "1");
        if signal == "q" {
            terminal.press(&["q"]);
        } else {
            send(signal, process(&machine));
        }
        is_usable(&terminal, mark);
    }
}

#[test]
fn screen_survives_a_stop_and_changes_of_its_size() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    let project = machine.project("p");
    let terminal = terminal(&machine, &project, 120, 30);
    terminal.command("cd /; cliq -C \"$OLDPWD\"");
    terminal.shows("No runs yet");
    terminal.press(&["q"]);
    terminal.command("cliq ui");
    terminal.shows("No runs yet");
    terminal.press(&["C-z"]);
    wait_for("the usual screen", || (terminal.state("#{alternate_on}") == "0").then_some(()));
    terminal.command("echo back; fg");
    terminal.shows("No runs yet");
    for (columns, rows) in [(60, 20), (24, 8), (20, 5), (300, 100), (80, 24)] {
        terminal.resize(columns, rows);
        let wanted = if columns < 24 { "at least 24" } else { "No runs yet" };
        terminal.shows(wanted);
    }
    terminal.press(&["?"]);
    terminal.shows("previous, next line");
    terminal.press(&["Escape", "q"]);
    is_usable(&terminal, "left");
}

#[test]
fn screen_needs_a_terminal_and_lines_do_not() {
    let machine = Machine::new();
    let output = machine.cliq(&["ui"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cliq runs"), "{output:?}");
    // Without a terminal, `cliq` alone prints its help as before.
    let output = machine.cliq(&[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Usage: cliq"), "{output:?}");
}
