//! `cliq team test`: teams with scripted agents.

use cliq_testkit::env::Env;
use serde_json::Value;

/// Items in worktrees, a condition, a gate by a model, one by rules, people, a sub-team, and what leaves the machine.
const TEAM: &str = "name: '@local/everything'
inputs: [{name: lang, default: en}]
workflow:
  phases:
    - name: fetch
      type: pull
      sources: [{name: notes, url: 'http://192.0.2.1/never', file: notes.md}]
    - name: plan
      type: standard
      agent: claude-api
      depends_on: [fetch]
      outputs: {schema: {type: object, required: [files, risk], properties: {files: {type: array, items: {type: string}, minItems: 2}, risk: {enum: [low, high]}}}}
    - name: write
      type: standard
      agent: codex
      depends_on: [plan]
      for_each: 'handoff.plan.files'
      workspace: worktree
    - name: review
      type: gate
      agent: claude-api
      depends_on: [write]
      commands: [{name: written, run: 'ls *.txt'}]
      route_to: [write]
    - name: audit
      type: team
      team: '@nowhere/else@^7'
      depends_on: [review]
      when: 'handoff.plan.risk == \"high\"'
    - name: approve
      type: hug
      depends_on: [audit]
      review: {reviewer: ada, inputs: [{name: note}]}
    - name: ship
      type: exec
      depends_on: [approve]
      commands: [{name: deploy, run: 'echo $(inputs.lang) > /deployed-for-real'}]
      notify: {on_complete: {agent: slack, channel: team}}
";

const TESTS: &str = "tests:
  - name: whole-way
    requirement: Write two files.
    replies:
      plan: {text: Two files., data: {files: [a, b], risk: high}}
      write:
        - {item: 0, files: {a.txt: first}}
        - {item: 0, files: {a.txt: better}}
        - {item: 1, files: {b.txt: second}}
        - {item: 1}
      review:
        - {verdict: write, reason: The first file is short.}
        - {verdict: pass}
      approve: {verdict: pass, reason: Fine., data: {note: ship it}}
    commands: {ship: {deploy: pass}}
    expect:
      order: [fetch, plan, write, review, write, review, audit, approve, ship]
      runs: {fetch: 1, write: 2, audit: 1}
      verdicts: {review: [write, pass], approve: pass}
      commands: {review: {written: [pass, pass]}, ship: {deploy: pass}}
      prompts:
        - {phase: plan, contains: Write two files.}
        - {phase: write, item: 0, activation: 2, contains: The first file is short.}
        - {phase: write, item: 1, activation: 1, contains: '\"b\"', lacks: short}
    checks:
      - {file: a.txt, matches: better}
      - {file: notes.md, absent: true}
      - {expr: 'handoff.plan.risk == \"high\" && size(handoff.write) == 2 && end == \"completed\"'}
  - name: default-replies
    replies:
      review: {verdict: escalate, reason: Nothing is written.}
    expect:
      end: escalated
      reason: Nothing is written.
      runs: {plan: 1, ship: 0}
      commands: {review: {written: fail}}
  - name: agents-fail
    replies:
      plan: {error: the model is tired}
    expect: {end: escalated, reason: tired, runs: {write: 0}}
  - name: people-refuse
    files: {done.txt: x}
    replies:
      plan: {data: {files: [a, b], risk: high}}
      approve: {verdict: escalate, reason: Not in this quarter.}
    expect: {end: escalated, reason: Not in this quarter., runs: {audit: 1, ship: 0}}
";

fn env() -> Env {
    let env = Env::bare();
    env.write("t/team.yml", TEAM);
    for role in ["plan", "write", "review"] {
        env.write(&format!("t/roles/{role}.md"), "Do it well.");
    }
    env.write("t/tests/all.yml", TESTS);
    env
}

#[test]
fn new_team_has_tests_that_pass() {
    let env = Env::bare();
    env.cliq(["team", "create", "hello"]).expect(0).says("cliq team test hello");
    env.cliq(["team", "test", "hello"]).expect(0).says("2 of 2 tests passed");
    // Its check notices a team that is wired in another way.
    env.write("hello/team.yml", &env.read("hello/team.yml").replace("test -s work.md", "true"));
    let failed = env.cliq(["team", "test", "hello"]).expect(1);
    failed
        .says("FAIL missing-work-goes-to-the-fixer")
        .says("verdicts of `quality`: pass; expected: fixer, pass");
}

#[test]
fn whole_team_runs_without_a_model() {
    let env = env();
    let result = env.cliq(["team", "test", "t", "--json"]);
    let json = result.json();
    let result = result.expect(0);
    assert_eq!((&json["passed"], &json["failed"]), (&4.into(), &0.into()), "{}", result.stdout);
    assert!(!std::path::Path::new("/deployed-for-real").exists(), "the command did not run");
    let run = &json["tests"][0]["run"];
    let deploy = run["commands"].as_array().unwrap().iter().find(|row| row["command"] == "deploy").unwrap();
    assert_eq!((&deploy["scripted"], &deploy["pass"]), (&true.into(), &true.into()));
    let first = &run["activations"][0];
    assert_eq!((&first["phase"], &first["reply"]), (&"fetch".into(), &Value::Null));
    assert_eq!(env.marked(&format!("CLIQ_HOME={}", env.home().display())), Vec::<String>::new());
    // By its file, and by name.
    env.cliq(["team", "test", "t/tests/all.yml", "--only", "people"]).expect(0).says("1 of 1 test passed");
    env.cliq(["team", "test", "t", "--only", "nothing"]).expect(2).says("no test of @local/everything");
    env.cliq(["team", "test", "t", "--check"]).expect(0).says("4 tests in 1 file");
}

