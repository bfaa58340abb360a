//! A whole team as one phase of another.

use cliq_testkit::env::{Env, PRELUDE, done};

const OUTER: &str = "inputs: [{name: who, default: world}]
workflow:
  phases:
    - {name: prepare, type: exec, commands: [{name: t, run: echo prepared >> ran}]}
    - name: build
      type: team
      team: ./inner
      depends_on: [prepare]
      inputs: {greeting: 'hello $(inputs.who)'}
    - {name: after, type: exec, depends_on: [build], commands: [{name: t, run: 'echo $(handoff.build.said) > said'}]}
";
const INNER: &str = "name: \"@local/inner\"
inputs: [{name: greeting}]
agents: {x: {entry: agents/x}}
workflow:
  phases:
    - {name: prepare, type: exec, commands: [{name: t, run: 'echo inner-prepared >> ran; test ! -f block || { touch blocked; sleep 1000; }'}]}
    - {name: say, type: standard, agent: x, depends_on: [prepare]}
";
const SAY: &str = r#"ok
progress "inner words"
echo say >> ran
cat "$CLIQ_DIR/requirement.md" > inner-requirement
to=$(ls $CLIQ_DIR/channels | sed -n "s/^say--//p")
said=$(printf '%s' "$message" | sed -n 's/.*"greeting": "\(.*\)".*/\1/p')
hand $to '{"version":1,"phase_type":"standard","phase":"say","agent":"x","data":{"said":"'"$said"'"},"text":"I said it."}'
complete
"#;

fn env() -> Env {
    let env = Env::bare();
    env.team(OUTER, &[]);
    env.write("../team/inner/team.yml", INNER);
    env.write("../team/inner/roles/say.md", "You say $(inputs.greeting).");
    env.write_executable("../team/inner/agents/x", &format!("{PRELUDE}{SAY}"));
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["req", "-m", "Greet."]).expect(0);
    env
}

fn ran(env: &Env) -> String {
    env.read("ran").replace('\n', " ")
}

#[test]
fn result_of_a_sub_team_is_the_handoff() {
    let env = env();
    let events = env.cliq(["run", "--json", "--input", "who=moon"]).expect(0).events();
    assert_eq!((env.read("said").trim(), &*ran(&env)), ("hello moon", "prepared inner-prepared say "));
    let handoff = env.read_json(".cliq/channels/build--after/handoff.json");
    assert_eq!(handoff["phase_type"], "team");
    assert_eq!(handoff["text"], "I said it.");
    assert_eq!(handoff["data"]["results"]["say"]["said"], "hello moon");
    assert_eq!(
        (&handoff["data"]["status"], &handoff["data"]["team"]),
        (&"COMPLETED".into(), &"@local/inner".into())
    );
    let progress = |text: &str| {
        events.iter().any(|e| e["event"] == "progress" && e["phase"] == "build" && e["message"] == text)
    };
    assert!(
        progress("say: inner words") && progress("say: completed"),
        "its progress is the phase's: {events:#?}"
    );
    assert!(env.exists(".cliq/teams/build/journal.jsonl"));
    let requirement = env.read("inner-requirement");
    assert!(requirement.contains("Greet.") && requirement.contains("## From prepare"), "{requirement}");
    env.cliq(["status"]).expect(0).says("✓  └ say");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["phases"][1]["run"]["phases"][1]["status"], "completed");
    env.cliq(["run", "-f"]).expect(0);
    assert_eq!(env.read("said").trim(), "hello world");
}

#[test]
fn failure_of_a_sub_team_fails_the_phase() {
    let env = env();
    env.write_executable(
        "../team/inner/agents/x",
        &format!("{PRELUDE}ok\nsay '\"status\":\"error\",\"error\":\"no voice\"'\n"),
    );
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless"]).expect(3).says("team @local/inner ESCALATED").says("no voice");
    env.write_executable(".cliq/teams/build/team/agents/x", &format!("{PRELUDE}{SAY}"));
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(ran(&env), "prepared inner-prepared say ", "what completed within is not run again either");
}

