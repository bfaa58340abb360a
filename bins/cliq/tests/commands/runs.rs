//! Runs: the graph, parallelism, exec phases, templates, inputs, notifications, embedding.

use cliq_testkit::env::{Env, done};

#[test]
fn a_diamond_runs_in_order_and_the_middle_at_the_same_time() {
    let workflow = "workflow:
  phases:
    - name: first
      type: exec
      commands: [{name: t, run: 'echo first >> order'}]
    - name: left
      type: exec
      depends_on: [first]
      commands: [{name: t, run: 'touch left; while [ ! -f right ]; do sleep 0.01; done'}]
    - name: right
      type: exec
      depends_on: [first]
      commands: [{name: t, run: 'touch right; while [ ! -f left ]; do sleep 0.01; done'}]
    - name: last
      type: exec
      depends_on: [left, right]
      commands: [{name: t, run: 'test -f left && test -f right && echo last >> order'}]
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read("order"), "first\nlast\n");
}

#[test]
fn max_parallel_bounds_how_many_work() {
    let phase = |n: u32| {
        format!(
            "    - name: p{n}\n      type: exec\n      commands: [{{name: t, run: 'echo + >> log; sleep 0.1; echo - >> log'}}]\n"
        )
    };
    let workflow = format!("workflow:\n  phases:\n{}", (0..8).map(phase).collect::<String>());
    let env = Env::new(&workflow, &[]);
    env.cliq(["run", "--headless", "--max-parallel", "2"]).expect(0);
    let mut working = 0;
    for line in env.read("log").lines() {
        working += if line == "+" { 1 } else { -1 };
        assert!((0..=2).contains(&working));
    }
    assert_eq!(working, 0);
}

#[test]
fn exec_phases_hand_over_what_their_commands_said() {
    let workflow = "workflow:
  phases:
    - name: build
      type: exec
      commands:
        - {name: compile, run: 'echo compiled'}
        - {name: lint, run: 'echo ugly; exit 2', escalate_on_fail: false}
        - {name: docs, run: 'echo never', if: 'test -d docs'}
    - name: after
      type: exec
      depends_on: [build]
      commands:
        - {name: t, run: 'test $(handoff.build.results[1].exit_code) -eq 2 && test \"$(handoff.build.failed)\" = 1'}
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"]).expect(0).says("command `lint` failed; the phase goes on");
    let envelope = env.read_json(".cliq/channels/build--after/handoff.json");
    assert_eq!(envelope["agent"], "exec");
    assert_eq!(envelope["data"]["all_passed"], false);
    assert_eq!(envelope["data"]["total"], 3);
    assert_eq!(envelope["text"], "- pass: compile\n- FAIL: lint\n- skipped: docs");
    let results = env.read_json(".cliq/signals/build_command_results.json");
    assert_eq!(results[0]["output_tail"], "compiled\n");
    assert_eq!(results[0]["log_file"], "logs/build.1.1-compile.log");
    assert_eq!(results[2]["skipped"], true);
    assert!(!env.exists(".cliq/logs/build.1.3-docs.log"));
    let signals = env.read(".cliq/signals/build.jsonl");
    let statuses: Vec<_> = signals
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap()["status"].clone())
        .collect();
    assert_eq!(statuses, ["ok", "complete"]);
}

#[test]
fn a_failing_exec_command_ends_the_phase_and_the_run() {
    let workflow = "workflow:
  phases:
    - name: verify
      type: exec
      commands:
        - {name: pushed, run: 'echo not pushed >&2; exit 7'}
        - {name: next, run: 'touch next'}
    - name: after
      type: exec
      depends_on: [verify]
      commands: [{name: t, run: touch after}]
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("phase `verify`: command `pushed` failed with exit status 7")
        .says("not pushed")
        .says("cliq logs verify");
    assert!(!env.exists("next") && !env.exists("after"));
    assert_eq!(env.phases()["after"], ("pending".into(), 0));
}

