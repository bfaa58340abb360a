//! Runs of a server: the same screen, over its API.

use cliq_testkit::machine::Machine;
use serde_json::json;

use super::terminal;
use crate::commands::tmux::no_tmux;

#[test]
fn runs_of_a_server_are_followed_steered_and_cancelled() {
    if no_tmux() {
        return;
    }
    let machine = Machine::new();
    machine.chain("slow", &["echo first words", "echo second; sleep 600", "echo third"]);
    let server = machine.serve();
    let id = server.start_run(&json!({"team": "@local/slow", "requirement": "Serve people"}));
    let elsewhere = machine.path(".");
    let terminal = terminal(&machine, &elsewhere, 110, 30);
    terminal.command("cliq");
    terminal.shows("Serve people");
    terminal.waits("it works", |screen| screen.contains("1 working") && screen.contains("on the server"));
    // Phases that have not started are there too.
    terminal.waits("all phases", |screen| screen.contains("3 · p2") && screen.contains("pending"));
    // The log of the phase at work, and of the one before.
    terminal.waits("the log", |screen| screen.contains("second"));
    terminal.press(&["Enter", "Home", "Down"]);
    terminal.shows("first words");
    terminal.press(&["Escape", "s"]);
    terminal.text("Go on");
    terminal.press(&["C-s"]);
    terminal.shows("sent to the run");
    assert!(server.run(&id)["steering"].to_string().contains("Go on"));
    terminal.press(&["x", "y"]);
    terminal.shows("the run is being cancelled");
    terminal.waits("its state", |screen| screen.contains("■ Serve people"));
    assert_eq!(server.ended(&id)["state"], "cancelled");
    // A browser gets a link that signs in once and leads to the run.
    terminal.press(&["o"]);
    let screen = terminal.shows("/signin?code=");
    assert!(
        screen.contains("http://127.0.0.1") && screen.contains("open this link in a browser"),
        "{screen}"
    );
    terminal.press(&["Escape"]);
    terminal.waits("the dialog is closed", |screen| !screen.contains("open this link"));
    // The same run again, as a new one.
    terminal.press(&["R", "y"]);
    terminal.shows("a new run was started");
    terminal.waits("it works", |screen| screen.contains("1 working"));
    // Without the server its runs stay in the list, and actions say what is missing.
    machine.ok(&["server", "stop"]);
    assert!(server.ends_well());
    terminal.shows("no server is running");
    terminal.waits("the run is there", |screen| {
        screen.contains("1 working") && screen.contains("▸ Serve people")
    });
    terminal.press(&["x", "y"]);
    terminal.shows("`cliq server start` starts one");
    let server = machine.serve();
    terminal.waits("it is back", |screen| !screen.contains("no server is running"));
    terminal.press(&["x", "y"]);
    terminal.shows("the run is being cancelled");
    terminal.waits("nothing works", |screen| screen.contains("0 working"));
    terminal.press(&["q"]);
    drop(server);
}
