//! A person who works with keys alone: a new run, a comment, a second round, an approval, a question, a cancelled run.

use std::fs;

use cliq_testkit::machine::{Machine, wait_for};

use super::terminal;
use crate::commands::tmux::no_tmux;
use crate::reviews::comments::{DEVELOPER, TEAM, repository};

/// Whether a line has a part in reverse.
fn is_reversed(line: &str) -> bool {
    let sequences = line.split("\u{1b}[").skip(1).filter_map(|part| part.split_once('m'));
    sequences.flat_map(|(codes, _)| codes.split(';')).any(|code| code == "7")
}

#[test]
fn person_starts_comments_and_approves_with_keys_only() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    let project = machine.project("shop");
    repository(&project);
    machine.team("review", TEAM);
    machine.agent("review", "dev", DEVELOPER, &["developer"]);
    let terminal = terminal(&machine, &project, 100, 32);
    terminal.command("cliq");
    terminal.shows("No runs yet");

    // A new run: the team is chosen, the requirement typed. A form without a requirement says so.
    terminal.press(&["n"]);
    terminal.shows("new run");
    terminal.press(&["C-s"]);
    terminal.shows("the requirement is empty");
    terminal.text("Greet people");
    terminal.press(&["BTab"]);
    for _ in 0..20 {
        if terminal.screen().contains("‹@local/review›") {
            break;
        }
        terminal.press(&["Right"]);
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    terminal.shows("‹@local/review›");
    terminal.press(&["C-s"]);
    terminal.waits("the gate waits", |screen| screen.contains("approval waits for ann"));
    let screen = terminal.screen();
    assert!(screen.contains("1 needs you"), "{screen}");
    assert!(screen.contains("Greet people"), "{screen}");

    // A comment on a line of the changes.
    terminal.press(&["Enter"]);
    terminal.press(&["Tab", "Tab"]);
    terminal
        .waits("the changes", |screen| screen.contains("under review") && screen.contains("src/greet.js"));
    terminal.press(&["Enter"]);
    let cursor_is_on = |text: &str| {
        let screen = terminal.coloured_screen();
        screen.lines().any(|line| is_reversed(line) && line.contains(text))
    };
    for _ in 0..30 {
        if cursor_is_on("var greeting") {
            break;
        }
        terminal.press(&["Down"]);
        std::thread::sleep(std::time::Duration::from_millis(60));
    }
    assert!(cursor_is_on("var greeting"), "{}", terminal.screen());
    terminal.press(&["c"]);
    terminal.shows("comment on src/greet.js:3");
    terminal.text("A template is shorter.");
    terminal.press(&["C-s"]);
    terminal.shows("└ ann: A template is shorter.");

    // The request for changes takes the comment along; the second round shows what became of its line.
    terminal.press(&["a"]);
    terminal.shows("approval of @local/review");
    terminal.press(&["Right"]);
    terminal.shows("‹request changes›");
    terminal.press(&["C-s"]);
    terminal.shows("requested changes");
    wait_for("the feedback", || {
        fs::read_to_string(project.join("feedback.json"))
            .ok()
            .filter(|text| text.contains("A template is shorter."))
    });
    terminal.waits("the second round", |screen| screen.contains("answer: Uses a template now."));
    terminal.press(&["a"]);
    terminal.shows("round 2 of 3");
    terminal.press(&["C-s"]);
    terminal.shows("approved by ann");
    // The changes stay in view: those of the run, as nothing is under review any more.
    terminal.waits("the changes of the run", |screen| {
        screen.contains("these are the run's") && screen.contains("Version 2")
    });
    terminal.press(&["Escape"]);
    terminal.press(&["Up"]);
    terminal.waits("both activations of the developer", |screen| {
        screen.contains("activation developer.1") && screen.contains("developer, ")
    });
    terminal.press(&["Enter", "End"]);
    terminal.waits("the second one", |screen| screen.contains("activation developer.2"));
    terminal.press(&["Escape"]);
    terminal.press(&["Escape"]);
    terminal.shows("✓ Greet people");
    terminal.press(&["q"]);
    terminal.waits("the shell", |screen| screen.contains("prompt> cliq") && !screen.contains("Greet people"));
    let status = machine.ok(&["-C", project.to_str().unwrap(), "status", "--json"]);
    assert!(status.contains("\"COMPLETED\""), "{status}");
}

/// A team whose first phase asks a person for values, and whose second works until it is cancelled.
const QUESTION: &str = "workflow:
  phases:
    - name: ask
      type: hug
      review:
        reviewer: ann
        inputs:
          - {name: colour, label: Colour, type: select, choices: [red, blue], required: true}
          - {name: note, label: Note, type: text, required: true}
    - name: work
      type: exec
      depends_on: [ask]
      commands: [{name: paint, run: 'echo \"colour $(cat .cliq/channels/ask--work/handoff.json | tr -d \" \\n\")\"; sleep 600'}]
";

#[test]
fn person_answers_a_form_and_cancels_the_run() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    let project = machine.project("paint");
    machine.team("question", QUESTION);
    let dir = project.to_str().unwrap();
    machine.ok(&["-C", dir, "assemble", "@local/question"]);
    let terminal = terminal(&machine, &project, 80, 24);
    terminal.command("cliq ui");
    terminal.shows("No runs yet");
    terminal.press(&["n"]);
    terminal.shows("@local/question (assembled)");
    terminal.text("Paint it");
    terminal.press(&["C-s"]);
    terminal.shows("1 needs you");
    terminal.press(&["a"]);
    terminal.shows("Colour *");
    // The note is required: the form stays open, with what was chosen.
    terminal.press(&["Tab", "Right"]);
    terminal.shows("‹blue›");
    terminal.press(&["C-s"]);
    terminal.shows("Note is required");
    terminal.press(&["Tab"]);
    terminal.text("bright");
    terminal.press(&["C-s"]);
    terminal.shows("approved by ann");
    let log = terminal.waits("the log of the phase at work", |screen| screen.contains("\"colour\":\"blue\""));
    assert!(log.contains("work"), "{log}");

    // Guidance, then the end: only after a question, and not by Enter.
    terminal.press(&["s"]);
    terminal.shows("guidance for the run");
    terminal.text("Hurry");
    terminal.press(&["C-s"]);
    terminal.shows("sent to the run");
    terminal.press(&["x"]);
    terminal.shows("cancel this run?");
    terminal.press(&["Enter", "n"]);
    terminal.waits("the question is gone", |screen| !screen.contains("cancel this run?"));
    assert!(terminal.screen().contains("1 working"), "{}", terminal.screen());
    terminal.press(&["x", "y"]);
    terminal.shows("the run is cancelled");
    terminal.waits("its state", |screen| screen.contains("■ Paint it"));
    let status = machine.ok(&["-C", dir, "status", "--json"]);
    assert!(status.contains("\"CANCELLED\"") && status.contains("Hurry"), "{status}");
    // An ended run is not cancelled, and takes no guidance.
    terminal.press(&["x"]);
    terminal.shows("the run has ended");
}