#[test]
fn parallel_phases_finish_after_an_escalation() {
    let workflow = "workflow:
  phases:
    - name: breaks
      type: exec
      commands: [{name: t, run: 'exit 1'}]
    - name: works
      type: exec
      commands: [{name: t, run: 'while [ ! -f go ]; do sleep 0.01; done; touch finished'}]
    - name: after
      type: exec
      depends_on: [works]
      commands: [{name: t, run: touch after}]
";
    let env = Env::new(workflow, &[]);
    let run = env.spawn(["run", "--headless"]);
    env.wait_for("draining", || {
        env.exists(".cliq/journal.jsonl") && env.read(".cliq/journal.jsonl").contains("draining")
    });
    env.write("go", "");
    let done = cliq_testkit::env::done(&run.wait_with_output().unwrap()).expect(3);
    done.says("nothing new starts; waiting for works");
    assert!(env.exists("finished") && !env.exists("after"));
    assert_eq!(env.phases()["works"].0, "completed");
}

#[test]
fn an_orchestrator_that_cannot_write_its_files_has_failed() {
    let workflow = "workflow:
  phases:
    - name: vandal
      type: exec
      commands: [{name: t, run: 'while ! test -e \"$CLIQ_DIR/signals/beside.jsonl\"; do sleep 0.01; done; rm -r \"$CLIQ_DIR/signals\"; echo > \"$CLIQ_DIR/signals\"'}]
    - name: beside
      type: exec
      commands: [{name: t, run: 'sleep 1000'}]
    - name: after
      type: exec
      depends_on: [vandal]
      commands: [{name: t, run: touch after}]
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"])
        .expect(1)
        .says("FAILED")
        .says("vandal_command_results.json: Not a directory");
    assert!(!env.exists("after"));
    assert_eq!(env.left_over(), Vec::<String>::new());
}

#[test]
fn commands_have_limits_of_their_own() {
    let workflow = "workflow:
  phases:
    - name: slow
      type: exec
      commands:
        - {name: sleepy, run: 'sleep 100', timeout: 1s, escalate_on_fail: false}
        - {name: next, run: 'touch next'}
    - name: stuck
      type: exec
      timeout: 1s
      depends_on: [slow]
      commands: [{name: t, run: 'sleep 100'}]
";
    let env = Env::new(workflow, &[]);
    env.cliq(["run", "--headless"]).expect(3).says("phase `stuck`: command `t` did not end within 1 s");
    assert!(env.exists("next"));
    let result = &env.read_json(".cliq/signals/slow_command_results.json")[0];
    assert_eq!(result["pass"], false);
    assert_eq!(result["timed_out"], true);
    assert_eq!(env.left_over(), Vec::<String>::new());
}

/// One thread reads what all commands print: none of them may keep it from the others, from limits and from cancellation.
#[test]
fn a_command_that_prints_without_end_is_ended_like_any_other() {
    let workflow = "workflow:
  phases:
    - name: flood
      type: exec
      commands: [{name: zeros, run: 'exec cat /dev/zero', timeout: 2s, escalate_on_fail: false}]
    - name: beside
      type: exec
      commands: [{name: t, run: 'touch beside'}]
    - name: flood-again
      type: exec
      depends_on: [flood]
      commands: [{name: zeros, run: 'exec cat /dev/zero'}]
";
    let env = Env::new(workflow, &[]);
    let mut run = env.spawn(["run", "--headless"]);
    env.wait_for("the phase beside it", || env.exists("beside"));
    let has_begun = |line: &str| line.contains("\"phase_started\"") && line.contains("\"flood-again\"");
    env.wait_for("the next phase", || env.read(".cliq/journal.jsonl").lines().any(has_begun));
    env.cliq(["cancel"]).expect(0);
    assert_eq!(run.wait().expect("it ends").code(), Some(130));
    let result = &env.read_json(".cliq/signals/flood_command_results.json")[0];
    assert_eq!(result["timed_out"], true);
    assert_eq!(env.left_over(), Vec::<String>::new());
}

#[test]
fn inputs_reach_commands_to_the_letter_and_run_nothing() {
    let yml = "inputs:
  - {name: title}
  - {name: branch, default: main}
workflow:
  phases:
    - name: show
      type: exec
      commands:
        - {name: t, run: 'printf \"%s|%s|%s\" \"$(inputs.title)\" $(inputs.branch) $(phase) > shown'}
";
    let env = Env::new(yml, &[]);
    let hostile = "a  'b' \"c\" $(touch pwned) `touch pwned`; touch pwned\n*";
    env.cliq(["run", "--headless", "--input", &format!("title={hostile}")]).expect(0);
    assert_eq!(env.read("shown"), format!("{hostile}|main|show"));
    assert!(!env.exists("pwned"));
    env.cliq(["run", "-f"]).expect(2).says("input `title` is missing: pass `--input title=VALUE`");
    env.cliq(["run", "-f", "--input", "title=x", "--input", "brunch=y"])
        .expect(2)
        .says("did you mean `branch`?");
    env.cliq(["run", "--input", "nonsense"]).expect(2).says("write KEY=VALUE");
}

