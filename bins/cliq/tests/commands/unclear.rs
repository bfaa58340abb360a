//! Ends that are no clear success: none of them looks like one.

use cliq_testkit::env::Env;
use rustix::process::{Pid, Signal, kill_process};

/// A team with one exec phase.
fn exec(commands: &str) -> Env {
    Env::new(
        &format!("workflow:\n  phases:\n    - name: p\n      type: exec\n      commands:\n{commands}"),
        &[],
    )
}

/// The caveats of the last run, on which all commands agree.
fn caveats(env: &Env) -> Vec<String> {
    let [status, explained] =
        ["status", "explain"].map(|command| env.cliq([command, "--json"]).expect(0).json());
    assert_eq!(status["caveats"], explained["caveats"]);
    let runs = env.cliq(["runs", "--json"]).expect(0).json();
    let caveats: Vec<String> = serde_json::from_value(status["caveats"].clone()).unwrap();
    assert_eq!(runs["runs"][0]["has_caveats"], !caveats.is_empty());
    caveats
}

#[test]
fn condition_that_cannot_be_evaluated_fails_its_command() {
    for (condition, why) in [
        ("no-such-program --version", "not found"),
        ("kill -9 $$", "signal 9 ended it"),
        ("test -f 'x", "yntax error"),
        ("./p.txt", "denied"),
        ("sleep 60", "did not end within 1 s"),
    ] {
        let env = exec(&format!("        - {{name: t, run: touch ran, timeout: 1s, if: \"{condition}\"}}\n"));
        env.write("p.txt", "true\n");
        let run = env.cliq(["run", "--headless"]).expect(3);
        run.says("command `t` could not be started").says("its condition could not be evaluated").says(why);
        assert!(!env.exists("ran"), "{condition}");
    }
}

#[test]
fn condition_that_is_false_skips_its_command_and_that_is_shown() {
    for condition in ["false", "test -f nothing", "command -v no-such-program", "grep -q x nothing"] {
        let env = exec(&format!("        - {{name: t, run: touch ran, if: \"{condition}\"}}\n"));
        env.cliq(["run", "--headless"]).expect(0).says("p: command `t` skipped");
        assert!(!env.exists("ran"), "{condition}");
    }
    let gate = "workflow:
  phases:
    - name: p
      type: exec
      commands: [{name: t, run: 'true'}]
    - name: g
      type: gate
      agent: rules
      depends_on: [p]
      commands:
        - {name: a, run: 'true'}
        - {name: b, run: 'true', if: 'false'}
";
    let run = Env::new(gate, &[]).cliq(["run", "--headless"]).expect(0);
    run.says("g: 1 of 2 commands passed, 1 skipped").says("PASS: 1 of 2 commands pass, 1 skipped.");
}

#[test]
fn completed_runs_with_failures_have_a_caveat() {
    let env = exec("        - {name: lint, run: 'false', escalate_on_fail: false}\n");
    let run = env.cliq(["run", "--headless"]).expect(0);
    run.says("failed commands: A phase went on although commands failed.");
    assert_eq!(caveats(&env), ["failed_commands"]);
    let items = "workflow:
  phases:
    - name: work
      type: exec
      for_each: '[1, 2]'
      on_item_failure: continue
      commands: [{name: t, run: 'test $(item) = 1'}]
";
    let env = Env::new(items, &[]);
    let run = env.cliq(["run", "--headless"]).expect(0);
    run.says("failed items: A phase completed although items of it failed.");
    assert_eq!(caveats(&env), ["failed_items"]);
}

