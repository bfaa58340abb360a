//! Steering: messages to a run that has not ended, live and at the next activation, across kills.

use cliq_testkit::env::{Env, done};
use serde_json::Value;

/// `first` waits for `../go`; `listener` reads its steering file until a message contains `stop`.
const TEAM: &str = "workflow:
  phases:
    - {name: first, type: standard, agent: deaf}
    - {name: second, type: standard, agent: listener, depends_on: [first]}
    - {name: check, type: gate, agent: judge, depends_on: [second]}
    - {name: lint, type: exec, depends_on: [check], commands: [{name: t, run: 'true'}]}
";
const DEAF: &str = r#"printf '%s' "$message" > first.json
ok
touch started-$CLIQ_PHASE
until test -e go; do sleep 0.02; done
complete
"#;
const LISTENER: &str = r#"printf '%s' "$message" > second.json
file=$(printf '%s' "$message" | sed -n 's/.*"steering_file": "\([^"]*\)".*/\1/p')
ok
touch started-$CLIQ_PHASE
tail -n +1 -f "$file" | sed '/stop/q' > heard
complete
"#;
const JUDGE: &str = r#"printf '%s' "$message" > check.json
ok
verdict '"PASS"'
"#;

fn env() -> Env {
    Env::new(TEAM, &[("deaf", DEAF), ("listener", LISTENER), ("judge", JUDGE)])
}

/// Records of the journal with an event, each with the given field.
fn recorded(env: &Env, event: &str, fields: &[&str]) -> Vec<String> {
    let records = env.read(".cliq/journal.jsonl");
    let records = records.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let shown =
        |record: Value| fields.iter().map(|field| text(&record[*field])).collect::<Vec<_>>().join(" ");
    records.filter(|record| record["event"] == event).map(shown).collect()
}