#[test]
fn a_template_without_a_value_escalates_before_anything_starts() {
    let workflow = "workflow:
  phases:
    - name: a
      type: standard
      agent: quiet
    - name: b
      type: exec
      depends_on: [a]
      commands: [{name: t, run: 'touch ran; echo $(handoff.a.x)'}]
";
    let env = Env::new(workflow, &[("quiet", "ok\ncomplete\n")]);
    env.cliq(["run", "--headless"])
        .expect(3)
        .says("`$(handoff.a.x)` has no value: `a` has handed nothing over");
    assert!(!env.exists("ran"));
}

#[test]
fn scope_repo_runs_in_each_repository() {
    let workflow = "workflow:\n  phases:\n    - name: build\n      type: exec\n      commands: [{name: t, run: 'touch built', scope: repo, if: 'test -f package.json'}]\n";
    let env = Env::new(workflow, &[]);
    for repo in ["one", "two"] {
        env.write(&format!("{repo}/.git/HEAD"), "");
    }
    env.write("one/package.json", "{}");
    env.write("plain/package.json", "{}");
    env.cliq(["run", "--headless"]).expect(0);
    assert!(
        env.exists("one/built")
            && !env.exists("two/built")
            && !env.exists("plain/built")
            && !env.exists("built")
    );
    let results = env.read_json(".cliq/signals/build_command_results.json");
    assert_eq!(
        (&results[0]["repo"], &results[1]["repo"], &results[1]["skipped"]),
        (&"one".into(), &"two".into(), &true.into())
    );
}

#[test]
fn a_repository_that_fails_is_named() {
    let workflow = "workflow:
  phases:
    - {name: work, type: exec, commands: [{name: t, run: 'true'}]}
    - {name: check, type: gate, agent: rules, depends_on: [work], max_iterations: 1, commands: [{name: tests, run: 'echo in $(basename $PWD); test -f fine', scope: repo}]}
";
    let env = Env::new(workflow, &[]);
    for repo in ["a.b", "a-b", "c d"] {
        env.write(&format!("{repo}/.git"), "gitdir: elsewhere");
    }
    env.write("a.b/fine", "");
    env.cliq(["run", "--headless"]).expect(3).says("2 of 3 commands fail: tests in a-b, tests in c d");
    assert_eq!(env.read(".cliq/logs/check.1.1-tests.a.b.log"), "in a.b\n");
    assert_eq!(env.read(".cliq/logs/check.1.1-tests.a-b.log"), "in a-b\n");
    assert!(env.read(".cliq/gate_context.md").contains("tests in c d"));
    // The workspace is the one repository: as if there were no scope.
    env.write(".git/HEAD", "");
    env.write("fine", "");
    env.cliq(["run", "-f"]).expect(0);
    assert_eq!(env.read_json(".cliq/signals/check_command_results.json")[0].get("repo"), None);
}

