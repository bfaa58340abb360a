//! `cliq demo --review`: as a new user does it.

use std::process::{Command, Stdio};

use cliq_testkit::machine::{Machine, wait_for};

#[test]
fn the_demo_asks_and_follows_the_answer() {
    let machine = Machine::new();
    let menu = machine.path("menu");
    let mut demo = Command::new(env!("CARGO_BIN_EXE_cliq"))
        .args(["demo", "--review", menu.to_str().unwrap()])
        .env("CLIQ_HOME", &machine.home)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let review = |arguments: &[&str]| {
        let output = machine.cliq(&[&["-C", menu.to_str().unwrap(), "review"], arguments].concat());
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
    };
    let shown =
        wait_for("it asks", || review(&["show", "--full"]).filter(|shown| shown.contains("waits for")));
    for said in
        ["every-dish-is-there", "+| Leek soup | 7.50 |", "The kitchen has new dishes", "--input title="]
    {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let first = shown.lines().find(|line| line.starts_with("review ")).unwrap().to_owned();
    review(&["request-changes", "-m", "We are closed on Monday."]).unwrap();
    let again = wait_for("it asks again", || {
        review(&["show", "--full"]).filter(|shown| shown.contains("waits for") && !shown.contains(&first))
    });
    assert!(again.contains("We are closed on Monday."), "{again}");
    review(&["approve", "--input", "title=Autumn"]).unwrap();
    assert!(demo.wait().unwrap().success());
    let published = std::fs::read_to_string(menu.join("published/menu.md")).unwrap();
    assert!(published.starts_with("# Autumn\n\nServed all day.\n"), "{published}");
    assert!(
        published.contains("| Plum cake | 5.80 |") && published.contains("We are closed on Monday."),
        "{published}"
    );
}
