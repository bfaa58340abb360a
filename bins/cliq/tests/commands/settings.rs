//! Settings: layers, types, secrets.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use cliq_testkit::env::{Env, done};

#[test]
fn a_project_goes_before_a_person_and_both_before_defaults() {
    let env = Env::bare();
    env.cliq(["settings", "set", "max_parallel", "3"]).expect(2).says("--global");
    env.cliq(["settings", "set", "-g", "max_parallel", "3"]).expect(0);
    env.cliq(["settings", "get", "max_parallel"]).expect(0).says("3");
    env.cliq(["init"]).expect(0);
    env.cliq(["settings", "set", "max_parallel", "5"]).expect(0).says(".cliq/settings.json");
    env.cliq(["settings", "set", "-g", "max_parallel", "4"]).expect(0).says("here, `max_parallel` is set by");
    assert_eq!(env.cliq(["settings", "get", "max_parallel"]).expect(0).stdout, "5\n");
    env.cliq(["settings", "unset", "max_parallel"]).expect(0);
    assert_eq!(env.cliq(["settings", "get", "max_parallel"]).expect(0).stdout, "4\n");
    env.cliq(["settings", "unset", "max_parallel"]).expect(1).says("is not set in").says("it is set in");
    env.cliq(["settings", "unset", "-g", "max_parallel"]).expect(0);
    env.cliq(["settings", "get", "max_parallel"]).expect(1).says("is not set");
    assert_eq!(env.cliq(["settings", "get", "poll_interval"]).expect(0).stdout, "3s\n");
}

#[test]
fn keys_and_types_are_checked() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    let before = env.read(".cliq/settings.json");
    for (key, value, says) in [
        ("max_paralel", "3", "did you mean `max_parallel`?"),
        ("agents.codex.modle", "x", "did you mean `agents.codex.model`?"),
        ("notifications.on_compleet", "slack:x", "did you mean `notifications.on_complete`?"),
        ("notifications.on_complete", "mail:x", "a list of channels"),
        ("max_parallel", "none", "a whole number"),
        ("max_parallel", "0", "at least 1"),
        ("poll_interval", "3 parsecs", "a duration"),
        ("launcher", "docker", "one of auto, process, tmux"),
        ("tmux.keep_session", "yes", "true or false"),
        ("agents.claude-api.base_url", "localhost:1", "an address"),
        ("agents", "x", "no setting `agents`"),
        ("", "x", "no setting"),
    ] {
        env.cliq(["settings", "set", key, value]).expect(2).says(says);
    }
    assert_eq!(env.read(".cliq/settings.json"), before);
    for (text, says) in [
        ("{\"agents\": {\"codex\": {\"modle\": 1}}}", "did you mean `agents.codex.model`?"),
        ("{\"agents\": 1}", "no setting `agents`"),
        ("{\"max_parallel\": \"3\"}", "`max_parallel` is a whole number"),
        ("{\"max_parallel\": ", "line 1"),
        ("[]", "a JSON object"),
    ] {
        env.write(".cliq/settings.json", text);
        env.cliq(["settings", "list"]).expect(2).says("settings.json").says(says);
    }
}

#[test]
fn secrets_are_not_shown() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    let secret = "sk-very-secret";
    let mut child = env
        .command(["settings", "set", "agents.claude-api.api_key", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(format!("{secret}\n").as_bytes()).unwrap();
    let said = done(&child.wait_with_output().unwrap()).expect(0);
    env.cliq(["settings", "set", "agents.slack.channels.team.webhook_url", "https://hooks.example/T/secret"])
        .expect(0);
    let mode = env.path(".cliq/settings.json").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for command in [
        &["list"][..],
        &["list", "--json"],
        &["get", "agents.claude-api.api_key"],
        &["get", "agents.slack.channels.team.webhook_url"],
    ] {
        let done = env.cliq([&["settings"], command].concat()).expect(0).says("****");
        assert!(
            !done.stdout.contains("secret") || command[0] == "list" && !done.stdout.contains(secret),
            "{}",
            done.stdout
        );
    }
    assert!(!said.stdout.contains(secret));
    let revealed = env.cliq(["settings", "get", "agents.claude-api.api_key", "--reveal"]).expect(0).stdout;
    assert_eq!(revealed.trim(), secret);
    env.write(".cliq/settings.json", "{\"agents\": {\"x\": {\"api_key\": {\"sk\": \"sk-very-secret\"}}}}");
    let wrong = env.cliq(["settings", "list"]).expect(2).says("`agents.x.api_key` is a text");
    assert!(!wrong.stderr.contains(secret));
}

#[test]
fn the_list_says_what_each_is_and_where_from() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    env.cliq(["settings", "set", "agents.codex.args", "--full-auto,--quiet"]).expect(0);
    let list = env.cliq(["settings", "list", "--json"]).expect(0).json();
    let find =
        |key: &str| list["settings"].as_array().unwrap().iter().find(|s| s["key"] == key).unwrap().clone();
    assert_eq!(find("agents.codex.args")["value"], serde_json::json!(["--full-auto", "--quiet"]));
    assert!(find("agents.codex.args")["source"].as_str().unwrap().ends_with(".cliq/settings.json"));
    assert_eq!(
        (find("launcher")["value"].as_str(), find("launcher")["source"].as_str()),
        (Some("auto"), Some("default"))
    );
    assert!(find("max_parallel")["value"].is_null() && find("max_parallel")["source"].is_null());
    assert!(list["settings"].as_array().unwrap().iter().all(|s| s["about"].as_str().unwrap().len() > 10));
    env.cliq(["settings", "list"]).expect(0).says("agents.NAME.model").says("notifications.EVENT");
}