#[test]
fn agent_that_fails_after_it_completed_leaves_a_caveat() {
    let team = "workflow:\n  phases:\n    - {name: w, type: standard, agent: worker}\n";
    for (end, why) in [
        ("exit 4", "agent worker completed and then ended with exit status 4"),
        (r#"say '"status":"error","error":"no disk"'"#, "agent worker completed and then reported: no disk"),
    ] {
        let env = Env::new(team, &[("worker", &format!("ok\ncomplete\n{end}\n"))]);
        let run = env.cliq(["run", "--headless"]).expect(0).says(why);
        run.says("failed after it completed: An agent reported that it was complete, and failed after that.");
        assert_eq!(caveats(&env), ["contradicted"]);
        let run = env.cliq(["status", "--json"]).expect(0).json();
        assert_eq!(run["phases"][0]["contradicted"], why);
    }
}

/// The same if the orchestrator dies before it has read what the agent said.
#[test]
fn contradiction_is_found_after_the_orchestrator_died() {
    let team = "workflow:\n  phases:\n    - {name: w, type: standard, agent: worker}\n";
    let agent = r#"ok
touch begun
until test -f go; do sleep 0.05; done
complete
say '"status":"error","error":"no disk"'
touch said
sleep 100
"#;
    let env = Env::new(team, &[("worker", agent)]);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the agent", || env.exists("begun"));
    kill_process(Pid::from_child(&run), Signal::STOP).unwrap();
    env.write("go", "");
    env.wait_for("its messages", || env.exists("said"));
    run.kill().unwrap();
    run.wait().unwrap();
    env.cliq(["run", "--resume", "--headless"])
        .expect(0)
        .says("its agent completed and then reported: no disk");
    assert_eq!(caveats(&env), ["contradicted"]);
}

#[test]
fn terminal_message_that_says_two_things_ends_nothing() {
    let team = "workflow:\n  phases:\n    - {name: w, type: standard, agent: worker}\n";
    let agent = r#"ok
say '"status":"error","error":"broken","status":"complete"'
"#;
    let run = Env::new(team, &[("worker", agent)]).cliq(["run", "--headless"]).expect(3);
    run.says("the key `status` is there twice").says("ended without a terminal message");
}

#[test]
fn pass_of_an_agent_beside_a_target_is_given_back() {
    let team = "workflow:
  phases:
    - {name: w, type: exec, commands: [{name: t, run: 'true'}]}
    - {name: g, type: gate, agent: judge, depends_on: [w], route_to: [w]}
";
    let agent = r#"ok
say '"status":"complete","result":{"verdict":{"outcome":"PASS","target":"w"}}'
"#;
    let run = Env::new(team, &[("judge", agent)]).cliq(["run", "--headless"]).expect(3);
    run.says("it is a PASS with the target `w`: a PASS has none").says("no valid verdict twice");
}

/// A phase that is kept keeps its caveats; one that works again has its own.
#[test]
fn caveats_stay_with_phases_that_are_kept() {
    let team = "workflow:
  phases:
    - name: e
      type: exec
      inputs_files: [e.txt]
      commands: [{name: t, run: 'test -f e.txt', escalate_on_fail: false}]
    - name: i
      type: exec
      inputs_files: [i.txt]
      for_each: '[1, 2]'
      commands: [{name: t, run: 'test $(item) = 1', escalate_on_fail: false}]
    - {name: w, type: standard, agent: worker, inputs_files: [w.txt]}
    - name: last
      type: exec
      inputs_files: [l.txt]
      commands: [{name: t, run: 'true'}]
";
    let env = Env::new(team, &[("worker", "ok\ncomplete\ntest -f w.txt || exit 4\n")]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(caveats(&env), ["failed_commands", "contradicted"]);
    for n in ["1", "2"] {
        env.write("l.txt", n);
        env.cliq(["run", "--changed", "--headless"]).expect(0).says("kept");
        assert_eq!(caveats(&env), ["failed_commands", "contradicted"], "kept {n} times");
    }
    env.write("w.txt", "");
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(caveats(&env), ["failed_commands"]);
    env.write("e.txt", "");
    env.cliq(["run", "--changed", "--headless"]).expect(0);
    assert_eq!(caveats(&env), ["failed_commands"], "of the items");
    let status = env.cliq(["status", "--json"]).expect(0).json();
    let of = |name: &str| {
        let phases = status["phases"].as_array().unwrap();
        phases.iter().find(|phase| phase["name"] == name).unwrap()["commands"].as_array().unwrap().len()
    };
    assert_eq!((of("e"), of("i")), (1, 1));
}

/// Text of an agent within a line cannot look like a line of cliq, such as the end of the run.
#[test]
fn agents_write_no_lines_of_their_own() {
    let agent = "ok
say '\"status\":\"progress\",\"message\":\"almost\\rCOMPLETED in 0.0s\"'
say '\"status\":\"error\",\"error\":\"broken\\nCOMPLETED in 0.0s\\nall is well\"'
exit 1
";
    let env = Env::new(
        "workflow:\n  phases:\n    - {name: w, type: standard, agent: worker}\n",
        &[("worker", agent)],
    );
    let run = env.cliq(["run", "--headless"]).expect(3).says("broken\n    COMPLETED in 0.0s");
    let log = env.read(".cliq/orchestrator.log");
    let status = env.cliq(["status"]).expect(0).says("broken\n    COMPLETED in 0.0s");
    for text in [&run.stdout, &log, &status.stdout] {
        let forged = text.split(['\n', '\r']).find(|line| line.starts_with("COMPLETED"));
        assert_eq!(forged, None, "{text}");
    }
}
