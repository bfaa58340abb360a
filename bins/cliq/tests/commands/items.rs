//! Conditions, items, attempts and required checks, as a user of the program sees them.

use cliq_testkit::env::Env;
use serde_json::{Value, json};

/// Hands a list of tasks over.
const PLANNER: &str = r#"ok
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"plan","phase":"plan","phase_type":"standard","agent":"x","timestamp":"2026-01-01T00:00:00.000Z","text":"t","data":{"tasks":'$(cat tasks.json)'}}'; done
complete
"#;
/// Hands the item of its message over, with the index.
const WORKER: &str = r#"ok
item=$(printf '%s' "$message" | python3 -c 'import json,sys; p=json.load(sys.stdin)["phase"]; print(json.dumps({"got": p["item"], "at": p["index"]}))')
for to in $(ls $CLIQ_DIR/channels | sed -n "s/^$CLIQ_PHASE--//p"); do hand $to '{"version":1,"ts":"2026-01-01T00:00:00.000Z","from":"'$CLIQ_PHASE'","phase":"'$CLIQ_PHASE'","phase_type":"standard","agent":"x","timestamp":"2026-01-01T00:00:00.000Z","text":"t","data":'"$item"'}'; done
complete
"#;

fn statuses(env: &Env) -> Vec<(String, String)> {
    let phases = env.cliq(["status", "--json"]).expect(0).json()["phases"].clone();
    let row = |phase: &Value| {
        let text = |field: &str| phase[field].as_str().unwrap_or_default().to_owned();
        (text("name"), text("status"))
    };
    phases.as_array().expect("phases").iter().map(row).collect()
}