#[test]
fn differences_from_expectations_are_failures() {
    let env = env();
    for (from, to, says) in [
        ("lacks: short", "lacks: well", "the prompt of `write`, item 1, activation 1, contains \"well\""),
        ("matches: better", "matches: best", "check `file-1`: a.txt does not match"),
        (
            "runs: {fetch: 1, write: 2,",
            "runs: {fetch: 1, write: 3,",
            "phase `write` started 2 times; expected: 3 times",
        ),
        (
            "review, audit, approve, ship]",
            "review, approve, audit, ship]",
            "order of the phases: fetch, plan",
        ),
        (
            "end: escalated\n      reason: Nothing",
            "end: failed\n      reason: Nothing",
            "the run escalated (phase `review`: the gate escalated: Nothing is written.); expected: failed",
        ),
        ("reason: tired", "reason: awake", "the reason of the end is"),
        ("{written: fail}", "{written: pass}", "results of `review/written`: fail; expected: pass"),
        (
            "ship: {deploy: pass}}\n    expect",
            "ship: {deploy: [pass, fail]}}\n    expect",
            "results of `ship/deploy`: 2 in the script, 1 used",
        ),
        (
            "        - {item: 1}\n",
            "        - {item: 1}\n        - {item: 1}\n",
            "reply 5 of `write` was not used",
        ),
        ("        - {item: 1}\n", "", "has no scripted reply: the script has 1 reply"),
        (
            "item: 0, activation: 2,",
            "item: 0, activation: 3,",
            "phase `write` has no activation 3 for item 0",
        ),
    ] {
        assert!(TESTS.contains(from), "{from}");
        env.write("t/tests/all.yml", &TESTS.replace(from, to));
        let name = TESTS[..TESTS.find(from).unwrap()].rsplit("- name: ").next().unwrap();
        let name = name.lines().next().unwrap();
        env.cliq(["team", "test", "t", "--only", name]).expect(1).says(says).says("0 of 1 test passed");
    }
}

#[test]
fn runs_that_take_too_long_are_cancelled() {
    let env = Env::bare();
    env.write(
        "t/team.yml",
        "name: '@local/slow'\nworkflow: {phases: [{name: wait, type: exec, commands: [{name: c, run: sleep 600}]}]}\n",
    );
    env.write("t/tests/a.yml", "tests: [{name: slow, timeout: 1s}]\n");
    env.cliq(["team", "test", "t"]).expect(1).says("cancelled after 1 s, the time limit of the test");
    assert_eq!(env.marked(&format!("CLIQ_HOME={}", env.home().display())), Vec::<String>::new());
}

#[test]
fn what_cannot_be_tested_is_refused() {
    let env = env();
    env.write("t/tests/all.yml", &TESTS.replace("review: {verdict: escalate", "reveiw: {verdict: escalate"));
    let refused = env.cliq(["team", "test", "t"]).expect(2);
    refused.says("unknown-phase").says("did you mean `review`?").says("t/tests/all.yml:31");
    let rows = env.cliq(["team", "test", "t", "--check", "--json"]).expect(2).json();
    assert_eq!((&rows["valid"], &rows["diagnostics"][0]["line"]), (&false.into(), &31.into()), "{rows:#}");
    env.cliq(["team", "test", "@cliq/code"]).expect(2).says("has no tests");
    env.write("t/team.yml", &TEAM.replace("type: pull", "type: pll"));
    env.cliq(["team", "test", "t"]).expect(2).says("invalid-value");
    env.write("elsewhere.yml", TESTS);
    env.cliq(["team", "test", "elsewhere.yml"]).expect(2).says("is not in the folder `tests` of a team");
}

#[test]
fn tests_write_nothing_outside_their_workspace() {
    let env = Env::bare();
    env.write("outside/kept", "ours");
    env.write("fixture/a.txt", "a");
    std::os::unix::fs::symlink(env.path("outside"), env.path("fixture/out")).expect("a link");
    env.write(
        "t/team.yml",
        "name: '@local/links'\nworkflow: {phases: [{name: write, type: standard, agent: claude-api}]}\n",
    );
    env.write("t/roles/write.md", "Write.");
    for (reply, says) in [
        ("files: {out/new: x}", "leads through the link"),
        ("remove: [out/kept]", "leads through the link"),
        ("remove: [nothing.txt]", "cannot remove nothing.txt"),
    ] {
        env.write(
            "t/tests/a.yml",
            &format!("tests: [{{name: a, workspace: ../../fixture, replies: {{write: [{{{reply}}}]}}}}]\n"),
        );
        env.cliq(["team", "test", "t"]).expect(1).says(says);
    }
    env.write("t/tests/a.yml", "tests: [{name: a, workspace: ../../fixture, files: {out/new: x}}]\n");
    env.cliq(["team", "test", "t"]).expect(1).says("leads through the link");
    assert_eq!(env.read("outside/kept"), "ours");
    assert!(!env.exists("outside/new"));
}
