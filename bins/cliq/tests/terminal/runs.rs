//! `cliq runs` and the lines of `cliq ui --plain`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use cliq_testkit::machine::{Machine, wait_for};
use serde_json::Value;

use super::terminal;
use crate::commands::tmux::no_tmux;
use crate::reviews::waiting::Waiting;

const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[31mRed \u{202e}title 漢字";

fn list(machine: &Machine, arguments: &[&str]) -> Vec<Value> {
    let text = machine.ok(&[&["runs", "--json"], arguments].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    document["runs"].as_array().unwrap().clone()
}

#[test]
fn runs_of_all_projects_are_listed_and_filtered() {
    let machine = Machine::new();
    machine.chain("quick", &["echo one", "echo two"]);
    machine.chain("wrong", &["echo one", "exit 3"]);
    assert_eq!(list(&machine, &[]).len(), 0);
    for (project, team, times) in [("first", "quick", 2), ("second", "wrong", 1)] {
        let dir = machine.project(project);
        let dir = dir.to_str().unwrap();
        machine.ok(&["-C", dir, "assemble", &format!("@local/{team}")]);
        for n in 0..times {
            machine.ok(&["-C", dir, "req", "-m", &format!("{HOSTILE} {project} n{n}")]);
            machine.cliq(&["-C", dir, "run", "--headless"]);
        }
    }
    let all = list(&machine, &[]);
    let titles: Vec<&str> = all.iter().map(|run| run["title"].as_str().unwrap()).collect();
    let ends = |n: usize, end: &str| titles[n].ends_with(end);
    assert!(ends(0, "second n0") && ends(1, "first n1") && ends(2, "first n0"), "{titles:?}");
    let states: Vec<&str> = all.iter().map(|run| run["state"].as_str().unwrap()).collect();
    assert_eq!(states, ["escalated", "completed", "completed"]);
    let last: Vec<bool> = all.iter().map(|run| run["is_last"].as_bool().unwrap()).collect();
    assert_eq!(last, [true, true, false], "earlier runs are in the list too");
    assert_eq!(all[1]["phases_done"], 2);
    assert_eq!(list(&machine, &["--state", "escalated"]).len(), 1);
    assert_eq!(list(&machine, &["first"]).len(), 2);
    assert_eq!(list(&machine, &["first", "n1"]).len(), 1);
    assert_eq!(list(&machine, &["-n", "1"]).len(), 1);
    let second = machine.path("second");
    assert_eq!(list(&machine, &["-C", second.to_str().unwrap(), "--here"]).len(), 1);
    // A run whose record cannot be read is named, and not left out without a word.
    let earlier = all[2]["id"].as_str().unwrap();
    let journal = machine.path("first").join(".cliq/history").join(earlier).join("journal.jsonl");
    let kept = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, "{\"v\": 99, no record\n{}\n").unwrap();
    let output = machine.cliq(&["runs"]);
    let warning = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(warning.contains("warning:") && warning.contains(earlier), "{warning}");
    std::fs::write(&journal, kept).unwrap();
    let table = machine.ok(&["runs"]);
    assert!(table.starts_with(" RUN"), "{table}");
    // Text of others reaches no terminal as a control sequence, and turns nothing around.
    assert!(!table.contains('\u{1b}') && !table.contains('\u{202e}') && table.contains("漢字"), "{table}");
}

#[test]
fn list_fits_narrow_terminals() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    machine.chain("quick", &["echo one"]);
    let dir = machine.project("narrow");
    machine.ok(&["-C", dir.to_str().unwrap(), "assemble", "@local/quick"]);
    machine.ok(&["-C", dir.to_str().unwrap(), "req", "-m", &"long ".repeat(30)]);
    machine.ok(&["-C", dir.to_str().unwrap(), "run", "--headless"]);
    let terminal = terminal(&machine, &dir, 60, 20);
    terminal.command("clear; cliq runs; cliq status; echo end-$((1+1))");
    let screen = terminal.shows("end-2");
    let rows = screen.lines().filter(|line| line.contains("completed"));
    assert!(rows.clone().count() >= 2, "{screen}");
    let wrapped = screen.lines().filter(|line| line.trim_start().starts_with("long long")).count();
    assert!(wrapped <= 3, "a row takes one line: {screen}");
}

#[test]
fn plain_lines_tell_what_changes() {
    let waiting = Waiting::new("reviewer: ann");
    let mut child = Command::new(env!("CARGO_BIN_EXE_cliq"))
        .args(["ui", "--plain"])
        .env("CLIQ_HOME", &waiting.machine.home)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let (sender, received) = std::sync::mpsc::channel();
    std::thread::spawn(move || lines.for_each(|line| drop(sender.send(line))));
    let mut heard = Vec::new();
    let mut hears = |what: &str| {
        wait_for(what, || {
            heard.extend(received.try_iter());
            heard.iter().any(|line: &String| line.contains(what)).then_some(())
        });
    };
    hears("no run is active, and none ended today");
    waiting.start(&["--headless"]);
    waiting.review();
    hears("needs you: approval waits for ann");
    waiting.ok(&["review", "approve"]);
    waiting.end();
    hears("completed, 3 of 3 phases done");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        heard
            .iter()
            .all(|line| line.starts_with("Write notes. (project, run ") || line.starts_with("no run")),
        "{heard:?}"
    );
}
