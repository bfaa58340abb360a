//! Cases: workspaces, expressions, ends, and cases from runs.

use std::fmt::Write;
use std::process::Command;

use crate::eval::world::World;

#[test]
fn workspaces_come_from_folders_and_revisions() {
    let world = World::new();
    world.role("one", "answer: right\nscript: cat given.txt > answer.txt; echo more >> given.txt\n");
    world.env.write("folder/given.txt", "from the folder\n");
    world.env.write("repo/given.txt", "first\n");
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=a", "-c", "user.email=a@b.c"])
            .args(arguments)
            .current_dir(world.env.path("repo"));
        assert!(command.output().unwrap().status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "."]);
    git(&["commit", "-qm", "one"]);
    git(&["tag", "v1"]);
    world.env.write("repo/given.txt", "second\n");
    git(&["commit", "-qam", "two"]);
    let cases = "  - {name: folder, requirement: x, workspace: folder, checks: [{file: answer.txt, matches: ^from the folder$}]}
  - {name: tag, requirement: x, workspace: {git: repo, revision: v1}, checks: [{file: answer.txt, matches: first}]}
  - {name: head, requirement: x, workspace: {git: repo}, checks: [{file: answer.txt, matches: second}]}
";
    world.suite("repeats: 2", cases, &["one"]);
    assert_eq!(world.report(&[])["counts"]["passed"], 6);
    assert_eq!(world.env.read("folder/given.txt"), "from the folder\n", "the original stays");
    world.suite("repeats: 1", &cases.replace("v1", "v9"), &["one"]);
    world.eval(&["suite.yml"]).expect(1).says("cannot clone");
    assert_eq!(
        world.eval(&["list", "--json"]).json()["evaluations"].as_array().unwrap().len(),
        1,
        "nothing is left of it"
    );
}

#[test]
fn expressions_and_ends_are_checked() {
    let world = World::new();
    let workflow = "workflow:
  phases:
    - {name: worker, type: standard, agent: worker}
    - {name: last, type: exec, depends_on: [worker], commands: [{name: c, run: 'test ! -e stop'}]}
";
    world.env.team(workflow, &[("worker", "ok\nhand last '{\"version\":1,\"phase_type\":\"standard\",\"phase\":\"worker\",\"agent\":\"worker\",\"data\":{\"words\":120},\"text\":\"t\"}'\ngrep -q stop \"$CLIQ_DIR/requirement.md\" && touch stop\ncomplete\n")]);
    let checks = |expression: &str| format!("[{{name: e, expr: '{expression}'}}]");
    let mut cases = String::new();
    for (name, expression) in [
        ("more", "handoff.worker.words > 100"),
        ("less", "handoff.worker.words < 100"),
        ("end", "end == \"completed\" && duration < 60.0"),
        ("missing", "handoff.other.x == 1"),
    ] {
        writeln!(cases, "  - {{name: {name}, requirement: go, checks: {}}}", checks(expression)).unwrap();
    }
    cases.push_str("  - {name: escalates, requirement: stop, checks: [{end: escalated}]}\n  - {name: must-complete, requirement: stop}\n");
    world.env.write(
        "suite.yml",
        &format!("name: test\nrepeats: 1\ncases:\n{cases}\nvariants: [{{name: one, team: ../team}}]\n"),
    );
    let report = world.report(&[]);
    let passed: Vec<bool> = report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| case["variants"]["one"]["passed"] == 1)
        .collect();
    assert_eq!(passed, [true, false, true, false, true, false]);
    let reason = report["trials"][3]["reason"].as_str().unwrap();
    assert!(reason.contains("handoff.other.x"), "{reason}");
}

#[test]
fn case_is_added_from_a_run() {
    let world = World::new();
    world.role("one", "answer: right\n");
    world.env.write("given.txt", "as it was\n");
    let mut git = Command::new("git");
    assert!(git.args(["init", "-q"]).current_dir(world.env.work()).status().unwrap().success());
    world.env.cliq(["init"]).expect(0);
    world.env.cliq(["assemble", "../team"]).expect(0);
    world.env.cliq(["req", "-m", "Greet \"politely\".\nWith care."]).expect(0);
    world.env.write("../team/roles/worker.md", "answer: right\nscript: echo changed > given.txt\n");
    world.env.cliq(["assemble", "../team"]).expect(0);
    world.env.cliq(["run", "--headless"]).expect(0);
    world
        .env
        .cliq(["eval", "add", "--to", "made/suite.yml"])
        .expect(0)
        .says("has the files that the run started with");
    assert_eq!(world.env.read("made/cases/greet-politely/given.txt"), "as it was\n");
    let suite = world.env.read("made/suite.yml");
    assert!(suite.contains("requirement: \"Greet \\\"politely\\\".\\nWith care.\""), "{suite}");
    world.env.cliq(["eval", "add", "--to", "made/suite.yml"]).expect(2).says("--name");
    world.env.cliq(["eval", "add", "--to", "made/suite.yml", "--name", "again"]).expect(0);
    // The team is known by its folder only: the suite names it as a person would.
    let suite = world.env.read("made/suite.yml").replace("\"@local/test\"", "../../team");
    world.env.write("made/suite.yml", &suite);
    world.env.cliq(["eval", "made/suite.yml", "--check"]).expect(0).says("2 cases");
    world.env.cliq(["eval", "made/suite.yml", "--repeats", "1"]).expect(0).says("2 of 2 trials passed");
    world.env.cliq(["eval", "add", "0123"]).expect(2).says("there is no run");
}