#[test]
fn cancelling_reaches_it_and_resuming_too() {
    for launcher in ["process", "tmux"] {
        if launcher == "tmux" && crate::commands::tmux::no_tmux() {
            return;
        }
        let env = env();
        env.write("block", "");
        let run = env.spawn(["run", "--launcher", launcher]);
        env.wait_for("the inner phase", || env.exists("blocked"));
        env.cliq(["cancel"]).expect(0);
        done(&run.wait_with_output().unwrap()).expect(130);
        let inner = env.read(".cliq/teams/build/journal.jsonl");
        assert!(inner.contains("\"status\":\"CANCELLED\""), "{launcher}: {inner}");
        let sleeping = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).any(|e| {
            std::fs::read(e.path().join("environ")).is_ok_and(|env_of| {
                String::from_utf8_lossy(&env_of).contains(&format!("CLIQ_RUN_PATH={}/build", env.run_id()))
            })
        });
        assert!(!sleeping, "something of the inner team lives on");
        std::fs::remove_file(env.path("block")).unwrap();
        env.cliq(["run", "--resume", "--launcher", launcher]).expect(0);
        assert_eq!(ran(&env), "prepared inner-prepared inner-prepared say ");
    }
}

#[test]
fn a_killed_run_leaves_nothing_of_its_teams() {
    let env = env();
    env.write("block", "");
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the inner phase", || env.exists("blocked"));
    run.kill().unwrap();
    run.wait().unwrap();
    std::fs::remove_file(env.path("block")).unwrap();
    env.cliq(["run", "--resume"]).expect(0);
    assert_eq!(
        (env.left_over(), &*ran(&env)),
        (Vec::<String>::new(), "prepared inner-prepared inner-prepared say ")
    );
}

#[test]
fn mistakes_are_reported_before_anything_runs() {
    let env = env();
    env.write("../team/inner/team.yml", &INNER.replace("type: exec", "type: exce"));
    env.cliq(["assemble", "../team"])
        .expect(2)
        .says("did you mean `exec`?")
        .says("team phase `build` of @local/test");
    // Within itself, over a corner.
    env.write(
        "../team/inner/team.yml",
        &INNER.replace("agents: {x: {entry: agents/x}}\n", "").replace(
            "{name: say, type: standard, agent: x, depends_on: [prepare]}",
            "{name: say, type: team, team: ../, inputs: {}}",
        ),
    );
    env.cliq(["assemble", "../team"])
        .expect(2)
        .says("@local/test runs @local/inner runs @local/test: a team cannot run within itself");
    env.write("../team/inner/team.yml", INNER);
    env.team(&OUTER.replace("./inner", "hub://x/y@1"), &[]);
    env.cliq(["assemble", "../team"]).expect(2).says("the address of a hub");
    env.team(&OUTER.replace("./inner", "'@cliq/nothing'"), &[]);
    env.cliq(["assemble", "../team"]).expect(2).says("there is no team @cliq/nothing");
    env.team(&OUTER.replace("greeting:", "greetings:"), &[]);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run"])
        .expect(2)
        .says("team phase `build`")
        .says("no input `greetings`")
        .says("did you mean `greeting`?");
    assert!(!env.exists("ran"));
}

#[test]
fn teams_within_teams_within_teams() {
    let env = Env::bare();
    let level =
        |n: u32, phase: &str| format!("name: \"@local/level-{n}\"\nworkflow:\n  phases:\n    - {phase}\n");
    env.write("../team/team.yml", &level(1, "{name: down, type: team, team: ./two}"));
    env.write("../team/two/team.yml", &level(2, "{name: down, type: team, team: ./three}"));
    env.write(
        "../team/two/three/team.yml",
        &level(3, "{name: down, type: exec, commands: [{name: t, run: 'echo $CLIQ_RUN_PATH > path'}]}"),
    );
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read("path").matches("/down").count(), 3);
}
