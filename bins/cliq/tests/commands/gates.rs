//! Gates: budget, routes, queues, timeouts, what reaches whom.

use cliq_testkit::env::Env;

#[test]
fn the_budget_ends_the_loop_and_the_summary_shows_what_failed() {
    let workflow = "workflow:
  phases:
    - name: develop
      type: exec
      commands: [{name: try, run: 'echo once >> tries'}]
    - name: quality
      type: gate
      agent: rules
      depends_on: [develop]
      max_iterations: 2
      commands:
        - {name: good, run: 'true'}
        - {name: tests, run: 'echo 3 tests are red; exit 4'}
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("the budget of 2 iterations is spent")
        .says("command `tests` ended with exit status 4")
        .says("3 tests are red")
        .says("ESCALATED");
    assert_eq!(env.read("tries").lines().count(), 2);
    assert_eq!(env.phases()["quality"], ("escalated".into(), 2));
}

#[test]
fn rules_send_each_failure_where_it_belongs() {
    let workflow = "workflow:
  phases:
    - name: quality
      type: gate
      agent: rules
      commands:
        - {name: a, run: test -f a}
        - {name: b, run: test -f b}
        - {name: c, run: test -f c}
      rules: {a: fix-a, b: fix-b, c: ESCALATE}
      max_iterations: 4
  support:
    - name: fix-a
      type: exec
      commands: [{name: t, run: touch a}]
    - name: fix-b
      type: exec
      commands: [{name: t, run: touch b}]
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"]).expect(3).says("the gate escalated: 1 of 3 commands fail: c.");
    let phases = env.phases();
    assert_eq!((phases["fix-a"].1, phases["fix-b"].1, phases["quality"].1), (1, 1, 3));
    assert!(
        env.exists(".cliq/signals/fix-a_routed") && env.exists(".cliq/channels/quality--fix-a/handoff.json")
    );
}

#[test]
fn two_gates_that_route_to_one_phase_queue() {
    // The fixer takes its time and would notice if it ran twice at once.
    let workflow = "workflow:
  phases:
    - name: left
      type: gate
      agent: rules
      commands: [{name: t, run: test -f left-fixed}]
      route_to: [fixer]
    - name: right
      type: gate
      agent: rules
      commands: [{name: t, run: test -f right-fixed}]
      route_to: [fixer]
  support:
    - name: fixer
      type: standard
      agent: fixer
";
    let fixer = r#"ok
mkdir busy || exit 5
sleep 0.3
case $message in *'"routed_by": "left"'*) touch left-fixed ;; *'"routed_by": "right"'*) touch right-fixed ;; esac
rmdir busy
complete
"#;
    let env = Env::new(workflow, &[("fixer", fixer)]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.phases()["fixer"], ("completed".into(), 2));
}

#[test]
fn a_gate_may_route_to_a_gate_before_it() {
    let workflow = "workflow:
  phases:
    - name: develop
      type: exec
      commands: [{name: t, run: 'echo x >> work'}]
    - name: first
      type: gate
      agent: rules
      depends_on: [develop]
      commands: [{name: t, run: test -f work}]
    - name: second
      type: gate
      agent: second
      depends_on: [first]
";
    let second =
        "ok\nif [ -f seen ]; then verdict '\"PASS\"'; else touch seen; verdict '\"ROUTE:first\"'; fi\n";
    let env = Env::new(workflow, &[("second", second)]);
    env.cliq(["run", "--headless"]).expect(0);
    let phases = env.phases();
    assert_eq!((phases["develop"].1, phases["first"].1, phases["second"].1), (1, 2, 2));
}

#[test]
fn support_gates_that_route_in_a_circle_escalate() {
    let workflow = "workflow:
  phases:
    - name: main
      type: gate
      agent: judge
      route_to: [one]
  support:
    - name: one
      type: gate
      agent: judge
      route_to: [two]
    - name: two
      type: gate
      agent: judge
      route_to: [one]
";
    let judge =
        "ok\ncase $CLIQ_PHASE in main|two) verdict '\"ROUTE:one\"' ;; one) verdict '\"ROUTE:two\"' ;; esac\n";
    let env = Env::new(workflow, &[("judge", judge)]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("phase `two`: cannot route to `one`, which waits for this gate");
}

#[test]
fn an_agents_own_gate_envelope_is_left_alone() {
    let workflow = "workflow:
  phases:
    - name: develop
      type: exec
      commands: [{name: t, run: 'true'}]
    - name: judge
      type: gate
      agent: judge
      depends_on: [develop]
    - name: after
      type: exec
      depends_on: [judge]
      commands: [{name: t, run: 'echo $(handoff.judge.verdict.reason) > said'}]
";
    let judge = r#"ok
if [ -f seen ]; then verdict '{"outcome":"PASS","reason":"fine; now"}'; exit 0; fi
touch seen
hand develop '{"version":1,"phase_type":"gate","phase":"judge","agent":"judge","data":{"verdict":{"outcome":"ROUTE","target":"develop","reason":"mine"},"checks":[],"iteration":1,"max_iterations":3},"text":"in my own words"}'
verdict '{"outcome":"ROUTE","target":"develop","reason":"short"}'
"#;
    let env = Env::new(workflow, &[("judge", judge)]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read_json(".cliq/channels/judge--develop/handoff.json")["text"], "in my own words");
    assert_eq!(env.read("said"), "fine; now\n");
}

#[test]
fn a_gates_agent_has_its_own_time() {
    let workflow = "workflow:\n  phases:\n    - name: judge\n      type: gate\n      agent: judge\n";
    let env = Env::new(workflow, &[("judge", "ok\nsleep 100\n")]);
    env.write(".cliq/settings.json", "{\"gate_agent_timeout\": \"1s\"}");
    env.cliq(["run", "--headless"]).expect(3).says("phase `judge`: it did not finish within 1 s");
    assert_eq!(env.left_over(), Vec::<String>::new());
}
