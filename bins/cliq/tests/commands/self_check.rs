//! `cliq self check`, and homes of newer versions.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use cliq_testkit::env::{CommandOutput, Env, has_program};

use crate::commands::server::{Server, status};

const SUM: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const SYSTEM: &str =
    if cfg!(target_arch = "aarch64") { "aarch64-unknown-linux-gnu" } else { "x86_64-unknown-linux-gnu" };

fn list(version: &str) -> String {
    format!("{SUM}  cliq-{version}-{SYSTEM}.tar.gz\n{SUM}  install.sh\n")
}

fn database(env: &Env) -> PathBuf {
    env.home().join("cliq.db")
}

/// Writes the format into the header of the database, as a newer version would.
fn make_newer(env: &Env) {
    let mut bytes = fs::read(database(env)).unwrap();
    bytes[60..64].copy_from_slice(&1000_u32.to_be_bytes());
    fs::write(database(env), bytes).unwrap();
}

fn state(output: &CommandOutput, name: &str) -> String {
    let formats = output.json()["formats"].clone();
    let found = formats.as_array().unwrap().iter().find(|format| format["name"] == name).unwrap();
    found["state"].as_str().unwrap().to_owned()
}

#[test]
fn newer_home_is_refused_by_each_command_and_not_changed() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.cliq(["signal", "emit", "plan_start", "p.md"]).expect(0);
    make_newer(&env);
    let bytes = fs::read(database(&env)).unwrap();
    for arguments in [
        ["signal", "list"].as_slice(),
        &["plan", "list"],
        &["server", "run", "--port", "0"],
        &["daemon", "run"],
        &["review", "list", "--all"],
        &["audit"],
        &["runs"],
    ] {
        let refused = env.cliq(arguments);
        assert!(
            refused.code != 0 && refused.stderr.contains("cliq.db has format 1000"),
            "{arguments:?}: {} {}",
            refused.code,
            refused.stderr
        );
    }
    let output = env.cliq(["self", "check", "--json"]).expect(1);
    assert_eq!((state(&output, "database").as_str(), &output.json()["fine"]), ("newer", &false.into()));
    env.cliq(["self", "check"]).expect(1).says("format 1000, a newer cliq wrote it");
    assert!(fs::read(database(&env)).unwrap() == bytes);
}

#[test]
fn files_of_a_project_are_looked_at() {
    let env = Env::bare();
    let output = env.cliq(["self", "check", "--json"]).expect(0);
    assert_eq!(output.json()["formats"].as_array().unwrap().len(), 1, "there is no project");
    assert_eq!(state(&output, "database"), "absent");
    assert!(!database(&env).exists());
    env.cliq(["init"]).expect(0);
    assert_eq!(state(&env.cliq(["self", "check", "--json"]).expect(0), "last run"), "absent");
    for (journal, lock, journal_state, lock_state, code) in [
        ("{\"version\": 900}\n", "{\"format\": 2}", "newer", "newer", 1),
        ("no journal\n", "no lock", "unreadable", "unreadable", 1),
    ] {
        env.write(".cliq/journal.jsonl", journal);
        env.write(".cliq/team.lock", lock);
        let output = env.cliq(["self", "check", "--json"]).expect(code);
        assert_eq!(state(&output, "last run"), journal_state);
        assert_eq!(state(&output, "team lock"), lock_state);
    }
}

#[test]
fn run_of_this_version_is_current() {
    let env = Env::new("phases:\n- {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n", &[]);
    env.cliq(["run", "--headless"]).expect(0);
    let output = env.cliq(["self", "check", "--json"]).expect(0);
    assert_eq!(state(&output, "last run"), "current", "{}", output.stdout);
}