#[test]
fn notifications_are_delivered_and_their_failure_is_only_a_warning() {
    let workflow = "workflow:
  phases:
    - name: work
      type: standard
      agent: worker
      notify:
        on_complete: {agent: pager, channel: team, message: 'done with $(phase)'}
        on_escalate: {agent: pager}
";
    let worker = "ok\nsay '\"status\":\"notify\",\"result\":{\"agent\":\"pager\",\"channel\":\"ann\",\"event\":\"help\",\"payload\":{\"n\":1}}'\nsay '\"status\":\"notify\",\"result\":{\"agent\":\"slack\",\"event\":\"other\"}'\ncomplete\n";
    let pager = "printf '%s' \"$message\" | tr -d '\\n ' >> paged; echo >> paged\nok\ncomplete\n";
    let env = Env::new(workflow, &[("worker", worker), ("pager", pager)]);
    env.cliq(["run", "--headless"])
        .expect(0)
        .says("`slack` could not be told of other: there is no channel `default`");
    let paged = env.read("paged");
    assert_eq!(paged.lines().count(), 2, "{paged}");
    assert!(
        paged.contains(r#""notify":{"agent":"pager","channel":"ann","event":"help","payload":{"n":1}}"#),
        "{paged}"
    );
    assert!(paged.contains("donewithwork"), "{paged}");
}

#[test]
fn failures_and_verdicts_are_distinct() {
    let notify = "      notify: {on_fail: {agent: pager, message: failed}, on_escalate: {agent: pager, message: escalated}}\n";
    let pager = "printf '%s' \"$message\" | tr -d '\\n ' >> paged; echo >> paged\nok\ncomplete\n";
    let exec = format!(
        "workflow:\n  phases:\n    - name: a\n      type: exec\n      commands: [{{name: t, run: 'exit 1'}}]\n{notify}"
    );
    let env = Env::new(&exec, &[("pager", pager)]);
    env.cliq(["run", "--headless"]).expect(3);
    let paged = env.read("paged");
    assert!(
        paged.contains("\"event\":\"on_fail\"") && paged.contains("\"event\":\"on_escalate\""),
        "{paged}"
    );
    let gate = format!("workflow:\n  phases:\n    - name: a\n      type: gate\n      agent: judge\n{notify}");
    let env = Env::new(&gate, &[("pager", pager), ("judge", "ok\nverdict '\"ESCALATE\"'\n")]);
    env.cliq(["run", "--headless"]).expect(3);
    let paged = env.read("paged");
    assert!(!paged.contains("on_fail") && paged.contains("\"event\":\"on_escalate\""), "{paged}");
}

#[test]
fn roles_and_instructions_reach_the_agent() {
    let yml = "inputs: [{name: style, default: terse}]
workflow:
  phases:
    - name: a
      type: exec
      commands: [{name: t, run: 'true'}]
    - name: b
      type: standard
      agent: reader
      depends_on: [a]
";
    let env = Env::bare();
    let reader = "ok\nprintf '%s' \"$message\" > message\ncat \"$(printf '%s' \"$message\" | sed -n 's/.*\"role_file\": \"\\(.*\\)\".*/\\1/p')\" > role\ncomplete\n";
    env.team(yml, &[("reader", reader)]);
    env.write("../team/roles/b.md", "Be $(inputs.style). Leave $(git branch) alone.\n");
    env.write("../team/channels/a--b/instructions.md", "Name files.\n");
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run", "--headless"]).expect(0);
    assert_eq!(env.read("role"), "Be terse. Leave $(git branch) alone.\n");
    assert!(env.read("message").contains("channels/a--b/instructions.md"));
    // They are there for the next run as well.
    env.cliq(["run", "--headless", "-f"]).expect(0);
    assert!(env.read("message").contains("channels/a--b/instructions.md"));
}

#[test]
fn unsupported_features_are_refused_before_the_start() {
    let yml = "workflow:
  phases:
    - name: first
      type: exec
      commands: [{name: t, run: touch ran}]
    - name: route
      type: standard
      agent: mesh
      sources: [{name: x, file: a.md}]
    - name: think
      type: standard
      agent: gemini-api
    - name: issue
      type: standard
      agent: jira
      action: get_issue
      sources: [{name: x, ref: A-1}]
    - name: whoever
      type: standard
";
    let env = Env::new(yml, &[]);
    env.without_models();
    env.cliq(["run"])
        .expect(2)
        .says("phase `route` uses connector `mesh`, which this version of cliq knows but cannot run yet")
        .says("phase `think` uses agent `gemini-api`, which cannot work here: there is no key")
        .says("phase `issue` uses agent `jira`, which cannot work here: `agents.jira.base_url`")
        .says("phase `whoever` names no agent and there is no default");
    assert!(!env.exists("ran") && !env.exists(".cliq/journal.jsonl"));
}

#[test]
fn a_missing_environment_variable_is_an_error_before_the_run() {
    let env = Env::bare();
    env.team(
        "workflow:\n  phases:\n    - name: a\n      type: standard\n      agent: x\n",
        &[("x", "ok\ntest \"$SECRET_OF_X\" = s || exit 1\ncomplete\n")],
    );
    let yml =
        env.read("../team/team.yml").replace("{entry: agents/x}", "{entry: agents/x, env: [SECRET_OF_X]}");
    env.write("../team/team.yml", &yml);
    env.cliq(["init"]).expect(0);
    env.cliq(["assemble", "../team"]).expect(0);
    env.cliq(["run"]).expect(2).says("agent `x` of phase `a` needs the environment variable SECRET_OF_X");
    let output = env.command(["run"]).env("SECRET_OF_X", "s").output().unwrap();
    cliq_testkit::env::done(&output).expect(0);
}

#[test]
fn the_default_agent_comes_from_the_flag_or_the_settings() {
    let env =
        Env::new("workflow:\n  phases:\n    - name: a\n      type: standard\n", &[("x", "ok\ncomplete\n")]);
    env.cliq(["run"]).expect(2);
    env.cliq(["run", "--agent", "x"]).expect(0);
    env.write(".cliq/settings.json", "{\"default_agent\": \"x\"}");
    env.cliq(["run", "-f"]).expect(0);
    env.write(".cliq/settings.json", "{\"defaultagent\": \"x\"}");
    env.cliq(["run", "-f"]).expect(2).says("did you mean `default_agent`?");
}

#[test]
fn json_events_are_the_journal_and_more() {
    let env = Env::new(
        "workflow:\n  phases:\n    - name: a\n      type: standard\n      agent: x\n",
        &[("x", "ok\nprogress half\ncomplete\n")],
    );
    let events = env.cliq(["run", "--json"]).expect(0).events();
    let names: Vec<&str> = events.iter().map(|e| e["event"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        [
            "run_started",
            "phase_started",
            "agent_started",
            "progress",
            "agent_completed",
            "phase_completed",
            "run_finished"
        ]
    );
    assert_eq!(events.last().unwrap()["status"], "COMPLETED");
    let journal: Vec<serde_json::Value> =
        env.read(".cliq/journal.jsonl").lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let kept: Vec<_> = events.into_iter().filter(|e| e["event"] != "progress").collect();
    assert_eq!(journal, kept);
}

#[test]
fn the_documented_embedding_programs_run_a_team() {
    let docs = include_str!("../../../../docs/embedding.md");
    let programs = [
        include_str!("../../../../crates/cliq-project/examples/embed.rs"),
        include_str!("../../../../crates/cliq-orchestrator/examples/run_team.rs"),
        include_str!("../../../../crates/cliq-backends/examples/run_in.rs"),
        include_str!("../../../../crates/cliq-sdk/examples/word_count.rs"),
    ];
    for program in programs {
        assert!(docs.contains(program), "docs/embedding.md does not show an example as it is:\n{program}");
        assert!(program.lines().count() < 40);
    }
    let example = |name: &str| {
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_cliq")).with_file_name("examples").join(name);
        assert!(program.exists(), "{program:?} is not built: ./test builds it");
        std::process::Command::new(program)
    };
    let phases = "workflow:\n  phases:\n    - {name: work, type: standard, agent: x}\n    - {name: judge, type: gate, agent: rules, depends_on: [work], commands: [{name: t, run: 'true'}]}\n";
    let env = Env::new(phases, &[("x", "ok\ncomplete\n")]);
    // The team's own agent and a built-in one, which the program does not name.
    env.cliq(["settings", "set", "max_parallel", "1"]).expect(0);
    let output = example("embed").arg(env.work()).arg(env!("CARGO_BIN_EXE_cliq")).output().unwrap();
    done(&output).expect(0).says("judge: PASS").says("judge: completed after");
    assert!(env.read(".cliq/journal.jsonl").contains("\"max_parallel\":1"), "the settings hold");
    let output =
        example("run_in").arg(env.work()).arg(env!("CARGO_BIN_EXE_cliq")).arg("child").output().unwrap();
    done(&output).expect(0).says("judge: PASS").says("exit code 0");

    let env = Env::new(
        "workflow:\n  phases:\n    - {name: work, type: standard, agent: x}\n",
        &[("x", "ok\ncomplete\n")],
    );
    let output = example("run_team").arg(env.path("../team")).output().unwrap();
    done(&output).expect(0).says("work: completed");
}

/// Forty phases at once, with descriptors for a few processes: the others wait.
#[test]
fn phases_wait_for_file_descriptors() {
    let phases: String = (0..40)
        .map(|n| format!("    - {{name: p{n}, type: exec, commands: [{{name: c, run: 'sleep 0.2'}}]}}\n"))
        .collect();
    let env = Env::new(&format!("workflow:\n  phases:\n{phases}"), &[]);
    let command = format!("ulimit -Hn 70; exec '{}' run --headless", env!("CARGO_BIN_EXE_cliq"));
    let output = std::process::Command::new("sh")
        .args(["-c", &command])
        .current_dir(env.work())
        .env("CLIQ_HOME", env.home())
        .output()
        .unwrap();
    done(&output).expect(0).says("p39: completed");
}
