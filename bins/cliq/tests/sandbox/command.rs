//! `cliq agent sandbox`.

use std::fs;
use std::process::Command;

use crate::sandbox::world::{World, mechanisms};

const NOTHING: &str =
    "workflow:\n  phases:\n    - {name: a, type: exec, commands: [{name: c, run: 'true'}]}\n";

#[test]
fn command_runs_in_a_sandbox_around_this_directory() {
    let world = World::new(NOTHING, &[]);
    let home = world.outside("home").to_str().unwrap().to_owned();
    let temporary = world.outside("temporary");
    fs::create_dir(&temporary).unwrap();
    fs::create_dir(world.outside("home/open")).unwrap();
    for mechanism in mechanisms() {
        let run = |options: &[&str], script: &str| {
            let arguments =
                [&["agent", "sandbox", "--mechanism", mechanism], options, &["--", "sh", "-c", script]]
                    .concat();
            cliq_testkit::env::done(&world.command(&arguments).env("TMPDIR", &temporary).output().unwrap())
        };
        run(&[], "echo here > made; echo temporary > $TMPDIR/x; cat $TMPDIR/x").expect(0).says("temporary");
        assert_eq!(world.env.read("made"), "here\n");
        run(&[], &format!("cat {home}/.ssh/id_rsa")).expect(1);
        run(&[], &format!("cat {home}/notes.txt")).expect(0).says("a note");
        run(&["--profile", "strict"], &format!("cat {home}/notes.txt")).expect(1);
        run(&["--profile", "strict", "--read", "~"], &format!("cat {home}/notes.txt")).expect(0);
        run(&["--profile", "strict", "--read", "~"], &format!("cat {home}/.netrc")).expect(1);
        run(&["--read", "~/.netrc"], &format!("cat {home}/.netrc")).expect(0).says("the secret");
        run(&[], &format!("echo x > {home}/new")).expect(2);
        run(&["--write", "~/open"], &format!("echo x > {home}/open/new-{mechanism}")).expect(0);
        assert!(world.outside(&format!("home/open/new-{mechanism}")).exists());
        run(&["--write", "~"], &format!("echo x >> {home}/notes.txt && cat {home}/.netrc")).expect(1);
        assert!(fs::read_to_string(world.outside("home/notes.txt")).unwrap().ends_with("x\n"));
        // In a directory around the home directory, too.
        let mut above = world.command(&[
            "agent",
            "sandbox",
            "--mechanism",
            mechanism,
            "--",
            "cat",
            "home/.netrc",
            "outside.txt",
        ]);
        let output = cliq_testkit::env::done(&above.current_dir(world.outside("")).output().unwrap());
        let output = output.expect(1).says("outside");
        assert!(!output.stdout.contains("secret"), "{}", output.stdout);
        run(&["--env", "SECRET_TOKEN"], "echo $SECRET_TOKEN").expect(0).says("the secret");
        // The status of the command is the status of the whole.
        run(&[], "exit 7").expect(7);
        run(&[], "kill -TERM $$").expect(143);
        run(&["--network", "none"], "python3 -c 'import socket; socket.socket()'")
            .expect(1)
            .says("Operation not permitted");
    }
    // The directory for temporary files goes with the command.
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn programs_that_git_and_cliq_run_are_protected() {
    let world = World::new(NOTHING, &[]);
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).current_dir(world.env.work()).output().unwrap();
        cliq_testkit::env::done(&output).expect(0)
    };
    git(&["init", "-q"]);
    git(&["config", "user.name", "T"]);
    git(&["config", "user.email", "t@example.com"]);
    // Landlock alone cannot do that (docs/sandbox.md).
    if !mechanisms().contains(&"bubblewrap") {
        return;
    }
    let run = |script: &str| {
        world.cliq(&["agent", "sandbox", "--mechanism", "bubblewrap", "--", "sh", "-c", script])
    };
    for file in
        [".git/config", ".git/hooks/pre-commit", ".git/commondir", ".cliq/settings.json", ".cliq/team.yml"]
    {
        let refused = run(&format!("echo x > {file}"));
        assert_ne!(refused.code, 0, "{file}");
    }
    run("mv .git elsewhere || mv .cliq elsewhere").expect(1);
    run("git add made 2>/dev/null; echo x > made && git add made && git commit -qm made").expect(0);
    assert!(git(&["log", "--oneline"]).stdout.contains("made"));
    assert!(!world.env.exists(".git/commondir"), "the guard goes with the command");
}

#[test]
fn requests_that_cannot_be_met_are_refused() {
    let world = World::new(NOTHING, &[]);
    let run = |options: &[&str]| world.cliq(&[&["agent", "sandbox"], options, &["--", "true"]].concat());
    run(&["--network", "not a host"]).expect(2).says("--network");
    run(&["--profile", "off"]).expect(2);
    world.cliq(&["agent", "sandbox", "--", "no-such-program"]).expect(1).says("cannot start no-such-program");
    // Without bubblewrap on the PATH.
    let mut command = world.command(&["agent", "sandbox", "--mechanism", "bubblewrap", "--", "true"]);
    let output = cliq_testkit::env::done(&command.env("PATH", "/nowhere").output().unwrap());
    output.expect(1).says("bubblewrap (`bwrap`) is not installed").says("cliq doctor");
}
