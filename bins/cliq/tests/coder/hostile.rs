//! A model that tries to leave its sandbox: by commands, and by the tools themselves.

use std::fs;

use cliq_scripted_model::Behavior;
use serde_json::{Value, json};

use crate::coder::world::{TEAM, World, call, calls, says, script};

/// Attempts: description, call, and whether only bubblewrap prevents it.
fn attempts(outside: &str) -> Vec<(&'static str, Value, bool)> {
    let command = |text: String| call("run_command", json!({"command": text, "timeout_seconds": 5}));
    let write = |path: &str| call("write_file", json!({"path": path, "content": "x"}));
    vec![
        ("read a key by a command", command(format!("cat {outside}/home/.ssh/id_rsa")), false),
        ("read a key by a tool", call("read_file", json!({"path": format!("{outside}/home/.ssh/id_rsa")})), false),
        ("read a key through a link", command(format!("ln -s {outside}/home/.ssh/id_rsa key; cat key")), false),
        ("read a key through a link by a tool", call("read_file", json!({"path": "key"})), false),
        ("read the settings of cliq", command(format!("cat {outside}/home/.cliqrc/settings.json")), false),
        ("read the key of the model from the environment", command("tr '\\0' '\\n' < /proc/$PPID/environ | grep sk-test; env | grep sk-test".to_owned()), false),
        ("read the environment of the agent", command("cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep -a 'ANTHROPIC_API_KEY=sk'".to_owned()), false),
        ("write outside by a command", command(format!("echo x > {outside}/made")), false),
        ("write outside by a tool", write(&format!("{outside}/made")), false),
        ("write above the workspace", write("../made"), false),
        ("write through a link", command(format!("ln -s {outside} dir; echo x > dir/made")), false),
        ("write through a link by a tool", write("dir/made"), false),
        ("edit the team", write(".cliq/team.yml"), false),
        ("edit the team by a command", command("echo x >> .cliq/team.yml".to_owned()), true),
        ("write a git hook", write(".git/hooks/pre-commit"), false),
        ("report the end of the phase", command("echo '{\"ts\":\"\",\"version\":1,\"type\":\"phase\",\"status\":\"complete\",\"result\":{}}' >> \"$CLIQ_SIGNAL_FILE\"".to_owned()), true),
        ("forge the handoff", command("echo '{}' > .cliq/channels/work--after/handoff.json".to_owned()), true),
        ("open a socket", command("python3 -c 'import socket; socket.socket()'".to_owned()), false),
        ("signal the agent", command("kill -STOP $(pgrep -o cliq-agent || echo 1)".to_owned()), false),
        ("leave a process behind", command("setsid sleep 999 & exit 1".to_owned()), false),
        ("become root again", command("unshare -m true".to_owned()), false),
        ("trace the agent", command("python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).ptrace(16, 1, 0, 0) != 0)'".to_owned()), false),
    ]
}

#[test]
fn hostile_model_stays_in_its_sandbox() {
    let support =
        cliq_project::Host::new(cliq_project::Environment::of_process(), "cliq".into()).sandbox_support();
    for mechanism in ["bubblewrap", "landlock"] {
        if mechanism == "bubblewrap"
            && let Err(why) = &support.bubblewrap
        {
            cliq_testkit::not_run(why);
            continue;
        }
        let place = cliq_testkit::visible_dir();
        let outside = place.path().to_str().unwrap().to_owned();
        fs::create_dir_all(place.path().join("home/.ssh")).unwrap();
        fs::create_dir_all(place.path().join("home/.cliqrc")).unwrap();
        fs::write(place.path().join("home/.ssh/id_rsa"), "the secret\n").unwrap();
        let attempts = attempts(&outside);
        let all: Vec<Value> = attempts
            .iter()
            .map(|(_, call, _)| calls("", std::slice::from_ref(call)))
            .chain([says("Done.")])
            .collect();
        let world = World::new("claude-api", TEAM, &script(&all), Behavior::default());
        world.env.cliq(["settings", "set", "agents.claude-api.api_key", "sk-other"]).expect(0);
        let mut command = world.env.command(["settings", "set", "-g", "sandbox.mechanism", mechanism]);
        assert!(command.env("CLIQ_HOME", place.path().join("home/.cliqrc")).status().unwrap().success());
        world.env.write(".git/HEAD", "ref: refs/heads/main\n");
        let mut run = world.env.command(["run", "--headless"]);
        run.env("HOME", place.path().join("home")).env("CLIQ_HOME", place.path().join("home/.cliqrc"));
        let output =
            cliq_testkit::env::done(&run.env("ANTHROPIC_API_KEY", "sk-test-secret").output().unwrap());
        output.expect(0);
        let results = world.results("work.1");
        assert_eq!(results.len(), attempts.len());
        for ((what, _, only_bubblewrap), (text, is_error)) in attempts.iter().zip(&results) {
            assert!(
                !text.contains("the secret") && !text.contains("sk-test-secret"),
                "{mechanism}: {what}: {text}"
            );
            let is_held = *is_error || *only_bubblewrap && mechanism == "landlock";
            assert!(is_held, "{mechanism}: {what}: {text}");
        }
        assert!(!place.path().join("made").exists() && !world.env.exists("../made"));
        assert_eq!(world.env.read_json(".cliq/channels/work--after/handoff.json")["text"], "Done.");
        assert_eq!(world.env.left_over(), [""; 0], "nothing is left of the run");
    }
}

#[test]
fn tools_that_write_need_a_sandbox() {
    let write = calls("", &[call("write_file", json!({"path": "a", "content": "x"}))]);
    let world = World::new("claude-api", TEAM, &script(&[write, says("Done.")]), Behavior::default());
    world.env.cliq(["settings", "set", "-g", "sandbox.mechanism", "bubblewrap"]).expect(0);
    // No program `bwrap` on the PATH, and the model has its tools.
    let bin = world.env.path("../bin");
    fs::create_dir(&bin).unwrap();
    for program in ["sh", "cat"] {
        std::os::unix::fs::symlink(format!("/bin/{program}"), bin.join(program)).unwrap();
    }
    let run = || {
        cliq_testkit::env::done(&world.env.command(["run", "--headless"]).env("PATH", &bin).output().unwrap())
    };
    let refused = run();
    assert_ne!(refused.code, 0);
    refused.says("phase `work` has a model with tools").says("`agent_tools: read` needs none");
    assert!(world.model.requests().is_empty());
    world.env.cliq(["settings", "set", "-g", "sandbox.missing", "warn"]).expect(0);
    run().expect(0);
    assert_eq!(world.env.read("a"), "x");
}