#[test]
fn items_of_a_handoff_are_worked_on_and_joined_in_order() {
    let workflow = "workflow:
  phases:
    - {name: plan, type: standard, agent: planner}
    - name: work
      type: standard
      agent: worker
      depends_on: [plan]
      for_each: handoff.plan.tasks
      when: item.size > 0
    - name: join
      type: exec
      depends_on: [work]
      when: handoff.work.size() == 4 && handoff.work[1] == null && handoff.work[3].got.file == 'd'
      commands: [{name: show, run: 'ls -d .cliq/channels/work*--join > seen; echo $(handoff.work[2].at) >> seen'}]
";
    let workflow = workflow.replace("when: handoff.work", "when: has(handoff.work) && handoff.work");
    let env = Env::new(&workflow, &[("planner", PLANNER), ("worker", WORKER)]);
    env.write(
        "tasks.json",
        r#"[{"file":"a","size":1},{"file":"b","size":0},{"file":"c","size":2},{"file":"d","size":3}]"#,
    );
    env.cliq(["run", "--headless"]).expect(0).says("work: started with 3 of 4 items");
    let expected = [
        ("plan", "completed"),
        ("work", "completed"),
        ("work.0", "completed"),
        ("work.1", "skipped"),
        ("work.2", "completed"),
        ("work.3", "completed"),
        ("join", "completed"),
    ];
    assert_eq!(statuses(&env), expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
    let seen = env.read("seen");
    assert!(
        seen.contains("work.0--join") && seen.contains("work.3--join") && !seen.contains("work.1--join"),
        "{seen}"
    );
    assert_eq!(seen.lines().last(), Some("2"));
    env.cliq(["logs", "work.2"]).expect(0);
    env.write("tasks.json", "[]");
    env.cliq(["run", "--headless", "-f"])
        .expect(0)
        .says("work: skipped: its list has no items")
        .says("join: skipped");
    env.write("tasks.json", &json!(vec![json!({"size": 1}); 21]).to_string());
    env.cliq(["run", "--headless", "-f"]).expect(3).says("the list has 21 items, and `max_items` is 20");
}

#[test]
fn failed_expressions_escalate_with_what_they_read() {
    let workflow = "workflow:
  phases:
    - {name: plan, type: standard, agent: planner}
    - {name: work, type: exec, depends_on: [plan], when: handoff.plan.tasks.count > 2, commands: [{name: c, run: 'true'}]}
";
    let env = Env::new(workflow, &[("planner", PLANNER)]);
    env.write("tasks.json", r#"{"n":3}"#);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("`when: handoff.plan.tasks.count > 2`: there is no `count`")
        .says(r#"it read handoff.plan = {"tasks":{"n":3}}"#);
    env.write("tasks.json", r#"{"count":3}"#);
    env.cliq(["run", "--headless", "--resume", "--from", "plan"]).expect(0);
    env.cliq(["explain"]).expect(0).says("work: decided by `handoff.plan.tasks.count > 2`");
}

#[test]
fn failures_are_tried_again_within_bounds() {
    let workflow = "workflow:
  phases:
    - {name: flaky, type: exec, retry: {attempts: 3, on: [exit]}, commands: [{name: c, run: 'echo x >> tries; test $(wc -l < tries) -ge 3'}]}
    - {name: hopeless, type: exec, depends_on: [flaky], retry: {attempts: 2}, commands: [{name: c, run: 'echo x >> hopeless; exit 7'}]}
";
    let env = Env::new(workflow, &[]);
    env.cliq(["team", "validate", "../team"]).expect(0).says("at most 5 activations");
    env.cliq(["run", "--headless"]).expect(3).says("flaky: attempt 3 of 3").says("exit status 7");
    assert_eq!(env.read("tries").lines().count(), 3);
    assert_eq!(env.read("hopeless").lines().count(), 2);
    let timeout = "workflow:
  phases:
    - {name: slow, type: exec, timeout: 1s, retry: {attempts: 2, on: [exit]}, commands: [{name: c, run: 'echo x >> slow; sleep 9'}]}
";
    let env = Env::new(timeout, &[]);
    env.cliq(["run", "--headless"]).expect(3);
    assert_eq!(env.read("slow").lines().count(), 1, "a timeout is not among the causes");
}

#[test]
fn phase_goes_on_without_failed_items_or_escalates() {
    let workflow = |policy: &str| {
        format!(
            "workflow:
  phases:
    - {{name: work, type: exec, for_each: '[0, 1, 2]', {policy}commands: [{{name: c, run: 'echo $(item) >> ran; test $(item) != 1 || test -e mended'}}]}}
    - {{name: end, type: exec, depends_on: [work], commands: [{{name: c, run: 'true'}}]}}
"
        )
    };
    let env = Env::new(&workflow("on_item_failure: continue, "), &[]);
    env.cliq(["run", "--headless"]).expect(0).says("work.1: failed, and the phase goes on");
    assert_eq!(statuses(&env)[2].1, "failed");
    let env = Env::new(&workflow("max_parallel: 1, "), &[]);
    env.cliq(["run", "--headless"]).expect(3).says("phase `work`: item 1: command `c` failed");
    assert_eq!(env.read("ran"), "0\n1\n");
    env.write("mended", "");
    env.cliq(["run", "--headless", "--resume"]).expect(0);
    assert_eq!(env.read("ran"), "0\n1\n1\n2\n", "what completed does not run again");
}

#[test]
fn pass_with_a_failing_required_command_is_sent_back() {
    let workflow = "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: c, run: 'echo x >> rounds'}]}
    - name: judge
      type: gate
      agent: yes-man
      depends_on: [work]
      commands:
        - {name: tests, run: 'test $(wc -l < rounds) -ge 2', required: true}
        - {name: lint, run: 'false'}
";
    let env = Env::new(workflow, &[("yes-man", "echo asked >> asked\nok\nverdict '\"PASS\"'\n")]);
    env.cliq(["run", "--headless"])
        .expect(0)
        .says("required commands fail: `tests`. PASS is not accepted")
        .says("ROUTE to work: required commands fail: `tests`; the agent answered PASS twice")
        .says("although these fail: lint");
    assert_eq!(env.read("asked").lines().count(), 3);
    let judge = env.cliq(["status", "--json"]).expect(0).json()["phases"][1].clone();
    assert_eq!((judge["status"].as_str(), &judge["failing"]), (Some("completed"), &json!(["lint"])));
    env.cliq(["explain"]).expect(0).says("although these fail: lint");
}

#[test]
fn gate_routes_back_to_chosen_items() {
    let judge = r#"ok
if [ -e again ]; then verdict '"PASS"'; else touch again; say '"status":"complete","result":{"verdict":{"outcome":"ROUTE","target":"work","reason":"no","items":[1]}}'; fi
"#;
    let workflow = "workflow:
  phases:
    - {name: work, type: exec, for_each: '[0, 1, 2]', max_parallel: 1, commands: [{name: c, run: 'echo $(index) >> ran; ls .cliq/channels | grep -- \"--$CLIQ_PHASE$\" >> fed || true'}]}
    - {name: judge, type: gate, agent: judge, depends_on: [work], commands: [{name: c, run: 'true'}]}
";
    let env = Env::new(workflow, &[("judge", judge)]);
    env.cliq(["run", "--headless"]).expect(0).says("work: started with 1 of 3 items");
    assert_eq!(env.read("ran"), "0\n1\n2\n1\n");
    assert_eq!(env.read("fed"), "judge--work.1\n", "the feedback reaches the item");
}

#[test]
fn rules_decide_by_conditions() {
    let workflow = "inputs: [{name: strict, default: 'no'}]
workflow:
  phases:
    - name: check
      type: gate
      agent: rules
      commands: [{name: tests, run: 'true'}, {name: lint, run: 'false'}]
      rules:
        - {if: 'inputs.strict == \"no\" && results.check.all(r, r.pass || r.name == \"lint\")', to: PASS, reason: only the lint fails}
        - {if: 'true', to: ESCALATE}
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"]).expect(0).says("PASS: only the lint fails");
    env.cliq(["run", "--headless", "-f", "--input", "strict=yes"]).expect(3);
}

#[test]
fn teams_run_once_for_each_item() {
    let inner = "name: \"@local/inner\"
inputs: [{name: who}]
workflow:
  phases: [{name: greet, type: exec, commands: [{name: c, run: 'echo hello $(inputs.who) >> greetings'}]}]
";
    let workflow = "workflow:
  phases:
    - {name: all, type: team, team: ../inner, for_each: '[\"ann\", \"bob\"]', inputs: {who: $(item)}}
";
    let env = Env::bare();
    env.write("../inner/team.yml", inner);
    env.team(workflow, &[]);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    let greetings = env.read("greetings");
    let mut lines: Vec<&str> = greetings.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["hello ann", "hello bob"]);
}

#[test]
fn mistakes_of_expressions_are_reported_where_they_are() {
    let workflow = "inputs: [{name: mode, default: fast}]
workflow:
  phases:
    - {name: a, type: exec, when: inputs.mode, commands: [{name: c, run: 'true'}]}
    - {name: b, type: exec, depends_on: [a], when: handoff.a.x > 1, commands: [{name: c, run: 'true'}]}
    - {name: c, type: exec, when: has(handoff.b) && handoff.b.x, commands: [{name: c, run: 'true'}]}
    - {name: d, type: exec, when: inputs.mdoe == 'x' &&, commands: [{name: c, run: 'true'}]}
    - {name: e, type: exec, when: item > 1, for_each: index + 1, commands: [{name: c, run: 'true'}]}
    - {name: f, type: exec, when: 'verdict.b.outcome == \"PASS\" || inptus.mode == \"x\" || [1].exists(inputs, inputs > 0)', depends_on: [b], commands: [{name: c, run: echo $(item)}]}
    - {name: g, type: gate, retry: {attempts: 2}, commands: [{name: c, run: 'true'}], agent: rules}
    - {name: h, type: exec, max_items: 4, commands: [{name: c, run: 'true', required: true}]}
    - {name: my-phase, type: exec, commands: [{name: c, run: 'true'}]}
    - {name: i, type: exec, depends_on: [my-phase], when: handoff.my-phase.x, commands: [{name: c, run: 'true'}]}
";
    let env = Env::bare();
    env.team(workflow, &[]);
    let report = env.cliq(["team", "validate", "--json", "../team"]).expect(2).json();
    let found: Vec<(String, i64)> = report["diagnostics"]
        .as_array()
        .expect("diagnostics")
        .iter()
        .map(|d| (d["code"].as_str().unwrap_or_default().to_owned(), d["line"].as_i64().unwrap_or(0)))
        .collect();
    for (code, line) in [
        ("expression-type", 5),
        ("missing-has", 6),
        ("expression-not-upstream", 7),
        ("invalid-expression", 8),
        ("expression-type", 9),
        ("expression-kind", 10),
        ("unknown-name", 10),
        ("shadowed-name", 10),
        ("item-without-for-each", 10),
        ("field-not-allowed", 11),
        ("missing-for-each", 12),
        ("field-not-allowed", 12),
        ("unknown-phase", 14),
    ] {
        assert!(found.contains(&(code.to_owned(), line)), "{code} on line {line} is not in {found:#?}");
    }
    let help = env.cliq(["team", "validate", "../team"]).expect(2);
    assert!(help.stderr.contains("handoff[\"my-phase\"]"), "{}", help.stderr);
}

/// The hour of the delay is not waited for: the time in the journal is moved to the past.
#[test]
fn a_long_delay_parks_the_run() {
    let workflow = "workflow:
  phases:
    - {name: fetch, type: exec, retry: {attempts: 2, delay: 1h}, commands: [{name: c, run: 'echo x >> tries; test $(wc -l < tries) -ge 2'}]}
    - {name: end, type: exec, depends_on: [fetch], commands: [{name: c, run: echo end > end}]}
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless", "--park"])
        .expect(6)
        .says("WAITING")
        .says("`cliq run --resume` continues it");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    assert_eq!(status["state"], "waiting", "{status:#}");
    // Too early: the run parks again, with the same time.
    let until = status["waiting"]["until"].as_str().expect("a time").to_owned();
    env.cliq(["run", "--headless", "--resume", "--park"]).expect(6).says(&until);
    assert_eq!(env.read("tries").lines().count(), 1);
    env.write(
        ".cliq/journal.jsonl",
        &env.read(".cliq/journal.jsonl").replace(&until, "2026-01-01T00:00:00.000Z"),
    );
    env.cliq(["run", "--headless", "--resume", "--park"]).expect(0);
    assert_eq!((env.read("tries").lines().count(), env.read("end").trim()), (2, "end"));
}