/// `durability: power`: what a phase left is on the disk before it is recorded that it ended, and that record before
/// anything follows. What the disk does is the system's; that it is asked, and in this order, is ours.
#[test]
fn power_failures_are_prepared_for_where_that_is_asked_for() {
    let phases = "phases:\n- {name: a, type: exec, commands: [{name: t, run: 'true'}]}\n- {name: b, type: exec, depends_on: [a], commands: [{name: t, run: 'true'}]}\n";
    let env = Env::new(phases, &[]);
    let trace = |env: &Env| {
        let run = env.command(["run", "--headless", "-f"]);
        let set = run.get_envs().filter_map(|(key, value)| Some((key, value?)));
        let traced = Command::new("strace")
            .args(["-o", "../calls", "-s", "300", "-e", "trace=write,syncfs,fdatasync"])
            .arg(run.get_program())
            .args(run.get_args())
            .current_dir(env.work())
            .envs(set)
            .output();
        let Ok(traced) = traced else {
            eprintln!("SKIPPED: strace is not installed");
            return None;
        };
        done(&traced).expect(0);
        let calls = env.read("../calls");
        let words =
            ["syncfs", "fdatasync", "commands_finished", "phase_completed", "phase_started", "run_finished"];
        let named = calls.lines().filter_map(|line| {
            words.into_iter().find(|word| {
                line.contains(&format!("{word}(")) || line.contains(&format!(r#"\"event\":\"{word}\""#))
            })
        });
        Some(named.collect::<Vec<_>>())
    };
    let Some(usual) = trace(&env) else { return };
    let phase = ["phase_started", "commands_finished", "phase_completed"];
    assert_eq!(usual, [&phase[..], &phase, &["run_finished"]].concat());
    env.cliq(["settings", "set", "durability", "power"]).expect(0);
    let phase = ["phase_started", "syncfs", "commands_finished", "phase_completed", "fdatasync"];
    let power = trace(&env).expect("as before");
    assert_eq!(power, [&phase[..], &phase, &["syncfs", "run_finished", "fdatasync"]].concat());
    env.cliq(["settings", "set", "durability", "disk"]).expect(2).says("one of process, power");
}

#[test]
fn secrets_of_a_project_are_kept_out_of_git() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    assert_eq!(
        env.read(".cliq/.gitignore").lines().skip(1).collect::<Vec<_>>(),
        ["*", "!.gitignore", "!team.lock"]
    );
    let set = || env.cliq(["settings", "set", "agents.openai-api.api_key", "sk-hush"]);
    let stored = set().expect(0).says("stored in the directory of the project").says("settings set -g");
    assert!(!stored.stdout.contains("sk-hush"));
    let git = |arguments: &[&str]| {
        let done = Command::new("git").args(arguments).current_dir(env.path(".")).output().unwrap();
        assert!(done.status.success(), "{arguments:?}");
    };
    git(&["init", "-q"]);
    set().expect(0);
    env.write(".cliq/.gitignore", "");
    let before = env.read(".cliq/settings.json");
    let set_other =
        env.cliq(["settings", "set", "agents.openai-api.base_url", "http://ann:hush@127.0.0.1:9"]);
    set_other.expect(4).says("git would take the file").says("settings set -g");
    env.cliq(["settings", "set", "max_parallel", "2"]).expect(0);
    assert_ne!(env.read(".cliq/settings.json"), before, "what is no secret is stored");
    env.cliq(["init"]).expect(0);
    assert_eq!(env.read(".cliq/.gitignore"), "", "one that exists is never overwritten");
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    let key = "agents.openai-api.base_url";
    let set = env.cliq(["settings", "set", "-g", key, "http://ann:hush@127.0.0.1:9/v1"]).expect(0);
    let shown = [
        set,
        env.cliq(["settings", "get", key]).expect(0),
        env.cliq(["settings", "list"]).expect(0),
        env.cliq(["settings", "list", "--json"]).expect(0),
        env.cliq(["doctor"]),
        env.cliq(["settings", "set", "-g", key, "http://ann:hush@"]).expect(2),
    ];
    for output in shown {
        assert!(!output.stdout.contains("hush") && !output.stderr.contains("hush"), "{}", output.stdout);
    }
    assert!(env.cliq(["settings", "get", key, "--reveal"]).expect(0).stdout.contains("ann:hush@"));
}

#[test]
fn a_relative_home_is_that_of_the_first_directory() {
    let env = Env::bare();
    env.cliq(["init"]).expect(0);
    std::fs::create_dir_all(env.path("below")).unwrap();
    let run = |arguments: &[&str]| done(&env.command(arguments).env("CLIQ_HOME", "rel").output().unwrap());
    run(&["settings", "set", "-g", "max_parallel", "7"]).expect(0);
    assert!(env.exists("rel/settings.json"));
    let below = run(&["-C", "below", "settings", "get", "max_parallel"]).expect(0);
    assert_eq!(below.stdout, "7\n", "the directory is that in which the command started");
}
