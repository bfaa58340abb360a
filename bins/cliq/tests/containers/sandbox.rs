//! Sandboxes inside of containers: engines permit no namespaces there, so Landlock and seccomp hold.

use cliq_testkit::env::Env;

use crate::containers::engine::project;

/// The same commands outside of a sandbox and in one. Perl is part of each Debian.
pub(crate) const TEAM: &str = "workflow:
  phases:
    - name: free
      type: exec
      commands:
        - name: c
          run: |
            set -e
            cat \"$CLIQ_HOME/settings.json\" > read-free
            mkdir -p /tmp/out
            perl -MSocket -e 'socket(my $s, AF_INET, SOCK_STREAM, 0) or exit 1'
            touch connected
    - name: walled
      type: exec
      depends_on: [free]
      sandbox: {profile: workspace, network: none}
      commands:
        - name: c
          run: |
            cat \"$CLIQ_HOME/settings.json\" > read-walled && exit 11
            touch /tmp/out/file && exit 12
            touch \"$TMPDIR/file\" || exit 13
            perl -MSocket -e 'socket(my $s, AF_INET, SOCK_STREAM, 0) or exit 1' && exit 14
            grep -q '^Seccomp:.*2' /proc/self/status || exit 15
            echo done > made
";

/// Runs the team, and checks that its second phase is in a sandbox by Landlock.
#[track_caller]
pub(crate) fn runs_behind_walls(env: &Env) {
    env.cliq(["settings", "set", "-g", "sandbox.mechanism", "auto"]).expect(0);
    env.cliq(["run"]).expect(0);
    assert!(env.exists("connected"), "there is a network without a sandbox");
    assert!(env.read("read-free").contains("sandbox"), "{}", env.read("read-free"));
    assert_eq!((env.read("read-walled"), env.read("made")), (String::new(), "done\n".to_owned()));
    env.cliq(["explain"]).expect(0).says("sandbox workspace, no network by landlock");
}

#[test]
fn phases_are_within_a_sandbox_in_a_container() {
    let Some(env) = project(TEAM, &[]) else { return };
    runs_behind_walls(&env);
}

#[test]
fn setting_of_a_person_holds_in_a_container() {
    let Some(env) = project(&TEAM.replace("sandbox: {profile: workspace, network: none}", ""), &[]) else {
        return;
    };
    env.cliq(["settings", "set", "-g", "sandbox", "strict"]).expect(0);
    env.cliq(["run"]).expect(3);
    env.cliq(["explain"]).expect(0).says("sandbox strict by landlock");
}

#[test]
fn model_works_with_tools_in_a_container() {
    let replies = serde_json::json!({"scenes": [{"replies": [
        {"calls": [
            {"name": "run_command", "arguments": {"command": "echo made > made; cat \"$CLIQ_HOME/settings.json\""}},
            {"name": "read_file", "arguments": {"path": "made"}},
        ]},
        {"text": "Done."},
    ]}]});
    let script = serde_json::from_value(replies).unwrap();
    let model = cliq_scripted_model::ScriptedModel::start(script, Default::default()).unwrap();
    let team = "workflow:\n  phases:\n    - {name: work, type: standard, agent: openai-api}\n";
    let Some(env) = project(team, &[]) else { return };
    for (key, value) in [
        ("agents.openai-api.base_url", model.base("openai").as_str()),
        ("docker.network_mode", "host"),
        ("sandbox.mechanism", "auto"),
    ] {
        env.cliq(["settings", "set", "-g", key, value]).expect(0);
    }
    env.cliq(["run"]).expect(0);
    let transcript = env.read(".cliq/transcripts/work.1.jsonl");
    assert!(!transcript.contains("base_url"), "{transcript}");
    assert_eq!(env.read("made"), "made\n");
    env.cliq(["explain"]).expect(0).says("sandbox workspace, no network by landlock");
}