/// Texts of the steering messages of a dispatch message.
fn dispatched(env: &Env, file: &str) -> Vec<String> {
    let message = env.read_json(file);
    let steering = message["steering"].as_array().cloned().unwrap_or_default();
    steering.iter().map(|message| message["text"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn agents_receive_messages_live_or_when_they_start() {
    let env = env();
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    let sent = env.cliq(["steer", "for all", "--id", "m1", "--json"]).expect(0).json();
    assert_eq!((&sent["recorded"], &sent["message"]["id"]), (&true.into(), &"m1".into()));
    env.cliq(["steer", "for the second", "--phase", "second", "--id", "m2"])
        .expect(0)
        .says("to phase second");
    assert_eq!(
        recorded(&env, "steering_received", &["id", "text", "phase"]),
        ["m1 for all null", "m2 for the second second"]
    );
    assert_eq!(
        recorded(&env, "steering_delivered", &["id"]),
        Vec::<String>::new(),
        "the first agent does not listen"
    );
    env.cliq(["status"]).expect(0).says("pending:").says("for all").says("to second: for the second");
    env.write("go", "");
    env.wait_for("the second phase", || env.exists("started-second"));
    assert_eq!(dispatched(&env, "second.json"), ["for all", "for the second"]);
    env.cliq(["steer", "go on", "--id", "m3"]).expect(0);
    env.cliq(["steer", "for another", "--phase", "check", "--id", "m4"]).expect(0);
    env.cliq(["steer", "-", "--id", "m5"]).expect(2).says("cannot be empty");
    env.cliq(["steer", "stop now", "--id", "m5"]).expect(0);
    done(&run.wait_with_output().expect("it ends")).expect(0);
    let heard: Vec<Value> =
        env.read("heard").lines().map(|line| serde_json::from_str(line).expect("json")).collect();
    assert_eq!(
        heard.iter().map(|m| m["text"].as_str().expect("a text")).collect::<Vec<_>>(),
        ["go on", "stop now"]
    );
    assert_eq!(
        dispatched(&env, "check.json"),
        ["for all", "for the second", "go on", "for another", "stop now"]
    );
    assert_eq!(
        recorded(&env, "steering_delivered", &["id", "phase", "activation"]),
        [
            "m1 second 1",
            "m2 second 1",
            "m3 second 1",
            "m5 second 1",
            "m1 check 1",
            "m3 check 1",
            "m4 check 1",
            "m5 check 1"
        ]
    );
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["steering"][1]["delivered"][0]["phase"], "second");
    assert_eq!(status["steering"][1]["pending"], false);
    env.cliq(["steer", "too late"]).expect(4).says("has ended");
    assert_eq!(
        env.cliq(["explain", "--json"]).expect(0).json()["steering"].as_array().expect("messages").len(),
        5
    );
}

#[test]
fn messages_outside_of_the_rules_are_refused() {
    let env = env();
    env.cliq(["steer", "x"]).expect(1).says("nothing has run yet");
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    for (args, code, says) in [
        (&["steer", ""][..], 2, "cannot be empty"),
        (&["steer", "x", "--phase", "frist"], 2, "did you mean `first`?"),
        (&["steer", "x", "--phase", "lint"], 2, "runs commands and has no agent"),
        (&["steer", "x", "--phase", "no phase"], 2, "cannot use the phase"),
        (&["steer", "x", "--id", "a b"], 2, "visible ASCII"),
        (&["steer", "x", "--run", "nonsense"], 2, "there is no run nonsense"),
    ] {
        env.cliq(args).expect(code).says(says);
    }
    env.cliq(["steer", &"é".repeat(8193)]).expect(2).says("16386 bytes").says("at most 16384");
    env.cliq(["steer", &"é".repeat(8192), "--id", "longest"]).expect(0);
    // Twice with one id: once.
    env.cliq(["steer", "once", "--id", "same", "--run", &env.run_id()[..8]]).expect(0);
    env.cliq(["steer", "once", "--id", "same"]).expect(0);
    env.cliq(["steer", "other", "--id", "same"]).expect(4).says("another message with the id `same`");
    assert_eq!(recorded(&env, "steering_received", &["id"]), ["longest", "same"]);
    for n in 2..200 {
        env.cliq(["steer", "x", "--id", &format!("n{n}")]).expect(0);
    }
    env.cliq(["steer", "x"]).expect(4).says("200 messages, which is the limit");
    env.cliq(["steer", "once", "--id", "same"]).expect(0);
    env.cliq(["cancel"]).expect(0);
    done(&run.wait_with_output().expect("it ends")).expect(130).says("no agent received these messages");
    assert_eq!(recorded(&env, "steering_received", &["id"]).len(), 200);
}

#[test]
fn a_message_to_a_run_without_an_orchestrator_is_delivered_after_it_is_resumed() {
    let env = env();
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    env.cliq(["steer", "before", "--id", "m1"]).expect(0);
    run.kill().expect("killed");
    run.wait().expect("it ends");
    // A sender records its own message: what agents forge is checked by the next orchestrator.
    let inbox = format!(".cliq/steering/{}/inbox.jsonl", env.run_id());
    let forged = serde_json::json!({"id": "f", "ts": "2026-01-01T00:00:00.000Z", "from": "a", "text": " "});
    env.write(&inbox, &format!("{}{forged}\n", env.read(&inbox)));
    env.cliq(["steer", "meanwhile", "--id", "m2"]).expect(0);
    env.cliq(["steer", "meanwhile", "--id", "m2"]).expect(0);
    assert_eq!(recorded(&env, "steering_received", &["id"]), ["m1", "m2"]);
    std::fs::remove_file(env.path("started-first")).expect("removed");
    let run = env.spawn(["run", "--resume", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    assert_eq!(dispatched(&env, "first.json"), ["before", "meanwhile"]);
    env.cliq(["steer", "after", "--id", "m3"]).expect(0);
    env.write("go", "");
    env.wait_for("the second phase", || env.exists("started-second"));
    env.cliq(["steer", "stop", "--id", "m4"]).expect(0);
    done(&run.wait_with_output().expect("it ends")).expect(0);
    assert_eq!(recorded(&env, "steering_received", &["id"]), ["m1", "m2", "m3", "m4"]);
    assert_eq!(
        recorded(&env, "steering_delivered", &["id", "phase", "activation"])[..5],
        ["m1 first 2", "m2 first 2", "m1 second 1", "m2 second 1", "m3 second 1"]
    );
}

#[test]
fn messages_that_agents_forge_stay_within_the_rules() {
    let env = env();
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    let inbox = format!(".cliq/steering/{}/inbox.jsonl", env.run_id());
    env.cliq(["steer", "good", "--id", "m1"]).expect(0);
    let good = env.read(&inbox);
    let forged = |text: &str, phase: &str| {
        let ts = "2026-01-01T00:00:00.000Z";
        format!(
            "{}\n",
            serde_json::json!({"id": "f", "ts": ts, "from": "a\u{1b}b", "text": text, "phase": phase})
        )
    };
    env.write(
        &inbox,
        &format!("{good}nonsense\n{}{}{}", forged("", "first"), forged("x", "none"), forged("x", "second")),
    );
    env.wait_for("the message", || recorded(&env, "steering_received", &["id"]).len() == 2);
    assert_eq!(recorded(&env, "steering_received", &["id", "from"])[1], "f ab");
    assert!(
        recorded(&env, "warning", &["message"])[0].starts_with("3 lines of the steering inbox are skipped")
    );
    env.cliq(["cancel"]).expect(0);
    done(&run.wait_with_output().expect("it ends")).expect(130);
}

#[test]
fn a_team_phase_forwards_messages_to_its_team() {
    let outer = "workflow:
  phases:
    - {name: build, type: team, team: ./inner}
";
    let inner = "name: \"@local/inner\"
agents: {deaf: {entry: agents/deaf}, listener: {entry: agents/listener}}
workflow:
  phases:
    - {name: first, type: standard, agent: deaf}
    - {name: second, type: standard, agent: listener, depends_on: [first]}
";
    let env = Env::bare();
    env.team(outer, &[]);
    env.write("../team/inner/team.yml", inner);
    for (name, script) in [("deaf", DEAF), ("listener", LISTENER)] {
        env.write_executable(
            &format!("../team/inner/agents/{name}"),
            &format!("{}{script}", cliq_testkit::env::PRELUDE),
        );
    }
    for name in ["first", "second"] {
        env.write(&format!("../team/inner/roles/{name}.md"), "You work.\n");
    }
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    env.cliq(["steer", "one", "--id", "m1", "--phase", "build"]).expect(0);
    env.wait_for("the delivery", || recorded(&env, "steering_delivered", &["id", "phase"]) == ["m1 build"]);
    // Killed with what is under way: the inner run keeps what it has, and the phase starts again with all.
    run.kill().expect("killed");
    run.wait().expect("it ends");
    env.cliq(["steer", "two", "--id", "m2"]).expect(0);
    std::fs::remove_file(env.path("started-first")).expect("removed");
    let run = env.spawn(["run", "--resume", "--headless"]);
    env.wait_for("the first phase", || env.exists("started-first"));
    assert_eq!(dispatched(&env, "first.json"), ["one", "two"]);
    env.write("go", "");
    env.wait_for("the second phase", || env.exists("started-second"));
    env.cliq(["steer", "stop", "--id", "m3"]).expect(0);
    done(&run.wait_with_output().expect("it ends")).expect(0);
    let text = env.read(".cliq/teams/build/journal.jsonl");
    let received = text.lines().filter(|line| line.contains("\"steering_received\"")).count();
    assert_eq!(received, 3, "{text}");
    assert!(env.read("heard").contains("stop"));
    assert_eq!(
        recorded(&env, "steering_delivered", &["id", "phase", "activation"]),
        ["m1 build 1", "m1 build 2", "m2 build 2", "m3 build 2"]
    );
}