#[test]
fn databases_that_cannot_be_used_are_unreadable() {
    let check = |env: &Env, says: &str| {
        let output = env.cliq(["self", "check", "--json"]).expect(1);
        assert_eq!(state(&output, "database"), "unreadable", "{}", output.stdout);
        assert!(output.stdout.contains(says), "{says}: {}", output.stdout);
        let used = env.cliq(["signal", "list"]);
        assert!(used.code == 1 && used.stderr.contains(says), "{says}: {}", used.stderr);
    };
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    fs::create_dir_all(database(&env)).unwrap();
    check(&env, "cliq.db is a directory");
    fs::remove_dir(database(&env)).unwrap();
    let made = Command::new("mkfifo").arg(database(&env)).status().unwrap();
    assert!(made.success());
    check(&env, "cliq.db is no regular file");
    fs::remove_file(database(&env)).unwrap();
    std::os::unix::fs::symlink("/nowhere/cliq.db", database(&env)).unwrap();
    check(&env, "cannot open");
    fs::remove_file(database(&env)).unwrap();
    // The tables of this version with the number of another.
    env.cliq(["signal", "emit", "plan_start", "p.md"]).expect(0);
    for format in [0_u32, 5] {
        let mut bytes = fs::read(database(&env)).unwrap();
        bytes[60..64].copy_from_slice(&format.to_be_bytes());
        fs::write(database(&env), bytes).unwrap();
        check(&env, "its tables are not those of its format");
    }
}

#[test]
fn release_in_a_directory_is_compared() {
    let env = Env::bare();
    let own = env!("CARGO_PKG_VERSION");
    for (version, standing) in [("99.0.0", "newer"), (own, "current"), ("0.0.1", "older")] {
        env.write("release/SHA256SUMS", &list(version));
        let output = env.cliq(["self", "check", "--from", "release", "--json"]).expect(0);
        let release = output.json()["release"].clone();
        assert_eq!((&release["standing"], &release["newest"]), (&standing.into(), &version.into()));
        assert_eq!(release["archive"], format!("cliq-{version}-{SYSTEM}.tar.gz"));
    }
    env.write("release/SHA256SUMS", &list("99.0.0"));
    let output = env.cliq(["self", "check", "--from", "release"]).expect(0).says("99.0.0 is newer than");
    assert!(output.stderr.contains("install.sh --from release --to "), "{}", output.stderr);
    // The variable is for both.
    let output = env.command(["self", "check"]).env("CLIQ_RELEASE", "release").output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("99.0.0 is newer"));
}

#[test]
fn release_at_an_address_is_compared_and_failures_are_named() {
    let env = Env::bare();
    let server = Server::start(vec![status("200 OK", "", &list("99.0.0"))]);
    env.cliq(["self", "check", "--from", &format!("{}/", server.base)]).expect(0).says("99.0.0 is newer");
    let paths: Vec<String> = server.asked().into_iter().map(|request| request.path).collect();
    assert_eq!(paths, ["/SHA256SUMS"]);
    for (answer, says) in [
        (status("404 Not Found", "", "{}"), "404"),
        (status("200 OK", "", "<html>Sign in</html>"), "line 1"),
        (status("200 OK", "", &format!("{SUM}  other.tar.gz\n")), "no archive for"),
    ] {
        let server = Server::start(vec![answer]);
        env.cliq(["self", "check", "--from", &server.base]).expect(1).says(says);
        // What is known is printed too.
        let output = env.cliq(["self", "check", "--from", &server.base, "--json"]).expect(1);
        assert!(output.json()["release"]["error"].as_str().unwrap().contains(says), "{output:?}");
        assert_eq!(state(&output, "database"), "absent");
    }
    env.cliq(["self", "check", "--from", "nowhere"]).expect(1).says("nowhere/SHA256SUMS is not there");
    for wrong in ["ftp://host/releases", "", "https://"] {
        env.cliq(["self", "check", "--from", wrong]).expect(2);
    }
    // A password in the address is not shown.
    let address = server.base.replace("http://", "http://me:hush@");
    let shown = env.cliq(["self", "check", "--from", &address, "--json"]);
    assert!(!format!("{}{}", shown.stdout, shown.stderr).contains("hush"), "{shown:?}");
}

#[test]
fn no_network_is_used_by_itself() {
    if !has_program("strace") {
        return;
    }
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    let log = env.path("calls");
    let command = env.command(["self", "check"]);
    let mut traced = Command::new("strace");
    traced.args(["-f", "-e", "trace=connect,sendto,sendmsg", "-o"]).arg(&log).arg(command.get_program());
    traced.args(command.get_args()).current_dir(env.work());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => traced.env(name, value),
            None => traced.env_remove(name),
        };
    }
    assert!(traced.status().unwrap().success());
    let calls = fs::read_to_string(log).unwrap();
    assert!(calls.contains("exited with 0"), "{calls}");
    assert!(!calls.contains("AF_INET"), "{calls}");
}
