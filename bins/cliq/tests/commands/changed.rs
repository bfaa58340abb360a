//! `cliq run --changed`: phases whose inputs differ from the last run, and all that depend on them.

use cliq_testkit::env::Env;
use serde_json::Value;

/// Records that it worked, and hands its requirement over.
const WORKER: &str = r#"ok
echo $CLIQ_PHASE >> worked
mkdir -p "$CLIQ_DIR/files/$CLIQ_PHASE"
date +%N > "$CLIQ_DIR/files/$CLIQ_PHASE/made"
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"'$CLIQ_PHASE'","phase":"'$CLIQ_PHASE'","phase_type":"standard","agent":"x","timestamp":"2026-01-01T00:00:00.000Z","text":"t","data":{"by":"'$CLIQ_PHASE'","tasks":["x","y"]}}'; done
complete
"#;
const JUDGE: &str = "ok\necho $CLIQ_PHASE >> worked\nverdict '\"PASS\"'\n";

const TEAM: &str = "inputs:
  - {name: topic, default: bees}
workflow:
  phases:
    - {name: plan, type: standard, agent: worker}
    - {name: build, type: standard, agent: worker, depends_on: [plan], inputs_files: ['src/**/*.txt']}
    - {name: check, type: gate, agent: judge, depends_on: [build], commands: [{name: ok, run: 'true'}]}
    - {name: docs, type: standard, agent: other, depends_on: [plan]}
    - name: count
      type: exec
      depends_on: [check, docs]
      commands: [{name: n, run: 'echo $(inputs.topic) count >> worked'}]
";

fn env() -> Env {
    let env = Env::new(TEAM, &[("worker", WORKER), ("other", WORKER), ("judge", JUDGE)]);
    env.write("src/deep/a.txt", "a");
    env.cliq(["req", "-m", "one"]).expect(0);
    env
}

/// Phases that worked since the last call, in alphabetical order.
fn worked(env: &Env) -> String {
    let text = if env.exists("worked") { env.read("worked") } else { String::new() };
    let mut lines: Vec<&str> = text.lines().map(|line| line.rsplit(' ').next().unwrap_or(line)).collect();
    lines.sort_unstable();
    env.write("worked", "");
    lines.join(" ")
}

/// Phases that a dry run names, with their first reason.
fn plan(env: &Env) -> Vec<(String, String)> {
    let dry = env.cliq(["run", "--changed", "--dry-run", "--json"]).expect(0).json();
    let row = |phase: &Value| {
        let name = phase["phase"].as_str().expect("a name").to_owned();
        phase["runs"]
            .as_bool()
            .expect("a flag")
            .then(|| (name, phase["reasons"][0].as_str().expect("a reason").to_owned()))
    };
    dry["phases"].as_array().expect("phases").iter().filter_map(row).collect()
}

fn assert_plan(env: &Env, expected: &[(&str, &str)]) {
    let expected: Vec<(String, String)> =
        expected.iter().map(|(name, reason)| ((*name).to_owned(), (*reason).to_owned())).collect();
    assert_eq!(plan(env), expected);
}

#[test]
fn only_what_changed_and_what_depends_on_it_runs_again() {
    let env = env();
    env.cliq(["run", "--changed"]).expect(4).says("nothing has run here yet");
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(worked(&env), "build check count docs plan");
    let first = env.read(".cliq/journal.jsonl");

    // Nothing changed: the last run stays the last run.
    env.cliq(["run", "--changed", "--headless"]).expect(0).says("nothing has changed since the last run");
    assert_eq!(env.read(".cliq/journal.jsonl"), first);
    assert_plan(&env, &[]);

    let made = env.read(".cliq/files/plan/made");
    env.write(".cliq/roles/docs.md", "Write better.\n");
    assert_plan(&env, &[("docs", "its role changed"), ("count", "it depends on `docs`")]);
    env.cliq(["run", "--changed", "--headless"]).expect(0).says("kept from the last run: plan, build, check");
    assert_eq!(worked(&env), "count docs");
    // What kept phases left is where it was.
    assert_eq!(env.read(".cliq/files/plan/made"), made);
    assert!(env.exists(".cliq/channels/plan--build/handoff.json"));
    let status = env.cliq(["status", "--json"]).expect(0).json();
    let phases = status["phases"].as_array().expect("phases");
    assert!(phases.iter().all(|phase| phase["status"] == "completed"), "{status:#}");
    let kept: Vec<&str> = phases
        .iter()
        .filter(|phase| phase["kept_from"].is_string())
        .map(|phase| phase["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(kept, ["plan", "build", "check"]);
    env.cliq(["status"]).expect(0).says("kept from run");
    env.cliq(["explain"]).expect(0).says("kept from the last run: plan, build, check");

    // Phases that were kept are kept again.
    env.write("src/deep/a.txt", "b");
    let changed = "files `src/**/*.txt` changed";
    assert_plan(
        &env,
        &[("build", changed), ("check", "it depends on `build`"), ("count", "it depends on `check`")],
    );
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(worked(&env), "build check count");
    assert_eq!(env.read(".cliq/files/plan/made"), made);
}

#[test]
fn each_kind_of_input_is_compared() {
    let env = env();
    env.cliq(["run", "--headless", "--input", "topic=ants"]).expect(0);
    worked(&env);
    // An input that is not given is that of the last run.
    assert_plan(&env, &[]);
    let run = |expected: &str, args: &[&str]| {
        let args = ["run", "--changed", "--headless"].iter().chain(args).copied().collect::<Vec<_>>();
        env.cliq(args).expect(0);
        assert_eq!(worked(&env), expected);
        assert_plan(&env, &[]);
    };
    run("build check count docs plan", &["--input", "topic=bears"]);
    // A new requirement puts the last run aside.
    env.cliq(["req", "-m", "two"]).expect(0);
    let changed = "the requirement changed";
    let all = ["plan", "build", "check", "docs"].map(|phase| (phase, changed));
    assert_plan(&env, &[&all[..], &[("count", "it depends on `check`, `docs`")]].concat());
    run("build check count docs plan", &[]);
    env.write(".cliq/team/agents/other", &format!("{}#\n", env.read(".cliq/team/agents/other")));
    assert_plan(&env, &[("docs", "files of its agent changed"), ("count", "it depends on `docs`")]);
    run("count docs", &[]);
    env.write(".cliq/channels/docs--count/instructions.md", "Short.\n");
    assert_plan(
        &env,
        &[("docs", "instructions.md of channel docs--count is new"), ("count", "it depends on `docs`")],
    );
    run("count docs", &[]);
    let team = env.read(".cliq/team.yml");
    env.write(".cliq/team.yml", &team.replace("run: 'true'", "run: 'test 1'"));
    assert_plan(&env, &[("check", "command `ok` changed"), ("count", "it depends on `check`")]);
    run("check count", &[]);
    let team = env.read(".cliq/team.yml");
    env.write(".cliq/team.yml", &team.replace("agent: other,", "agent: other, model: m2,"));
    assert_plan(
        &env,
        &[("docs", "its agent changed from other to other m2"), ("count", "it depends on `docs`")],
    );
    run("count docs", &[]);
    // A phase that is new gets what a kept phase handed over last.
    let team = env.read(".cliq/team.yml");
    env.write(".cliq/team.yml", &format!("{team}    - {{name: late, type: exec, depends_on: [plan], commands: [{{name: n, run: 'grep -q plan .cliq/channels/plan--late/handoff.json && echo $(handoff.plan.by)-late >> worked'}}]}}\n"));
    assert_plan(&env, &[("late", "it is new")]);
    run("plan-late", &[]);
}

#[test]
fn phases_that_did_not_complete_run_and_a_kept_gate_can_send_work_back() {
    let env = env();
    env.write(".cliq/team/agents/judge", &format!("{}{}", cliq_testkit::env::PRELUDE, "ok\necho $CLIQ_PHASE >> worked\n[ -f good ] || { touch good; verdict '\"ROUTE:build\"'; exit; }\nverdict '\"PASS\"'\n"));
    env.write(".cliq/team/agents/other", "#!/bin/sh\ncat > /dev/null\nuntil [ \"$(grep -c check worked)\" = 2 ]; do sleep 0.05; done\nsleep 0.3\nexit 1\n");
    env.cliq(["run", "--headless"]).expect(3);
    assert_eq!(worked(&env), "build build check check plan");
    env.write(".cliq/team/agents/other", &format!("{}{WORKER}", cliq_testkit::env::PRELUDE));
    assert_eq!(plan(&env).iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["docs", "count"]);
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(worked(&env), "count docs");
    // The gate runs again and sends work back to a phase that was kept.
    std::fs::remove_file(env.path("good")).expect("removed");
    env.write(".cliq/roles/check.md", "Judge.\n");
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(worked(&env), "build check check count");
    // A phase that was kept can be run again from.
    env.cliq(["run", "--from", "plan", "--headless"]).expect(0);
    assert_eq!(worked(&env), "build check count docs plan");
}

#[test]
fn items_skipped_phases_and_verdicts_are_kept() {
    let workflow = "workflow:
  phases:
    - {name: plan, type: standard, agent: worker}
    - {name: each, type: standard, agent: picky, depends_on: [plan], for_each: handoff.plan.tasks, on_item_failure: continue}
    - {name: never, type: exec, depends_on: [plan], when: 'false', commands: [{name: n, run: 'echo never >> worked'}]}
    - {name: check, type: gate, agent: judge, depends_on: [each]}
    - name: end
      type: exec
      depends_on: [check, never, each]
      when: handoff.each.size() == 2 && handoff.each[0] == null && handoff.each[1].by == 'each.1' && has(verdict.check) && verdict.check.outcome == 'PASS' && !has(handoff.never)
      commands: [{name: n, run: 'echo end >> worked'}]
";
    let workflow = workflow.replace("when: handoff.each", "when: has(handoff.each) && handoff.each");
    let picky = format!("[ $CLIQ_PHASE = each.0 ] && exit 1\n{WORKER}");
    let env = Env::new(&workflow, &[("worker", WORKER), ("picky", &picky), ("judge", JUDGE)]);
    env.cliq(["req", "-m", "one"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(worked(&env), "check each.1 end plan");
    let team = env.read(".cliq/team.yml");
    env.write(".cliq/team.yml", &team.replace("echo end", "echo new end"));
    assert_plan(&env, &[("end", "command `n` changed")]);
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(worked(&env), "end");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    let row = |name: &str| {
        let phases = status["phases"].as_array().expect("phases");
        phases.iter().find(|phase| phase["name"] == name).unwrap_or_else(|| panic!("{name}")).clone()
    };
    assert_eq!(row("never")["status"], "skipped");
    assert_eq!(row("each.0")["status"], "failed");
    assert_eq!(row("each.1")["status"], "completed");
    assert_eq!(row("check")["verdict"]["outcome"], "PASS");
}

#[test]
fn a_killed_run_of_what_changed_loses_nothing() {
    let env = env();
    env.cliq(["run", "--headless"]).expect(0);
    worked(&env);
    for n in 0..20 {
        env.write(".cliq/roles/docs.md", &format!("Round {n}.\n"));
        let mut child = env.spawn(["run", "--changed", "--headless"]);
        std::thread::sleep(std::time::Duration::from_millis(n * 9));
        child.kill().expect("killed");
        child.wait().expect("waited for");
        // Before the new run is recorded, the last one is still the one to compare with.
        let out = env.cliq(["run", "--resume", "--headless"]);
        if out.code != 0 {
            env.cliq(["run", "--changed", "--headless"]).expect(0);
        }
        let by = worked(&env);
        assert!(
            by.contains("count docs") && !by.contains("plan") && !by.contains("build"),
            "round {n}: {by}"
        );
        assert!(env.exists(".cliq/channels/plan--build/handoff.json"));
        assert!(env.exists(".cliq/files/plan/made"));
    }
}
